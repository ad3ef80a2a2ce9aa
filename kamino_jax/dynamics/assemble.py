"""From a model at one pose to the `Problem`: the one place where mechanics meets numerics."""

import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..config import Config
from ..elimination import Elimination
from ..joints.drives import drive_rows, effort_wrenches
from ..joints.kinematics import Kinematics, with_world
from ..joints.limits import limit_rows
from ..model import Model
from ..problem import Problem
from ..pytree import once, pytree, replace
from ..recovery import hard_rate
from ..state import Contacts, Control
from .contact_rows import ContactRows, contact_rows
from .inertia import free_twist, inverse_inertia, inverse_mass, world_inertia

POSITION_SHARE = {"euler": 1.0, "moreau": 0.5}  # share of the step that moves the pose after the solve


@pytree
class JointRows:
    """Rows of dynamic, kinematic, friction, effort and limit families, in this order."""

    J: Array  # (n, 2, 6)
    body: Array  # (n, 2)
    v_b: Array  # (n,)
    E: Array  # (n,)
    bound: Array  # (nf + ne,) [N s, N m s] half width of the bounded rows' interval
    active: Array  # (n,) bool


def joint_rows(model: Model, kinematics: Kinematics, control: Control, h: Array, config: Config) -> JointRows:
    """All rows that belong to joints."""
    top, rows, settings = model.topology, model.layout.rows, config.constraints
    dynamic, effort = drive_rows(model, kinematics, control, h)
    limits = limit_rows(model, kinematics, h, settings, POSITION_SHARE[config.integrator])
    c = hard_rate(settings.alpha, settings.joint_recovery_time, h)
    residual = kinematics.residual.reshape(-1)[top.row[rows.kinematic]]
    recovery = jnp.clip(c * residual, -settings.joint_recovery_speed, settings.joint_recovery_speed)
    d, f, e = (top.row_dof[family] for family in (rows.dynamic, rows.friction, rows.effort))
    none = jnp.zeros(rows.nf, residual.dtype)
    sign = jnp.concatenate([jnp.ones(rows.bounded.stop, residual.dtype), limits.side])
    J = kinematics.J.reshape(-1, 2, 6)[top.row] * sign[:, None, None]
    body = jnp.stack([top.base, top.follower], axis=1)[top.row // 6]
    return JointRows(
        J=J,
        body=jnp.where(body < 0, model.layout.nb, body),
        v_b=jnp.concatenate([dynamic.v_b[d], recovery, none, effort.v_b[e], limits.v_b]),
        E=jnp.concatenate([dynamic.inv_m[d], jnp.zeros_like(residual), none, effort.inv_m[e], limits.E]),
        bound=h * jnp.concatenate([model.joints.friction[f], model.joints.effort_max[e]]),
        active=top.row_on & jnp.concatenate([jnp.ones(rows.bounded.stop, bool), limits.violation < 0]),
    )


def _switch_off(x: JointRows) -> JointRows:
    """Inactive rows: J = 0, v_b = 0, E = 1."""
    on = x.active
    return replace(x, J=jnp.where(on[:, None, None], x.J, 0), v_b=jnp.where(on, x.v_b, 0), E=jnp.where(on, x.E, 1))


def _with_contacts(joints: JointRows, contacts: ContactRows, on: Array) -> dict:
    """Joint rows followed by contact rows, as fields of `Problem`."""
    nc = on.shape[0]
    per_row = lambda normal, tangent: jnp.stack([tangent, tangent, normal], axis=1).reshape(3 * nc)
    off = jnp.where(on, 0, 1).astype(contacts.E.dtype)
    return dict(
        J=jnp.concatenate([joints.J, contacts.J.reshape(3 * nc, 2, 6)]),
        body=jnp.concatenate([joints.body, jnp.repeat(contacts.body, 3, axis=0)]).astype(jnp.int32),
        v_b=jnp.concatenate([joints.v_b, per_row(contacts.v_b, jnp.zeros_like(contacts.v_b))]),
        E=jnp.concatenate([joints.E, per_row(contacts.E + off, off)]),
        active=jnp.concatenate([joints.active, jnp.repeat(on, 3)]),
        eps=contacts.eps,
    )


def _elimination(model: Model) -> Elimination:
    """Where the bilateral rows stand in the order of elimination."""
    top, rows = model.topology, model.layout.rows.bilateral
    row = top.row[rows]
    place = jnp.where(top.row_on[rows], 6 * top.position[row // 6] + row % 6, 6 * model.layout.nj)
    return Elimination(place, top.column, top.slot)


def assemble(
    model: Model, q: Array, u: Array, control: Control, kinematics: Kinematics, contacts: Contacts, *, dt: Array, config: Config
) -> tuple[Problem, ContactRows]:
    """The problem of one step, and its contact rows.

    Args:
        q, u: CoM poses (nb, 7) at which forces and constraints are evaluated, and twists (nb, 6) at the start of the step.
        kinematics: all joints at (q, u).
        contacts: contact slots at q.
        dt: time step [s].
    """
    R = once(spatial.quat_matrix(q[:, 3:]))
    I, inv_I = once((world_inertia(model.bodies.inertia, R), world_inertia(inverse_inertia(model), R)))
    w = control.w_ext + effort_wrenches(model, kinematics, control.tau)
    u_f = free_twist(model, I, inv_I, u, w, dt)
    joints = joint_rows(model, kinematics, control, dt, config)
    r = with_world(q[:, :3], jnp.zeros(3))
    touching = contact_rows(contacts, r, dt, config.constraints, POSITION_SHARE[config.integrator])
    on = joints.active[model.layout.rows.bounded]
    bound = jnp.where(on, joints.bound, 0)
    problem = Problem(
        rows=replace(model.layout.rows, nc=contacts.active.shape[0]),
        inv_m=with_world(inverse_mass(model), jnp.zeros(())),
        inv_I=with_world(inv_I, jnp.zeros((3, 3))),
        u=with_world(u, jnp.zeros(6)),
        u_f=with_world(u_f, jnp.zeros(6)),
        lower=-bound,
        upper=bound,
        mu=contacts.mu,
        elimination=_elimination(model) if config.in_order else None,
        **_with_contacts(_switch_off(joints), touching, contacts.active),
    )
    return once((problem, touching))
