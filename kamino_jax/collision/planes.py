"""Half-space below a plane (normal = local z) against a convex shape. The normal is the plane's."""

import math

import jax.numpy as jnp
from jax import Array, lax

from ..spatial import cross, norm
from .shapes import FAR, Shape, direction, dot, rotate, rotate_back, sign, unit_x

FLAT_CYLINDER = math.cos(math.pi / 8)  # a cylinder within 22.5 degrees of upright stands on a tripod, else it rolls
UPRIGHT = 1e-5  # [rad] tilt below which the deepest rim point is not distinguished from the tripod
DISTINCT = 0.01  # share of the size of a cylinder within which two of its contacts are one


def _below(plane: Shape, points: Array) -> tuple[Array, Array, Array]:
    """Contacts of surface points (k, 3) with the plane: d = n · (x - p), midpoint x - n d/2."""
    n = plane.R[:, 2]
    distance = dot(points - plane.p, n)
    return distance, n, points - 0.5 * distance[:, None] * n


def plane_sphere(plane: Shape, sphere: Shape):
    """1 contact at the lowest point."""
    return _below(plane, (sphere.p - sphere.size[0] * plane.R[:, 2])[None])


def plane_capsule(plane: Shape, capsule: Shape):
    """2 contacts, one below each end."""
    radius, half = capsule.size[0], capsule.size[1]
    reach = half * capsule.R[:, 2]
    centre = capsule.p - radius * plane.R[:, 2]
    return _below(plane, jnp.stack([centre + reach, centre - reach]))


def plane_ellipsoid(plane: Shape, ellipsoid: Shape):
    """1 contact at the support point p - R S² Rᵀn / |S Rᵀn|, S = diag(radii)."""
    scaled = ellipsoid.size * rotate_back(ellipsoid.R, plane.R[:, 2])
    length = norm(scaled)
    support = ellipsoid.size * scaled / jnp.where(length > 0, length, 1)
    return _below(plane, (ellipsoid.p - rotate(ellipsoid.R, support))[None])


def plane_box(plane: Shape, box: Shape):
    """4 contacts at the 4 lowest corners, the lowest first.

    With a >= b >= c the heights that the three half extents span, the lowest corner is followed by its neighbours across c and b,
    then by the one across both, or by the neighbour across a where that is lower (a < b + c).
    """
    height = rotate_back(box.R, plane.R[:, 2])
    spans = lax.stop_gradient(jnp.abs(height) * box.size)
    axes = jnp.arange(3)
    highest = jnp.argmax(spans)
    long = axes == highest
    short = axes == jnp.argmin(jnp.where(long, jnp.inf, spans))
    middle = ~(long | short)
    same_face = 2 * jnp.max(spans) >= jnp.sum(spans)
    last = jnp.where(same_face, short | middle, long)
    flips = jnp.stack([jnp.zeros_like(long), short, middle, last])
    corners = jnp.where(flips, 1, -1) * sign(lax.stop_gradient(height)) * box.size
    return _below(plane, box.p + rotate(box.R, corners))


def plane_cylinder(plane: Shape, cylinder: Shape):
    """4 contacts on the rims: the deepest point, and what keeps the cylinder from tipping over.

    Standing: 3 points of the lower rim, 120 degrees apart, the first towards world x (y if the axis is along x). Rolling: the other
    end of the lowest generator and the two sides of the lower rim. Points at the deepest one are dropped.
    """
    radius, half = cylinder.size[0], cylinder.size[1]
    n, axis = plane.R[:, 2], cylinder.R[:, 2]
    axis = -sign(lax.stop_gradient(dot(axis, n))) * axis
    cos = -dot(axis, n)
    anchor = jnp.where(jnp.abs(axis[0]) > 0.9, jnp.roll(unit_x(n), 1), unit_x(n))
    _, first = direction(anchor - dot(anchor, axis) * axis, jnp.ones_like(cos), anchor)
    down = -n - cos * axis
    tilted = dot(down, down) > UPRIGHT**2
    _, down = direction(jnp.where(tilted, down, first), jnp.ones_like(cos), first)
    side, second = cross(axis, down), math.sqrt(0.75) * cross(axis, first)
    tripod = jnp.stack([down, first, -0.5 * first - second, -0.5 * first + second])
    rolling = jnp.stack([down, down, side, -side])
    standing = lax.stop_gradient(cos) >= FLAT_CYLINDER
    ends = half * jnp.where(standing | (jnp.arange(4) != 1), 1, -1)
    offset = ends[:, None] * axis + radius * jnp.where(standing, tripod, rolling)
    distance, n, midpoint = _below(plane, cylinder.p + offset)
    apart = lax.stop_gradient(norm(offset - offset[0])) > DISTINCT * jnp.maximum(radius, half)
    return jnp.where(apart | (jnp.arange(4) == 0), distance, FAR), n, midpoint
