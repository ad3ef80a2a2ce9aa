"""Joint limits: one row per limited DoF, active when the coordinate is beyond a limit; 0 <= λ ⊥ v >= 0 with v = s dq + bias."""

import jax.numpy as jnp
from jax import Array

from ..config import ConstraintsConfig
from ..model import Model
from ..pytree import pytree
from ..recovery import compliant_rate, hard_rate
from .kinematics import Kinematics


@pytree
class LimitRows:
    """Active limits."""

    side: Array  # (nl,) +1 lower, -1 upper
    violation: Array  # (nl,) [m, rad] negative when violated
    v_b: Array  # (nl,) [m/s, rad/s]
    E: Array  # (nl,) compliance


def limit_rows(model: Model, kinematics: Kinematics, h: Array, config: ConstraintsConfig, f: float) -> LimitRows:
    """Rows of the limited DoFs; where both limits are violated the lower one acts."""
    rows = model.layout.rows.limit
    dof, joints = model.topology.row_dof[rows], model.joints
    value = kinematics.values.reshape(-1)[model.topology.row[rows]]
    lower, upper = value - joints.q_min[dof], joints.q_max[dof] - value
    side = jnp.where(lower < 0, 1, -1).astype(value.dtype)
    violation = jnp.where(lower < 0, lower, upper)
    if config.limit_compliance:
        stiffness, damping = joints.limit_stiffness[dof], joints.limit_damping[dof]
        c, E = compliant_rate(config.beta, config.limit_recovery_time, h, f, stiffness, damping)
    else:
        c, E = hard_rate(config.beta, config.limit_recovery_time, h), jnp.zeros_like(value)
    v_b = jnp.maximum(c * jnp.where(violation < 0, violation, 0), -config.limit_recovery_speed)
    return LimitRows(side, violation, v_b, E)
