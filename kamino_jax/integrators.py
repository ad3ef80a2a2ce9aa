"""Time integration of poses: where the pose stands when forces are evaluated, and how the new twist moves it.

    Euler     evaluated at q_n;                    q_{n+1} = q_n ⊕ h u_{n+1}
    Moreau    evaluated at q_m = q_n ⊕ h/2 u_n;    q_{n+1} = q_m ⊕ h/2 u_{n+1}

⊕ moves a pose with a world-frame twist. Immovable bodies keep their pose; their twist still drives constraints (conveyors).
"""

import jax.numpy as jnp
from jax import Array

from . import spatial
from .dynamics.assemble import POSITION_SHARE
from .model import Topology


def _move(topology: Topology, q: Array, u: Array, h: Array) -> Array:
    moved = spatial.advance(q, u, h)
    # one Newton step towards |quaternion| = 1 undoes rounding, so that it cannot accumulate
    quat = moved[:, 3:] * (1.5 - 0.5 * jnp.sum(moved[:, 3:] ** 2, axis=1, keepdims=True))
    return jnp.where(topology.moves[:, None], jnp.concatenate([moved[:, :3], quat], axis=1), q)


def evaluation_pose(topology: Topology, q: Array, u: Array, h: Array, integrator: str) -> Array:
    """Poses (nb, 7) at which contacts, joints and inertia are evaluated."""
    share = 1.0 - POSITION_SHARE[integrator]
    return q if share == 0 else _move(topology, q, u, share * h)


def advance_pose(topology: Topology, q: Array, u: Array, h: Array, integrator: str) -> Array:
    """Poses (nb, 7) at the end of the step, from the evaluation poses and the new twists."""
    return _move(topology, q, u, POSITION_SHARE[integrator] * h)
