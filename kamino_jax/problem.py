"""The problem that every dynamics solver solves, free of any model.

Find impulses λ with v = D λ + v_f, D = J M⁻¹ Jᵀ + E, such that

    bilateral rows   v = 0
    bounded rows     λ in [lower, upper]; v > 0 ⇒ λ = lower, v < 0 ⇒ λ = upper
    limit rows       0 <= λ ⊥ v >= 0
    contacts         K_μ ∋ λ ⊥ v + (0, 0, μ|v_t|) ∈ K_μ*

Rows stand in the order of `Rows`; a contact owns three, (t, o, n), normal last. Then u⁺ = u_f + M⁻¹ Jᵀ λ.
Source: Tsounis, Grandia, Bächer, "On Solving the Dynamics of Constrained Rigid Multi-Body Systems with Kinematic Loops" (arXiv 2504.19771).
"""

import jax.numpy as jnp
from jax import Array

from .elimination import Elimination
from .layout import Rows
from .pytree import pytree, replace, static


@pytree
class Problem:
    """One world's problem in physical units. Inactive rows have J = 0, v_b = 0, E = 1 and zero bounds: λ = 0 solves them."""

    rows: Rows = static()
    J: Array  # (nd, 2, 6) Jacobian blocks on the two bodies of each row
    body: Array  # (nd, 2) int32; the last body is the world
    inv_m: Array  # (nb + 1,) [1/kg]
    inv_I: Array  # (nb + 1, 3, 3) [1/(kg m²)] world axes
    u: Array  # (nb + 1, 6) [m/s, rad/s] twists now
    u_f: Array  # (nb + 1, 6) twists if no constraint impulse acted
    v_b: Array  # (nd,) [m/s, rad/s] bias: drives, recovery, gaps
    eps: Array  # (nc,) restitution
    E: Array  # (nd,) [1/kg, 1/(kg m²)] compliance, and inverse effective masses of dynamic and effort rows
    lower: Array  # (nf + ne,) [N s, N m s]
    upper: Array  # (nf + ne,)
    mu: Array  # (nc,)
    active: Array  # (nd,) bool
    elimination: Elimination | None = None  # order of the bilateral rows, where one is wanted


def without(problem: Problem, rows: Array) -> Problem:
    """The problem with the marked rows (nd,) inactive."""
    joints = ~rows[problem.rows.bounded]
    return replace(
        problem,
        J=jnp.where(rows[:, None, None], 0, problem.J),
        v_b=jnp.where(rows, 0, problem.v_b),
        E=jnp.where(rows, 1, problem.E),
        lower=jnp.where(joints, problem.lower, 0),
        upper=jnp.where(joints, problem.upper, 0),
        active=problem.active & ~rows,
    )


def constraint_velocity(problem: Problem, u: Array) -> Array:
    """J u, (nd,) [m/s, rad/s], of body twists u (nb + 1, 6)."""
    return jnp.sum(problem.J * u[problem.body], axis=(1, 2))


def body_impulses(problem: Problem, lam: Array) -> Array:
    """Jᵀ λ, (nb + 1, 6) [N s, N m s]."""
    blocks = problem.J * lam[:, None, None]
    return jnp.zeros_like(problem.u).at[problem.body].add(blocks)


def apply_inverse_mass(problem: Problem, w: Array) -> Array:
    """M⁻¹ w, (nb + 1, 6)."""
    angular = jnp.sum(problem.inv_I * w[:, None, 3:], axis=-1)
    return jnp.concatenate([problem.inv_m[:, None] * w[:, :3], angular], axis=1)


def bias_velocity(problem: Problem) -> Array:
    """v_b + ε J u: what the constraint velocities are asked to be besides zero, (nd,) [m/s, rad/s]."""
    if problem.rows.nc == 0:
        return problem.v_b
    normals = jnp.s_[problem.rows.nj + 2 :: 3]
    approach = jnp.sum(problem.J[normals] * problem.u[problem.body[normals]], axis=(1, 2))
    return problem.v_b.at[normals].add(problem.eps * approach)


def free_velocity(problem: Problem) -> Array:
    """v_f = J u_f + v_b + ε J u, the constraint velocity if no impulse acted, (nd,) [m/s, rad/s]."""
    return constraint_velocity(problem, problem.u_f) + bias_velocity(problem)


def twist_after(problem: Problem, lam: Array) -> Array:
    """u⁺ = u_f + M⁻¹ Jᵀ λ, (nb + 1, 6) [m/s, rad/s]."""
    return problem.u_f + apply_inverse_mass(problem, body_impulses(problem, lam))


def velocity_after(problem: Problem, lam: Array) -> Array:
    """Constraint velocities v = D λ + v_f = J u⁺ + E λ + v_b + ε J u, (nd,) [m/s, rad/s], without forming D."""
    return constraint_velocity(problem, twist_after(problem, lam)) + problem.E * lam + bias_velocity(problem)
