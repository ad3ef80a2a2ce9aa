"""Time integration of poses: where the pose stands when forces are evaluated, and how the new twist moves it.

    Euler     evaluated at q_n;                    q_{n+1} = q_n ⊕ h u_{n+1}
    Moreau    evaluated at q_m = q_n ⊕ h/2 u_n;    q_{n+1} = q_m ⊕ h/2 u_{n+1}

⊕ moves a pose with a world-frame twist. Immovable bodies keep their pose; their twist still drives constraints (conveyors).

With the time of impact τ of each body, counted from the evaluated pose and negative if the shapes overlap there already, the free twist u_f
acts up to the impact and the new one after it: q_{n+1} = (q ⊕ τ u_f) ⊕ (h - τ) u_{n+1}.
"""

import jax.numpy as jnp
from jax import Array

from . import spatial
from .dynamics.assemble import POSITION_SHARE
from .model import Topology
from .problem import Problem
from .pytree import replace
from .state import Contacts


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


def advance_through_impact(topology: Topology, q: Array, free: Array, u: Array, tau: Array, *, h: Array, integrator: str) -> Array:
    """The same with the free twist (nb, 6) up to the time of impact tau (nb,) [s] and the new twist after it."""
    at = _move(topology, q, free, tau[:, None])
    return _move(topology, at, u, (POSITION_SHARE[integrator] * h - tau)[:, None])


def impacts(problem: Problem, contacts: Contacts, h: Array) -> tuple[Array, Array]:
    """(which contacts hit, (nc,) bool; their time of impact τ from the evaluated pose [s], 0 for the others).

    A contact at distance d that approaches at the free speed v hits at τ = d/v, if that is within a step before or after.
    """
    normals = jnp.s_[problem.rows.nj + 2 :: 3]
    speed = -jnp.sum(problem.J[normals] * problem.u_f[problem.body[normals]], axis=(1, 2))
    hits = contacts.active & (speed * h > jnp.abs(contacts.distance))
    return hits, jnp.where(hits, contacts.distance / jnp.where(hits, speed, 1), 0)


def without_recovery(problem: Problem, hits: Array) -> Problem:
    """The problem in which contacts that hit are not pushed apart: their overlap is that of the step, which the time of impact undoes."""
    normals = jnp.s_[problem.rows.nj + 2 :: 3]
    return replace(problem, v_b=problem.v_b.at[normals].set(jnp.where(hits, 0, problem.v_b[normals])))


def impact_times(topology: Topology, problem: Problem, hits: Array, tau: Array, lam: Array) -> Array:
    """Time of impact of each body (nb,) [s]; 0 where nothing hits.

    Bodies connected by joints share the mean over their contacts that hit, weighted by impulse.
    """
    nb, normals = topology.mechanism.shape[0], jnp.s_[problem.rows.nj + 2 :: 3]
    weight = jnp.where(hits, lam[normals], 0)
    owner = jnp.concatenate([topology.mechanism, jnp.array([nb], jnp.int32)])[problem.body[normals]]
    sums = jnp.stack([weight * tau, weight])[:, :, None]
    moment, total = jnp.zeros((2, nb + 1), tau.dtype).at[:, owner].add(sums)
    mean = jnp.where(total > 0, moment / jnp.where(total > 0, total, 1), 0)
    return mean[topology.mechanism]
