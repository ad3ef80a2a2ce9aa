"""Two capsules: the closest pair, or both ends of the overlap of parallel ones."""

import jax.numpy as jnp
from jax import Array, lax

from .segments import closest_on_segments
from .shapes import FAR, Shape, direction, divide, dot, tolerance, unit_x

PARALLEL = 0.01  # sin² of the angle (5.7 degrees) up to which a second contact is looked for


def two_of_three(best: Array, low: Array, high: Array, depths: Array, second: Array, slack: Array) -> tuple[Array, Array]:
    """Two of the points `best`, `low`, `high` on an axis whose distances are `depths`.

    Both ends if an end is as deep as the best (parallel: the best is then anywhere between them), else the best and the farther end.
    """
    flat = second & (jnp.minimum(depths[1], depths[2]) <= depths[0] + slack)
    other = jnp.where(lax.stop_gradient(2 * best > low + high), low, high)
    return jnp.where(flat, low, best), jnp.where(flat, high, other)


def _nearest(x1: Array, c1: Array, a1: Array, c2: Array, a2: Array) -> tuple[Array, Array]:
    """Points (k, 3) of segment 1 at x1 (k,), and the vectors from them to the nearest points of segment 2."""
    p = c1 + x1[:, None] * a1
    square = dot(a2, a2)
    x2 = jnp.clip(divide(dot(p - c2, a2), square, square > 0), -1, 1)
    return p, c2 + x2[:, None] * a2 - p


def capsule_capsule(a: Shape, b: Shape):
    """2 contacts: d = segment distance - radii at the closest pair, and the far end of the overlap of near-parallel capsules."""
    r1, r2 = a.size[0], b.size[0]
    segments = a.p, a.size[1] * a.R[:, 2], b.p, b.size[1] * b.R[:, 2]
    c1, a1, c2, a2 = segments
    extent = r1 + r2 + a.size[1] + b.size[1]
    x, _ = closest_on_segments(*segments)
    aa, ab, bb = dot(a1, a1), dot(a1, a2), dot(a2, a2)
    parallel = lax.stop_gradient((ab * ab > (1 - PARALLEL) * aa * bb) & (aa * bb > 0))
    middle, reach = divide(dot(c2 - c1, a2), ab, parallel), jnp.abs(divide(bb, ab, parallel))
    low, high = jnp.clip(middle - reach, -1, 1), jnp.clip(middle + reach, -1, 1)
    second = parallel & lax.stop_gradient(low < high)
    depths, _ = direction(_nearest(jnp.stack([x, low, high]), *segments)[1], extent, unit_x(c1))
    ends = two_of_three(x, low, high, lax.stop_gradient(depths), second, tolerance(x.dtype) * extent)
    p, towards = _nearest(jnp.stack(ends), *segments)
    length, normal = direction(towards, extent, unit_x(c1))
    midpoint = p + 0.5 * (length + r1 - r2)[:, None] * normal
    valid = jnp.stack([jnp.ones_like(second), second])
    return jnp.where(valid, length - r1 - r2, FAR), normal, midpoint
