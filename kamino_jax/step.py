"""One time step of one world: collide, assemble, solve, integrate."""

import jax
import jax.numpy as jnp
from jax import Array

from . import integrators, warmstart
from .checks import checked
from .collision import collide as _collide
from .collision import material_contacts
from .config import Config
from .delassus import dual_form
from .dynamics.assemble import assemble
from .joints.kinematics import coordinates, dof_rates, joint_kinematics
from .measure import step_metrics
from .model import Model
from .problem import Problem, twist_after, without
from .pytree import once, replace
from .solvers import dvi, implicit, padmm
from .solvers.backend import Outcome
from .solvers.health import gradient_health
from .start import zero_control
from .state import Contacts, Control, Info, State
from .status import Status, result_code

BACKENDS = {"padmm": padmm.solve, "dvi": dvi.solve}


def collide(model: Model, state: State, config: Config = Config()) -> Contacts:
    """Contact slots of one world at its current pose."""
    return _collide(model, state.q, config)


def joint_state(model: Model, state: State, config: Config = Config()) -> tuple[Array, Array]:
    """Joint coordinates (nq,) [m, rad, -] and rates (nv,) [m/s, rad/s] of the body poses and twists.

    Angles are chosen nearest `state.joint_q`. Ball and free joints: quaternion x y z w, and angular velocity in the base joint frame.
    """
    kinematics = joint_kinematics(model, state.q, state.u, state.joint_q, config.rotation_correction)
    return coordinates(model.topology, kinematics), dof_rates(model.topology, kinematics)


def step(
    model: Model,
    state: State,
    control: Control | None = None,
    *,
    dt: float | Array,
    config: Config = Config(),
    contacts: Contacts | None = None,
) -> tuple[State, Info]:
    """Advance one world by dt: u⁺ = u + M⁻¹ (h w + Jᵀ λ) with the impulses λ of all constraints, then poses.

    Args:
        model: one world (`jax.vmap` for many).
        state: poses and twists of the centres of mass.
        control: inputs; None: no efforts, the model's own drive targets.
        dt: time step [s], a traced number: changing it does not recompile.
        config: settings, static.
        contacts: contact slots from outside, instead of the model's own detection, at the pose where the integrator evaluates (Euler:
            `state.q`; Moreau: half a step on). As many slots as `model.layout.rows.nc`.

    Returns:
        The new state, and `Info`: status, contacts, impulses, and what the configuration asks for.

    Raises:
        ValueError: arrays of a shape that the model does not have, or a time step that is not positive.
    """
    if isinstance(dt, int | float) and not dt > 0:
        raise ValueError(f"dt is {dt!r}; a time step must be positive")
    control = zero_control(model) if control is None else control
    state, control, contacts = checked(model, state, control, contacts)
    h = jnp.asarray(dt, model.dtype)
    q = integrators.evaluation_pose(model.topology, state.q, state.u, h, config.integrator)
    with jax.named_scope("collide"):
        contacts, felt = _contacts(model, q, contacts, config)
    with jax.named_scope("assemble"):
        kinematics = joint_kinematics(model, q, state.u, state.joint_q, config.rotation_correction)
        problem, touching = assemble(model, q, state.u, control, kinematics, felt, dt=h, config=config)
        near = _rows_of(problem, felt.active & ~contacts.active)
        hits, tau = integrators.impacts(problem, contacts, h) if config.impact_time else (None, None)
        problem = integrators.without_recovery(problem, hits) if config.impact_time else problem
    with jax.named_scope("solve"):
        frozen, *hint = jax.lax.stop_gradient((problem, contacts, touching, state.reactions))
        frozen = without(frozen, near) if config.gradient.gap > 0 else frozen
        guess = once(warmstart.guess(frozen, *hint, jax.lax.stop_gradient(h), config.backend))
        outcome = BACKENDS[config.dynamics_solver](dual_form(frozen), guess, config)
        lam, v_plus = implicit.solution(problem, near, outcome.lam, outcome.v_plus, config.gradient)
    with jax.named_scope("integrate"):
        u = once(_damped(twist_after(problem, lam)[:-1], config.angular_velocity_damping * h))
        if config.impact_time:
            tau = integrators.impact_times(model.topology, problem, hits, tau, lam)
        q_next = once(_advance(model, problem, (q, u, h, tau), config))
        ended = joint_kinematics(model, q_next, u, coordinates(model.topology, kinematics), config.rotation_correction)
    reactions = jax.lax.stop_gradient(warmstart.remember(problem, contacts, touching, lam, v_plus, h))
    new = State(q_next, u, coordinates(model.topology, ended), reactions)
    metrics = step_metrics(model, problem, contacts, ended, lam, v_plus, q=q) if config.compute_solution_metrics else None
    health = gradient_health(without(problem, near), lam, config.gradient) if config.gradient.health else None
    return new, Info(_status(outcome, contacts, new), contacts, lam, v_plus, metrics, outcome.history, health)


def _contacts(model: Model, q: Array, contacts: Contacts | None, config: Config) -> tuple[Contacts, Contacts]:
    """(contacts that act, contacts that derivatives feel): the model's own unless given; the latter reach farther when smoothed."""
    settings = config.gradient
    if contacts is None:
        seen = q if settings.contact_geometry == "full" else jax.lax.stop_gradient(q)
        contacts = once(_collide(model, seen, config, beyond=settings.gap))
    if settings.contact_geometry == "tangent":
        contacts = material_contacts(contacts, q)
    if not config.dynamics.cull_speculative_contacts:
        return contacts, contacts
    kept = lambda reach: replace(contacts, active=contacts.active & (contacts.distance <= reach))
    return kept(0.0), kept(settings.gap)


def _rows_of(problem: Problem, contact: Array) -> Array:
    """Rows (nd,) of the marked contacts."""
    return jnp.concatenate([jnp.zeros(problem.rows.nj, bool), jnp.repeat(contact, 3)])


def _advance(model: Model, problem: Problem, motion: tuple, config: Config) -> Array:
    """Poses at the end of the step; motion: evaluated poses, new twists, dt, and times of impact, if wanted."""
    q, u, h, tau = motion
    if not config.impact_time:
        return integrators.advance_pose(model.topology, q, u, h, config.integrator)
    return integrators.advance_through_impact(model.topology, q, problem.u_f[:-1], u, tau, h=h, integrator=config.integrator)


def _damped(u: Array, share: Array) -> Array:
    """Twists with the angular part reduced by a share."""
    return u * jnp.concatenate([jnp.ones(3, u.dtype), jnp.full(3, 1, u.dtype) - share])


def _status(end: Outcome, contacts: Contacts, new: State) -> Status:
    finite = jnp.isfinite(end.r_p + end.r_d + end.r_c) & jnp.all(jnp.isfinite(new.q)) & jnp.all(jnp.isfinite(new.u))
    converged = end.converged & finite
    found, slots = contacts.found, contacts.active.shape[0]
    kept = jnp.sum(contacts.active, dtype=jnp.int32)
    dropped = jnp.maximum(found - slots, 0)
    return Status(result_code(converged, finite), converged, end.iterations, end.r_p, end.r_d, end.r_c, found, kept, dropped, end.backend)
