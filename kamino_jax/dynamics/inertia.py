"""World-frame inertia, gyroscopic impulse and the free twist u_f = u + h M⁻¹ (gravity, gyroscopic, external, explicit actuation)."""

import jax
import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..model import Model


def inverse_mass(model: Model) -> Array:
    """1/m (nb,), 0 for bodies that forces do not move. Computed in the step, so that an edit or a derivative of a mass is whole."""
    moves = model.topology.moves
    return jnp.where(moves, 1 / jnp.where(moves, model.bodies.mass, 1), 0)


def inverse_inertia(model: Model) -> Array:
    """I⁻¹ (nb, 3, 3) in body axes, 0 for bodies that torques do not turn."""
    turns = model.topology.turns[:, None, None]
    return jnp.where(turns, spatial.inverse3(jnp.where(turns, model.bodies.inertia, jnp.eye(3, dtype=model.dtype))), 0)


def world_inertia(I: Array, R: Array) -> Array:
    """R I Rᵀ, symmetrised, for all bodies (nb, 3, 3)."""
    turned = R @ I @ jnp.swapaxes(R, 1, 2)
    return 0.5 * (turned + jnp.swapaxes(turned, 1, 2))


def gyroscopic_change(L: Array, w: Array, h: Array) -> Array:
    """Change of one body's angular momentum L in the step h, (3,) [N m s].

    L turns by -h ω × L and keeps its length: (L - h ω × L) |L| / |L - h ω × L| - L, where |L - h ω × L|² = |L|² + |h ω × L|².
    Source: Newton `SolverKamino` (norm-preserving explicit Euler).
    """
    turn = h * spatial.cross(w, L)
    square = jnp.sum(L * L)
    spins = square > jnp.finfo(L.dtype).eps ** 2  # slower than that, derivatives of the ratio would overflow
    stretch = jnp.where(spins, jnp.sum(turn * turn) / jnp.where(spins, square, 1), 0)
    return (L - turn) / jnp.sqrt(1 + stretch) - L


def free_twist(model: Model, I: Array, inv_I: Array, u: Array, w: Array, h: Array) -> Array:
    """Twists (nb, 6) [m/s, rad/s] after h if no constraint impulse acted; immovable bodies keep theirs.

    Args:
        I, inv_I: world-frame inertia and its inverse, (nb, 3, 3).
        u: twists (nb, 6). w: wrenches about the centres of mass (nb, 6) [N, N m].
    """
    momentum = jnp.sum(I * u[:, None, 3:], axis=-1)
    gyro = jax.vmap(gyroscopic_change, in_axes=(0, 0, None))(momentum, u[:, 3:], h)
    fall = jnp.where(model.topology.moves[:, None], model.gravity, 0)
    dv = h * (inverse_mass(model)[:, None] * w[:, :3] + fall)
    dw = jnp.sum(inv_I * (h * w[:, 3:] + gyro)[:, None, :], axis=-1)
    return u + jnp.concatenate([dv, dw], axis=1)
