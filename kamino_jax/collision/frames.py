"""Contact frames."""

import math

import jax.numpy as jnp
from jax import Array, lax

from ..spatial import cross, normalize

SWITCH = math.cos(math.pi / 6)  # normals within 30 degrees of x take their tangents from y


def contact_frame(n: Array) -> Array:
    """Rows t, o, n (..., 3, 3) of a right-handed frame: o = n x e / |n x e|, t = o x n; e is world x, or y where |n_x| >= cos 30°."""
    near_x = jnp.abs(lax.stop_gradient(n[..., :1])) >= SWITCH
    e = jnp.where(near_x, jnp.array([0, 1, 0], n.dtype), jnp.array([1, 0, 0], n.dtype))
    o = normalize(cross(n, e))
    return jnp.stack([cross(o, n), o, n], axis=-2)
