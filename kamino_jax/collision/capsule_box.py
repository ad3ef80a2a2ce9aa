"""A capsule and a box, in the box's frame: segment c + t d, |t| <= length, box |x| <= half."""

import jax.numpy as jnp
from jax import Array, lax

from ..spatial import cross, norm
from .capsules import PARALLEL, two_of_three
from .segments import closest_to_box, slab_interval
from .shapes import FAR, Shape, divide, dot, rotate, rotate_back, sign, tolerance

EDGE_BIAS = 1e-5  # an edge must beat the faces by this share of the size: ties go to faces


def _exit_direction(c: Array, d: Array, half: Array, length: Array) -> tuple[Array, Array, Array]:
    """Least translation that takes a segment out of the box: whether it passes an edge, the face and the edge (one-hot or zero).

    Candidates: 3 face normals and 3 directions d x e_j, with the separation |m · c| - Σ |m| half - |m · d| length for a unit m.
    """
    face = jnp.abs(c) - half - length * jnp.abs(d)
    d1, d2, c1, c2 = jnp.roll(d, -1), jnp.roll(d, -2), jnp.roll(c, -1), jnp.roll(c, -2)
    square = d1 * d1 + d2 * d2
    good = square > 1e-9
    height = jnp.abs(d2 * c1 - d1 * c2) - jnp.abs(d2) * jnp.roll(half, -1) - jnp.abs(d1) * jnp.roll(half, -2)
    edge = jnp.where(good, height / jnp.sqrt(jnp.where(good, square, 1)), -FAR)
    by_edge = jnp.max(edge) > jnp.max(face) + EDGE_BIAS * (length + jnp.sum(half))
    axes = jnp.arange(3)
    return by_edge, axes == jnp.argmax(face), (axes == jnp.argmax(edge)) & by_edge


def _pierced(c: Array, d: Array, half: Array, length: Array) -> tuple[Array, Array, Array]:
    """Outward normal of the face or edge through which a segment inside the box leaves it, and its t at the edge."""
    by_edge, face, edge = _exit_direction(*(lax.stop_gradient(x) for x in (c, d, half, length)))
    m = jnp.where(by_edge, cross(d, edge.astype(d.dtype)), face.astype(d.dtype))
    m = sign(lax.stop_gradient(dot(m, c))) * m / norm(m)
    tangent = cross(edge.astype(d.dtype), m)
    rate = dot(tangent, d)
    t = divide(dot(tangent, sign(lax.stop_gradient(m)) * half - c), rate, by_edge & (rate != 0))
    return m, by_edge, jnp.clip(t, -length, length)


def _heights(t: Array, c: Array, d: Array, half: Array, pierced: Array, exit: Array) -> tuple[Array, Array]:
    """Distance and outward normal at the axis points t (k,): to the box, or over its supporting plane along `exit` if pierced."""
    x = c + t[:, None] * d
    excess = jnp.where(pierced, exit, x - jnp.clip(x, -half, half))
    distance = norm(excess)
    plane = dot(x, exit) - dot(jnp.abs(exit), half)
    normal = excess / jnp.where(distance > 0, distance, 1)[:, None]
    return jnp.where(pierced, plane, distance), jnp.where((distance > 0)[:, None], normal, exit)


def capsule_box(capsule: Shape, box: Shape):
    """2 contacts: d = distance of the axis to the box - radius at the closest point, and a second where the axis lies along the box.

    If the axis pierces the box, d is the least translation. The second contact is the far end of the axis over the same face or edge.
    """
    radius, length, half = capsule.size[0], capsule.size[1], box.size
    c, d = rotate_back(box.R, capsule.p - box.p), rotate_back(box.R, capsule.R[:, 2])
    slack = tolerance(c.dtype) * (radius + length + jnp.sum(half))
    closest = closest_to_box(c, d, half, length)
    x = c + closest * d
    gap = norm(lax.stop_gradient(x - jnp.clip(x, -half, half)))
    pierced = gap <= slack
    exit, by_edge, at_edge = _pierced(c, d, half, length)
    _, toward = _heights(closest[None], c, d, half, pierced, exit)
    # the axes that the contact normal does not see bound the contact: the prism of a face, the extent of an edge
    free = lax.stop_gradient(toward[0] ** 2) > PARALLEL
    low, high = slab_interval(c, d, half, length)
    low, high = jnp.max(jnp.where(free, -length, low)), jnp.min(jnp.where(free, length, high))
    deeper = jnp.where(lax.stop_gradient(dot(exit, d)) > 0, low, high)
    best = jnp.where(pierced, jnp.where(by_edge, at_edge, deeper), closest)
    second = lax.stop_gradient((jnp.sum(jnp.where(free, d * d, 0)) < PARALLEL) & (low < high))
    depths, _ = _heights(jnp.stack([best, low, high]), c, d, half, pierced, exit)
    ends = jnp.stack(two_of_three(best, low, high, lax.stop_gradient(depths), second, slack))
    height, outward = _heights(ends, c, d, half, pierced, exit)
    midpoint = c + ends[:, None] * d - 0.5 * (height + radius)[:, None] * outward
    distance = jnp.where(jnp.stack([jnp.ones_like(second), second]), height - radius, FAR)
    return distance, -rotate(box.R, outward), box.p + rotate(box.R, midpoint)
