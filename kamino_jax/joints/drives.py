"""What acts along a joint DoF: armature, damping, drives with and without effort limit, explicit efforts.

Per DoF, with step h, armature a, damping b, gains kp, kd, command τ and position error e:

    dynamic row   m = a + h b [+ h kd + h² kp]      v_b = -(a dq + h τ)/m      E = 1/m
    effort row    m = h kd [+ h² kp]                v_b = -h τ/m               E = 1/m        |λ| <= h τ_max
    otherwise     the clamped command is a wrench on the bodies

Brackets: the drive, where it acts on that row. m is at least 1e-6. Source: Newton `SolverKamino`, implicit joint dynamics.
"""

import jax
import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..model import (
    DRIVE_POSITION,
    DRIVE_POSITION_VELOCITY,
    DRIVE_VELOCITY,
    PATH_DYNAMIC,
    PATH_WRENCH,
    Model,
)
from ..pytree import pytree
from ..state import Control
from .kinds import KINDS
from .kinematics import Kinematics, dof_rates, entries

LEAST_MASS = 1e-6  # [kg, kg m²] Kamino's floor of the effective mass of a row


@pytree
class Rows:
    """Bias and inverse effective mass of one row per DoF."""

    v_b: Array  # (nv,) [m/s, rad/s]
    inv_m: Array  # (nv,) [1/kg, 1/(kg m²)]


def position_error(model: Model, kinematics: Kinematics, q_ref: Array) -> Array:
    """q_ref - q per DoF (nv,) [m, rad]; ball joints: log(q_ref q⁻¹). Angles are not wrapped."""
    target = entries(model.topology, q_ref)
    error = target[:, :6] - kinematics.values
    if "spherical" in model.layout.joint_kinds:
        turn = spatial.quat_log(spatial.quat_multiply(target[:, 6:], spatial.quat_conjugate(kinematics.rho)))
        ball = (model.topology.kind == KINDS["spherical"].code)[:, None]
        error = jnp.where(ball, jnp.concatenate([error[:, :3], turn], axis=1), error)
    return error.reshape(-1)[model.topology.dof]


def drive(model: Model, kinematics: Kinematics, control: Control) -> tuple[Array, Array, Array]:
    """Explicit part of the drives kp e + kd u_ref, and their gains kp, kd where they apply; each (nv,)."""
    mode, joints = model.topology.mode, model.joints
    follows_position = (mode == DRIVE_POSITION) | (mode == DRIVE_POSITION_VELOCITY)
    follows_velocity = (mode == DRIVE_VELOCITY) | (mode == DRIVE_POSITION_VELOCITY)
    kp = jnp.where(follows_position, joints.kp, 0)
    kd = jnp.where(follows_position | follows_velocity, joints.kd, 0)
    command = kp * position_error(model, kinematics, control.q_ref)
    return command + jnp.where(follows_velocity, joints.kd * control.u_ref, 0), kp, kd


def clamped_effort(model: Model, tau: Array) -> Array:
    """Explicit efforts within the effort limits, (nv,) [N, N m]."""
    return jnp.clip(tau, -model.joints.effort_max, model.joints.effort_max)


def _row(momentum: Array, m: Array) -> Rows:
    m = jnp.maximum(m, LEAST_MASS)
    return Rows(v_b=-momentum / m, inv_m=1 / m)


def drive_rows(model: Model, kinematics: Kinematics, control: Control, h: Array) -> tuple[Rows, Rows]:
    """(dynamic, effort) rows of every DoF; only those that the topology names are used."""
    joints, top = model.joints, model.topology
    command, kp, kd = drive(model, kinematics, control)
    m_drive = h * kd + h * h * kp
    driven = (kp > 0) | (kd > 0)
    here = top.path == PATH_DYNAMIC
    explicit = jnp.where(driven, control.tau, clamped_effort(model, control.tau))
    tau = jnp.where(here, explicit + command, 0)
    m = joints.armature + h * joints.damping + jnp.where(here, m_drive, 0)
    rate = dof_rates(top, kinematics)
    dynamic = _row(joints.armature * rate + h * tau, m)
    return dynamic, _row(h * (control.tau + command), m_drive)


def effort_wrenches(model: Model, kinematics: Kinematics, tau: Array) -> Array:
    """World wrenches (nb, 6) [N, N m] of the explicit efforts that act on the bodies directly: Σ J_dofᵀ clamp(τ)."""
    top = model.topology
    effort = jnp.where(top.path == PATH_WRENCH, clamped_effort(model, tau), 0)
    rows = kinematics.J.reshape(-1, 2, 6)[top.dof] * effort[:, None, None]
    body = jnp.stack([top.base, top.follower], 1)[top.dof // 6]
    body = jnp.where(body < 0, model.layout.nb, body)
    total = jax.ops.segment_sum(rows.reshape(-1, 6), body.reshape(-1), num_segments=model.layout.nb + 1)
    return total[:-1]
