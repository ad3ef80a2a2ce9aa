"""Closest points of segments: with each other, and with a box."""

import jax.numpy as jnp
from jax import Array, lax

from ..spatial import cross
from .shapes import divide, dot, sign


def closest_on_segments(c1: Array, a1: Array, c2: Array, a2: Array) -> tuple[Array, Array]:
    """x1, x2 in [-1, 1] that minimise |c1 + x1 a1 - c2 - x2 a2|; parallel segments start from the centre of the first.

    Determinants are products of cross products, |a1 x a2|² and (a1 x a2) · (w x a2): no cancellation near parallel.
    """
    w = c2 - c1
    normal = cross(a1, a2)
    aa, bb, ab, det = dot(a1, a1), dot(a2, a2), dot(a1, a2), dot(normal, normal)
    skew = lax.stop_gradient(det) > (16 * jnp.finfo(det.dtype).eps) ** 2 * lax.stop_gradient(aa * bb)
    x1 = jnp.clip(divide(dot(normal, cross(w, a2)), det, skew), -1, 1)
    x2 = jnp.clip(divide(x1 * ab - dot(a2, w), bb, bb > 0), -1, 1)
    x1 = jnp.clip(divide(x2 * ab + dot(a1, w), aa, aa > 0), -1, 1)
    return x1, x2


def slab_interval(c: Array, d: Array, half: Array, length: Array) -> tuple[Array, Array]:
    """Per axis, the t in [-length, length] where |c + t d| <= half, as (low, high); all of it where d is parallel to the slab."""
    crossing = jnp.abs(lax.stop_gradient(d)) > 16 * jnp.finfo(d.dtype).eps
    reach = sign(lax.stop_gradient(d)) * half
    low = jnp.where(crossing, divide(-reach - c, d, crossing), -length)
    high = jnp.where(crossing, divide(reach - c, d, crossing), length)
    return jnp.clip(low, -length, length), jnp.clip(high, -length, length)


def closest_to_box(c: Array, d: Array, half: Array, length: Array) -> Array:
    """T in [-length, length] that minimises the distance of c + t d to the box |x| <= half, exactly.

    The derivative of half the squared distance, Σ d (x - clip(x)), is piecewise linear and increasing: the two breakpoints around its
    zero say which faces are active, and the zero is that of their line.
    """
    low, high = slab_interval(c, d, half, length)
    ends = jnp.stack([-length, length])
    t = lax.stop_gradient(jnp.concatenate([low, high, ends]))
    x = lax.stop_gradient(c) + t[:, None] * lax.stop_gradient(d)
    slope = dot(x - jnp.clip(x, -half, half), d)
    before = jnp.max(jnp.where(slope <= 0, t, -length))
    after = jnp.min(jnp.where(slope >= 0, t, length))
    between = lax.stop_gradient(0.5 * (before + after))
    x = lax.stop_gradient(c + between * d)
    active = jnp.abs(x) > half
    square = jnp.sum(jnp.where(active, d * d, 0))
    moment = jnp.sum(jnp.where(active, d * (sign(x) * half - c), 0))
    inclined = lax.stop_gradient(square) > jnp.finfo(d.dtype).eps ** 2
    root = jnp.where(inclined, divide(moment, square, inclined), between)
    return jnp.clip(root, lax.stop_gradient(jnp.minimum(before, after)), lax.stop_gradient(jnp.maximum(before, after)))
