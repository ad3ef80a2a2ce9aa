"""Accelerated projected gradient descent on the unilateral rows, one trial step at a time.

A correction freezes the De Saxcé shift s = Γ(K x + b) and solves the convex cone problem min ½ x·K x + (b + s)·x:

    g = K y + b + s,  z = Proj(y - g/L),  d = z - y
    accepted if d·K d <= L |d|² + 10⁻⁶ max(|d·K d|, L |d|²) + 10⁻²⁰, else L ← 2 L and another trial
    θ' = (1 + √(1 + 4 θ²))/2,  β = (θ - 1)/θ'   or, if (y - z)·(z - x) > 0,  θ' = 1, β = 0
    y ← z + β (z - x),  x ← z

until |x - Proj(x - (K x + b + s))| is small; then x ← x₀ + r (x - x₀), and another correction until the same holds with s = Γ(K x + b).
Phases alternate with the direct solve of the bilateral rows, which moves b. All these loops are one, so that worlds in a batch wait for the
longest sum of trials instead of the longest loop on every level. Source: Newton `SolverKamino` (DVI, APGD), after Mazhar et al. 2015.
"""

import functools

import jax
import jax.numpy as jnp
from jax import Array

from ..config import DVIConfig
from ..pytree import pytree, replace
from . import cones
from .reduced import Reduced

DECAY = 0.9  # of L from one convex problem to the next


@pytree
class Descent:
    """Where the descent is."""

    x: Array  # (nu,) last accepted
    y: Array  # (nu,) extrapolated
    start: Array  # (nu,) x at the start of the correction
    shift: Array  # (nu,) frozen De Saxcé shift
    b: Array  # (nu,) velocities at x = 0
    L: Array  # curvature estimate
    seed: Array  # where it starts and below which it never falls
    theta: Array
    trials: Array  # int32, rejected in a row
    steps: Array  # int32, accepted in this correction
    correction: Array  # int32, in this phase
    phase: Array  # int32
    iterations: Array  # int32, totals
    corrections: Array
    backtracks: Array
    residual: Array  # natural map with the shift up to date
    failed: Array  # bool, line search
    done: Array  # bool


def curvature(problem: Reduced) -> Array:
    """|K d|/|d| for constant d, or for a ramp where that vanishes, or 1."""
    n = problem.b.shape[0]
    ramp = (2 * jnp.arange(n, dtype=problem.b.dtype) + 1) / n - 1
    of = lambda d: jnp.linalg.norm(problem.K @ d) / jnp.maximum(jnp.linalg.norm(d), jnp.finfo(d.dtype).tiny)
    usable = lambda a: jnp.isfinite(a) & (a > 0)
    flat, sloped = of(jnp.ones(n, ramp.dtype)), of(ramp)
    return jnp.where(usable(flat), flat, jnp.where(usable(sloped), sloped, 1))


def _begin(problem: Reduced, at: Descent, x: Array) -> Descent:
    """A new convex problem at x."""
    shift = cones.de_saxce(problem.rows, problem.K @ x + at.b, problem.mu)
    return replace(at, x=x, y=x, start=x, shift=shift, theta=jnp.ones_like(at.theta), steps=jnp.zeros_like(at.steps))


def start(problem: Reduced, lam: Array) -> Descent:
    """Before the first trial, from the impulses lam."""
    zero, none, off = jnp.zeros((), lam.dtype), jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    L = curvature(problem)
    at = Descent(lam, lam, lam, lam, problem.free(lam), L, L, zero, none, none, none, none, none, none, none, zero, off, off)
    return _begin(problem, at, problem.project(lam))


def _momentum(at: Descent, z: Array) -> Descent:
    theta = (1 + jnp.sqrt(1 + 4 * at.theta * at.theta)) / 2
    again = jnp.sum((at.y - z) * (z - at.x)) > 0
    beta = jnp.where(again, 0, (at.theta - 1) / theta)
    y = z + beta * (z - at.x)
    one = jnp.ones_like(at.iterations)
    return replace(
        at,
        x=z,
        y=y,
        theta=jnp.where(again, 1, theta),
        trials=0 * one,
        steps=at.steps + one,
        iterations=at.iterations + one,
    )


def _rejected(at: Descent, settings: DVIConfig) -> Descent:
    trials = at.trials + 1
    failed = trials >= settings.apgd.max_backtracks
    return replace(at, L=2 * at.L, trials=trials, backtracks=at.backtracks + 1, failed=failed, done=failed)


def _corrected(problem: Reduced, at: Descent, settings: DVIConfig) -> Descent:
    """After the end of a convex problem: relaxed, measured, and ready for the next correction or phase."""
    x = at.start + settings.apgd.relaxation * (at.x - at.start)
    v = problem.K @ x + at.b
    residual, count = problem.natural_map(x, v), at.correction + 1
    ended = (residual <= settings.apgd.tolerance) | (count >= settings.apgd.max_nonlinear_corrections)
    phase = at.phase + ended.astype(jnp.int32)
    b, done = at.b, ended & (phase >= (1 if problem.C is None else settings.max_alternating_iterations))
    if problem.C is not None:
        b = jnp.where(ended & (phase % settings.bilateral_solve_interval == 0), problem.free(x), b)
        small = jnp.maximum(*problem.residuals(x, problem.velocity(x))[1:]) <= settings.tolerance
        done |= ended & small & (not settings.fixed_schedule)
    moved = replace(
        at,
        b=b,
        L=jnp.maximum(at.seed, DECAY * at.L),
        correction=jnp.where(ended, 0, count),
        corrections=at.corrections + 1,
        phase=phase,
        residual=residual,
        done=done,
    )
    return _begin(problem, moved, jnp.where(done, x, jnp.where(ended, problem.project(x), x)))


def trial(problem: Reduced, settings: DVIConfig, at: Descent) -> Descent:
    """One candidate step, and what follows from it."""
    velocity = lambda x: problem.K @ x + at.b + at.shift
    z = problem.project(at.y - velocity(at.y) / at.L)
    d = z - at.y
    bent, bound = jnp.sum(d * (problem.K @ d)), at.L * jnp.sum(d * d)
    accepted = bent <= bound + 1e-6 * jnp.maximum(jnp.abs(bent), bound) + 1e-20
    stepped = _momentum(at, z)
    v = velocity(z)
    still = jnp.max(jnp.abs(z - problem.project(z - v)), initial=0) <= settings.apgd.tolerance
    ended = still | (stepped.steps >= settings.apgd.max_iterations)
    choose = lambda test, a, b: jax.tree.map(lambda x, y: jnp.where(test, x, y), a, b)
    return choose(accepted, choose(ended, _corrected(problem, stepped, settings), stepped), _rejected(at, settings))


def descend(problem: Reduced, lam: Array, settings: DVIConfig) -> Descent:
    """The whole descent from impulses lam (nu,)."""
    return jax.lax.while_loop(lambda at: ~at.done, functools.partial(trial, problem, settings), start(problem, lam))
