"""Measures of a simulation for people: energy, and how well one step satisfied everything it should."""

import jax.numpy as jnp
from jax import Array

from . import spatial
from .dynamics.inertia import world_inertia
from .joints.kinematics import Kinematics
from .model import Model
from .problem import Problem, body_impulses, twist_after
from .pytree import pytree
from .solvers.metrics import Metrics, Worst, solution_metrics, worst
from .state import Contacts, State


@pytree
class StepMetrics:
    """Quality of one step: solution, equations of motion, and positions at its end."""

    solution: Metrics
    eom: Worst  # [N s, N m s] |M (u⁺ - u_f) - Jᵀ λ|, indexed over the twists' entries
    joints: Worst  # [m, rad] joint position residual over kinematic rows
    limits: Worst  # [m, rad] violation of the limits
    contacts: Worst  # [m] penetration at the evaluation pose


def _momentum_error(model: Model, problem: Problem, lam: Array, q: Array) -> Array:
    """M (u⁺ - u_f) - Jᵀ λ of movable bodies with M itself: also tells masses and inertias that disagree with their inverses."""
    du = (twist_after(problem, lam) - problem.u_f)[:-1]
    I = world_inertia(model.bodies.inertia, spatial.quat_matrix(q[:, 3:]))
    momentum = jnp.concatenate([model.bodies.mass[:, None] * du[:, :3], jnp.sum(I * du[:, None, 3:], axis=-1)], axis=1)
    return jnp.where(model.topology.moves[:, None], momentum - body_impulses(problem, lam)[:-1], 0).reshape(-1)


def step_metrics(
    model: Model, problem: Problem, contacts: Contacts, ended: Kinematics, lam: Array, v_plus: Array, *, q: Array
) -> StepMetrics:
    """Metrics of one step; `ended`: joints at the end of the step, q: poses (nb, 7) at which it was evaluated."""
    top, rows, joints = model.topology, model.layout.rows, model.joints
    dof = top.row_dof[rows.limit]
    value = ended.values.reshape(-1)[top.row[rows.limit]]
    violation = jnp.minimum(jnp.minimum(value - joints.q_min[dof], joints.q_max[dof] - value), 0)
    residual = ended.residual.reshape(-1)[top.row[rows.kinematic]]
    return StepMetrics(
        solution=solution_metrics(problem, lam, v_plus),
        eom=worst(_momentum_error(model, problem, lam, q)),
        joints=worst(jnp.where(top.row_on[rows.kinematic], residual, 0)),
        limits=worst(jnp.where(top.row_on[rows.limit], violation, 0)),
        contacts=worst(jnp.where(contacts.active, jnp.minimum(contacts.distance, 0), 0)),
    )


def energy(model: Model, state: State) -> tuple[Array, Array]:
    """(kinetic, potential) energy [J] of one world: Σ ½ m v² + ½ ω·I ω and -Σ m g·r, over movable bodies."""
    I = world_inertia(model.bodies.inertia, spatial.quat_matrix(state.q[:, 3:]))
    v, w = state.u[:, :3], state.u[:, 3:]
    movable = model.topology.moves
    mass = jnp.where(movable, model.bodies.mass, 0)
    spin = jnp.sum(w * jnp.sum(I * w[:, None, :], axis=-1), axis=-1)
    kinetic = 0.5 * jnp.sum(mass * jnp.sum(v * v, axis=1) + jnp.where(movable, spin, 0))
    return kinetic, -jnp.sum(mass * (state.q[:, :3] @ model.gravity))
