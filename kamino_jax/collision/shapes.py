"""A placed shape and the few operations that every pair function needs.

A pair function takes two shapes and returns `distance (k,)`, `normal (3,) or (k, 3)`, `midpoint (k, 3)`: signed surface distance
[m], unit normal from the first shape to the second, point midway between the two surface points. A slot without a contact has
distance `FAR`. Choices between features are made on values without derivatives; what is chosen is differentiable.
"""

import jax.numpy as jnp
from jax import Array

from ..pytree import pytree
from ..spatial import norm

FAR = 1e10  # [m] distance of an empty slot


@pytree
class Shape:
    """Position (3,) [m], rotation matrix (3, 3) and size (3,) [m] (see `Geoms.size`) of one geom."""

    p: Array
    R: Array
    size: Array


def tolerance(dtype) -> float:
    """Relative length below which two features count as coincident: 1e-6, or rounding where that is coarser."""
    return max(1e-6, 32 * float(jnp.finfo(dtype).eps))


def dot(a: Array, b: Array) -> Array:
    """Product a · b over the last axis."""
    return jnp.sum(a * b, axis=-1)


def rotate(R: Array, v: Array) -> Array:
    """R v of vectors (..., 3), written out: a batch of 3 x 3 products is slower."""
    return jnp.sum(R * v[..., None, :], axis=-1)


def rotate_back(R: Array, v: Array) -> Array:
    """Rᵀ v of vectors (..., 3)."""
    return jnp.sum(R * v[..., :, None], axis=-2)


def sign(x: Array) -> Array:
    """1 where x >= 0, else -1."""
    return jnp.where(x >= 0, jnp.ones_like(x), -jnp.ones_like(x))


def direction(v: Array, size: Array, fallback: Array) -> tuple[Array, Array]:
    """|v| and v / |v|; 0 and `fallback` (a unit vector, no derivative) where |v| is rounding noise on the length `size`."""
    good = dot(v, v) > (jnp.finfo(v.dtype).eps * size) ** 2
    safe = jnp.where(good[..., None], v, fallback)
    length = norm(safe)
    return jnp.where(good, length, 0), safe / length[..., None]


def divide(a: Array, b: Array, good: Array) -> Array:
    """Quotient a / b, and 0 (no derivative) where not `good`."""
    return jnp.where(good, a / jnp.where(good, b, 1), 0)


def unit_x(v: Array) -> Array:
    """World x axis (3,), in the precision of v."""
    return jnp.array([1, 0, 0], v.dtype)
