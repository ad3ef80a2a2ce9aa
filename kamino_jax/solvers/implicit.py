"""The derivative of a solution, whatever found it.

At the impulses λ the laws of the rows are linearised (`modes`) and closed with the dual form, all in preconditioned units:

    K dy + V ds = c,    ds = D̂ dy + r,    D̂ = B Bᵀ + Ê,    dλ = P dy

r is the change of the velocities with λ held: one `jvp` through J u⁺ + E λ + v_b + ε J u, so no derivative of D is ever formed and
cotangents reach every part of the problem. c collects moving bounds and friction coefficients. The operator is singular where rows are
redundant (closed loops, faces on four corners); there only Jᵀ λ and the velocities are determined, and r is consistent. Each pass of

    y ← y + (K + V (D̂ + σ))⁻¹ (c - K y - V (D̂ y + r))

is a proximal step, exact on what is determined. Where loops have drifted, r is slightly inconsistent: no motion can produce that part, it
is what remains after the passes, and each of them has added it to y. A last step takes it out again, as often as there were passes. The
rule is linear in the tangents, so forward and reverse mode are one rule, differentiable itself. Source: De Saxcé's form of the contact law,
as in Le Lidec et al. 2024 (arXiv 2405.17020).
"""

import dataclasses

import jax
import jax.numpy as jnp
from jax import Array

from ..attached import attach
from ..config import GradientConfig
from ..delassus import dual_form
from ..linear import Factors, after, factorise
from ..problem import Problem, velocity_after, without
from ..pytree import once, pytree
from . import cones
from .modes import Modes, modes
from .scaling import Scaled, precondition

CHORDS = 3  # Newton corrections with one factorisation
SAME = 1.01  # ratio of squared residuals that counts as no increase
PASSES = 4  # proximal steps: what a row misses falls by σ/(σ + its eigenvalue) each


@pytree
class System:
    """The linearised problem at one solution."""

    modes: Modes
    B: Array  # (nd, width) P J S
    E: Array  # (nd,) P² E
    matrix: Array  # K + V (D̂ + σ), or its form in body space, whichever is smaller
    factors: Factors

    def residual(self, c: Array, r: Array, y: Array) -> Array:
        """What is left of the equation at y, c - K y - V (D̂ y + r)."""
        return c - self.modes.K @ y - self.modes.V @ (self.B @ (y @ self.B) + self.E * y + r)

    def correct(self, b: Array) -> Array:
        """(K + V (D̂ + σ))⁻¹ b."""
        if self.B.shape[0] <= self.B.shape[1]:
            return self.factors @ b
        a = self.modes.inverse @ b
        return a - self.modes.inverse @ (self.modes.V @ (self.B @ (self.factors @ (a @ self.B))))


def system(scaled: Scaled, y: Array, s: Array, active: Array, settings: GradientConfig) -> System:
    """Factorised linearisation at impulses y and velocities s."""
    kappa = settings.kappa if settings.mode == "smoothed" else 0.0
    sigma = _sigma(y.dtype)
    laws = modes(scaled, y, s, active, kappa=kappa, sigma=sigma)
    laws, B, E = once((laws, scaled.operator.dense_rows(), scaled.operator.E))
    product = lambda X, Y: jnp.matmul(X, Y, precision="highest")
    if B.shape[0] <= B.shape[1]:
        matrix = laws.K @ jnp.eye(B.shape[0], dtype=B.dtype) + laws.V @ (product(B, B.T) + jnp.diag(E + sigma))
    else:
        matrix = jnp.eye(B.shape[1], dtype=B.dtype) + product(B.T, laws.inverse @ (laws.V @ B))
    return System(laws, B, E, matrix, once(factorise(after(matrix, result=y))))


def _sigma(dtype) -> float:
    """Proximal compliance on a unit diagonal: well above rounding, well below what tells rows apart."""
    return 1e-6 if jnp.finfo(dtype).bits == 64 else 1e-5


def accurate(tree):
    """Floats in the widest precision that is switched on, so that a float32 model has a double precision backward solve under x64."""
    wide = jnp.result_type(float)
    return jax.tree.map(lambda x: x.astype(wide) if jnp.issubdtype(x.dtype, jnp.floating) else x, tree)


def natural_map(scaled: Scaled, y: Array, s: Array, active: Array) -> Array:
    """F of `modes` on active rows, preconditioned units, (nd,)."""
    return jnp.where(active, cones.natural_map(scaled.rows, y, s, scaled.bounds, scaled.mu), 0)


def velocities(scaled: Scaled, y: Array) -> Array:
    """Constraint velocities s = D̂ y + P v_f."""
    return scaled.operator.mv(y) + scaled.v_f


def polished(scaled: Scaled, y: Array, active: Array, settings: GradientConfig) -> Array:
    """Impulses taken to the floor of the natural map by semismooth Newton steps; a step that does not lower it is not taken."""
    exact = dataclasses.replace(settings, mode="exact", gap=0.0)

    def at(y):
        s = velocities(scaled, y)
        F = natural_map(scaled, y, s, active)
        return once((y, s, F, jnp.sum(F * F)))

    choose = lambda better, new, old: tuple(jnp.where(better, a, b) for a, b in zip(new, old, strict=True))
    best = at(y)
    for _ in range(settings.polish):
        newton = system(scaled, best[0], best[1], active, exact)
        correction = lambda at, newton=newton: newton.correct(newton.modes.frame @ at[2])
        trial = best
        for _ in range(CHORDS):
            trial = at(trial[0] - correction(trial))
        kept = at(trial[0] + CHORDS * correction(trial))  # without what no motion can produce, see above
        trial = choose(kept[3] <= SAME * trial[3], kept, trial)
        best = choose(trial[3] < best[3], trial, best)
    return best[0]


def _moved(scaled: Scaled, laws: Modes, moved: Problem) -> Array:
    """c: the share of moving bounds and friction coefficients, (nd,)."""
    rows, P = scaled.rows, scaled.P
    lower, upper, mu = (x.astype(P.dtype) for x in (moved.lower, moved.upper, moved.mu))
    box = (laws.bound_share[0] * lower + laws.bound_share[1] * upper) / P[rows.bounded]
    head = [jnp.zeros(rows.bilateral.stop, P.dtype), box, jnp.zeros(rows.nl, P.dtype)]
    return jnp.concatenate([*head, (laws.mu_share * mu[:, None]).reshape(-1)])


def scaled_problem(problem: Problem) -> Scaled:
    """Preconditioned dual form in the precision of the backward solve."""
    return accurate(precondition(dual_form(problem), True))


def solution(problem: Problem, near: Array, lam: Array, v_plus: Array, settings: GradientConfig) -> tuple[Array, Array]:
    """(λ, v⁺) as they are, with the derivative of the problem's solution attached; costs nothing unless differentiated.

    `near` (nd,) marks rows that took no part in the solution but are felt by smoothed derivatives.
    """
    if problem.rows.nd == 0:  # static: nothing is constrained
        return lam, v_plus
    return attach(_solution_jvp, (problem, near), (lam, v_plus), settings=settings)


def _solution_jvp(inputs, tangents, values, *, settings):
    """The rule of `solution`: values polished, and (dλ, dv⁺) of the linearised laws."""
    (problem, near), (moved, _), (lam, _) = inputs, tangents, values
    scaled = scaled_problem(problem)
    P, dtype = scaled.P, lam.dtype
    solved = jax.lax.stop_gradient(scaled_problem(without(problem, near)) if settings.gap > 0 else scaled)
    y = polished(solved, jax.lax.stop_gradient(lam).astype(P.dtype) / solved.P, problem.active & ~near, settings)
    lam = (solved.P * y).astype(dtype)
    lam, v_plus = solution(problem, near, lam, velocity_after(problem, lam), settings)
    y = lam.astype(P.dtype) / P
    linear = system(scaled, y, velocities(scaled, y), problem.active, settings)
    held = jax.lax.stop_gradient(linear)  # each pass mends what the last one left, also in derivatives of higher order

    dv = jax.jvp(lambda p: velocity_after(p, lam), (problem,), (moved,))[1]
    r, c = P * dv.astype(P.dtype), _moved(scaled, linear.modes, moved)
    dy = jnp.zeros_like(r)
    for share in (1,) * PASSES + (-PASSES,):
        dy = once(dy + share * held.correct(once(linear.residual(c, r, dy))))
    ds = scaled.operator.mv(dy) + r
    return (lam, v_plus), ((P * dy).astype(dtype), (ds / P).astype(dtype))
