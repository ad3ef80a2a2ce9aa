"""How good a solution is: one measure for every backend, in physical units, from λ alone.

Infinity norms over active rows, with v = D λ + v_f and v̂ = v + Γ(v):

    primal     |λ - Proj_C(λ)|                       (joint rows skipped)
    dual       |v| bilateral, |min(0, v)| limits, |v̂ - Proj_K*(v̂)| contacts
    compl      bounded rows' face form, |λ v| limits, |λ · v̂| contacts
    natmap     |v| bilateral, |λ - Proj_C(λ - v̂)| elsewhere
Source: Newton `SolverKamino` solution metrics, restated.
"""

import jax.numpy as jnp
from jax import Array

from ..delassus import Dual, dual_form
from ..problem import Problem, constraint_velocity, twist_after
from ..pytree import pytree
from . import cones


@pytree
class Worst:
    """The largest entry of a residual and where it stands."""

    value: Array
    at: Array  # int32 row (or contact) index, -1 if the residual is empty or not finite


@pytree
class Metrics:
    """Residuals of one solution."""

    primal: Worst  # [N s]
    dual: Worst  # [m/s]
    compl: Worst  # [J], indexed over bounded rows, limits, contacts
    natmap: Worst  # unit step: [N s] and [m/s] mixed
    kinematics: Worst  # [m/s] |J u⁺| over kinematic joint rows
    v_plus: Worst  # [m/s] reported constraint velocity against D λ + v_f
    f_ccp: Array  # [J] ½ λ · (v + v_f)
    f_ncp: Array  # [J] f_ccp + λ · Γ(v)


def worst(residual: Array) -> Worst:
    """Largest |entry|; NaN stays NaN."""
    if residual.shape[0] == 0:
        return Worst(jnp.zeros((), residual.dtype), jnp.asarray(-1, jnp.int32))
    size = jnp.abs(residual)
    value = jnp.max(size)
    return Worst(value, jnp.where(jnp.isfinite(value), jnp.argmax(size), -1).astype(jnp.int32))


def natural_map(dual: Dual, lam: Array, v: Array) -> Array:
    """The velocity v on bilateral rows, λ - Proj_C(λ - v - Γ(v)) elsewhere, (nd,): zero exactly at solutions."""
    bounds = cones.joint_bounds(dual.rows, dual.lower, dual.upper)
    return jnp.where(dual.active, cones.natural_map(dual.rows, lam, v, bounds, dual.mu), 0)


def dual_residual(dual: Dual, v: Array) -> Array:
    """Distance of velocities with De Saxcé shift from the dual sets, (nd,) [m/s]."""
    v = v + cones.de_saxce(dual.rows, v, dual.mu)
    return jnp.where(dual.active, v - cones.project_dual(dual.rows, v, dual.mu), 0)


def solution_metrics(problem: Problem, lam: Array, v_plus: Array | None = None) -> Metrics:
    """Residuals of impulses λ (nd,); `v_plus` is the velocity that a solver reported, if any."""
    dual = dual_form(problem)
    rows, v_f = dual.rows, dual.v_f
    v = dual.D.mv(lam) + v_f
    gamma = cones.de_saxce(rows, v, problem.mu)
    bounds = cones.joint_bounds(rows, problem.lower, problem.upper)
    primal = (lam - cones.project(rows, lam, bounds, problem.mu)).at[rows.bilateral].set(0)
    Ju = constraint_velocity(problem, twist_after(problem, lam))[rows.kinematic]
    f_ccp = 0.5 * jnp.sum(lam * (v + v_f))
    return Metrics(
        primal=worst(primal),
        dual=worst(dual_residual(dual, v)),
        compl=worst(cones.complementarity(rows, lam, v + gamma, problem.lower, problem.upper)),
        natmap=worst(natural_map(dual, lam, v)),
        kinematics=worst(Ju),
        v_plus=worst((v if v_plus is None else v_plus) - v),
        f_ccp=f_ccp,
        f_ncp=f_ccp + jnp.sum(lam * gamma),
    )
