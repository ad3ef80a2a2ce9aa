"""Two boxes: separating axes, a face manifold of at most 8 points, one edge pair, and the closest pair where boxes are apart.

Choices are made in the frame of box 1, where box 2 has rotation R (its axes are the columns) and centre t; contacts in the world frame.
"""

from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..pytree import pytree
from ..spatial import cross, norm
from .segments import closest_on_segments
from .shapes import FAR, Shape, direction, divide, dot, rotate, rotate_back, sign, tolerance, unit_x

EDGE_BIAS = 1e-5  # an edge axis must beat the faces by this share of the size: aligned boxes touch with faces
WALK = np.array([[1, 0, -1, 0], [0, 1, 0, -1]])  # cos, sin: directions of the edges of a square, walked counterclockwise
CORNERS = np.array(list(product((-1, 1), repeat=3)))


@pytree
class Axis:
    """The axis of largest separation: of the faces (axis k of box 1 or, if `second`, of box 2), and of the edges (one-hot i, j)."""

    face: Array  # [m] largest separation over the 6 face axes
    k: Array
    second: Array
    edge: Array  # [m] over the 9 edge axes
    i: Array
    j: Array


def separating_axis(R: Array, t: Array, h1: Array, h2: Array) -> Axis:
    """Separations |a · t| - Σ |a · a_i| h1 - Σ |a · b_j| h2 along unit axes a: face normals, and a_i x b_j unless parallel."""
    A = jnp.abs(R)
    faces = jnp.stack([jnp.abs(t) - h1 - rotate(A, h2), jnp.abs(rotate_back(R, t)) - h2 - rotate_back(A, h1)], axis=1)
    index = jnp.argmax(faces)
    # a_i x b_j has the components (0, -R[i+2, j], R[i+1, j]) along (a_i, a_i+1, a_i+2), and likewise for box 2
    up, down = jnp.roll(R, -1, 0), jnp.roll(R, -2, 0)
    A1, A2 = jnp.abs(up), jnp.abs(down)
    square = up * up + down * down
    good = square > 1e-9
    reach1 = jnp.roll(h1, -1)[:, None] * A2 + jnp.roll(h1, -2)[:, None] * A1
    reach2 = jnp.roll(h2, -1) * jnp.roll(A, -2, 1) + jnp.roll(h2, -2) * jnp.roll(A, -1, 1)
    height = jnp.abs(jnp.roll(t, -2)[:, None] * up - jnp.roll(t, -1)[:, None] * down) - reach1 - reach2
    edges = jnp.where(good, height / jnp.sqrt(jnp.where(good, square, 1)), -FAR)
    best = jnp.argmax(edges)
    axes = jnp.arange(3)
    return Axis(jnp.max(faces), index // 2, index % 2 == 1, jnp.max(edges), axes == best // 3, axes == best % 3)


def _turned(box: Shape, k: Array) -> tuple[Array, Array]:
    """Axes (columns, world frame) and half extents of a box, cyclically shifted so that axis k is the last."""
    shift = (jnp.arange(3)[:, None] == (k + 1 + jnp.arange(3)) % 3).astype(box.R.dtype)
    return jnp.sum(box.R[:, :, None] * shift, axis=1), dot(shift.T, box.size)


def _start(base: tuple, along: tuple, half: tuple) -> tuple[Array, Array]:
    """Where the edges base + s along, -1 <= s <= 1, start to run inside a rectangle |x| <= half; (x, y) each of shape (..., 4)."""
    start, stop = -jnp.ones_like(base[0]), jnp.ones_like(base[0])
    for c, d, h in zip(base, along, half, strict=True):  # static: x and y
        moving = jnp.abs(lax.stop_gradient(d)) > jnp.finfo(d.dtype).eps * lax.stop_gradient(h)
        reach = sign(lax.stop_gradient(d)) * h
        inside = lax.stop_gradient(jnp.abs(c) <= h)
        start = jnp.maximum(start, jnp.where(moving, divide(-reach - c, d, moving), jnp.where(inside, -1, 2)))
        stop = jnp.minimum(stop, jnp.where(moving, divide(reach - c, d, moving), 1))
    valid = lax.stop_gradient(start < stop)
    return jnp.where(valid, start, 0), valid


def _overlap(c: Array, u: Array, v: Array, half: Array) -> tuple[Array, Array, Array]:
    """Corners x, y, valid (8,) of the intersection of the rectangle |x| <= half with the parallelogram c + a u + b v, |a|, |b| <= 1.

    Both are walked counterclockwise: each corner of the intersection starts exactly one edge of the rectangle or the parallelogram.
    The rectangle is inflated by a tolerance: edges that coincide up to rounding meet once, not never or twice.
    """
    half = half + lax.stop_gradient(tolerance(half.dtype) * (half[0] + half[1]))
    area = u[0] * v[1] - u[1] * v[0]
    turn = sign(lax.stop_gradient(area))
    v, area = turn * v, turn * area
    # the rectangle in the coordinates (a, b): centre, half edges
    scale = half / area
    c_ab = jnp.stack([c[1] * v[0] - c[0] * v[1], c[0] * u[1] - c[1] * u[0]]) / area
    centre = jnp.stack([c, c_ab])
    first = jnp.stack([u, scale[0] * jnp.stack([v[1], -u[1]])])
    second = jnp.stack([v, scale[1] * jnp.stack([-v[0], u[0]])])
    cos, sin = jnp.asarray(WALK, half.dtype)
    middle = lambda k: centre[:, k, None] + sin * first[:, k, None] - cos * second[:, k, None]
    along = lambda k: cos * first[:, k, None] + sin * second[:, k, None]
    bounds = jnp.stack([half, jnp.ones_like(half)])[:, :, None]
    s, valid = _start((middle(0), middle(1)), (along(0), along(1)), (bounds[:, 0], bounds[:, 1]))
    x = jnp.concatenate([middle(0)[0] + s[0] * along(0)[0], half[0] * (sin + s[1] * cos)])
    y = jnp.concatenate([middle(1)[0] + s[0] * along(1)[0], half[1] * (s[1] * sin - cos)])
    return x, y, valid.reshape(-1)


def face_contacts(axis: Axis, a: Shape, b: Shape) -> tuple[Array, Array, Array]:
    """The face of least penetration against the face of the other box that is most opposed to it.

    Returns heights (8,) over the reference face, its normal from box a to box b, points (8, 3) midway between the faces.
    """
    pick = lambda x, y: jax.tree.map(lambda x, y: jnp.where(axis.second, y, x), x, y)
    reference, incident = pick(a, b), pick(b, a)
    E, h = _turned(reference, axis.k)
    offset = incident.p - reference.p
    n = sign(lax.stop_gradient(dot(offset, E[:, 2]))) * E[:, 2]
    opposed = lax.stop_gradient(rotate_back(incident.R, n))
    F, g = _turned(incident, jnp.argmax(jnp.abs(opposed)))
    w = -sign(lax.stop_gradient(dot(F[:, 2], n))) * F[:, 2]  # towards the reference face, w · n <= -1/√3
    E = jnp.stack([E[:, 0], E[:, 1], n], axis=1)
    c, u, v, w = rotate_back(E, jnp.stack([offset + g[2] * w, g[0] * F[:, 0], g[1] * F[:, 1], w]))
    x, y, valid = _overlap(c[:2], u[:2], v[:2], h[:2])
    height = c[2] - ((x - c[0]) * w[0] + (y - c[1]) * w[1]) / w[2] - h[2]
    x, y = jnp.clip(x, -h[0], h[0]), jnp.clip(y, -h[1], h[1])
    middle = reference.p + rotate(E, jnp.stack([x, y, h[2] + 0.5 * height], axis=1))
    return jnp.where(valid, height, FAR), jnp.where(axis.second, -n, n), middle


def edge_contact(axis: Axis, a: Shape, b: Shape) -> tuple[Array, Array, Array, Array]:
    """Separation along the best edge axis n, n, and the closest points of the two edges that support the boxes along it."""
    i, j = axis.i.astype(a.p.dtype), axis.j.astype(a.p.dtype)
    d1, d2 = rotate(a.R, i), rotate(b.R, j)
    n = cross(d1, d2)
    length = norm(n)
    good = lax.stop_gradient(length) > 0
    n = jnp.where(good, n / jnp.where(good, length, 1), unit_x(n))
    n = sign(lax.stop_gradient(dot(n, b.p - a.p))) * n
    c1 = a.p + rotate(a.R, (1 - i) * sign(lax.stop_gradient(rotate_back(a.R, n))) * a.size)
    c2 = b.p - rotate(b.R, (1 - j) * sign(lax.stop_gradient(rotate_back(b.R, n))) * b.size)
    a1, a2 = dot(i, a.size) * d1, dot(j, b.size) * d2
    x1, x2 = closest_on_segments(c1, a1, c2, a2)
    return dot(n, c2 - c1), n, c1 + x1 * a1, c2 + x2 * a2


def closest_corner(R: Array, t: Array, a: Shape, b: Shape) -> tuple[Array, Array]:
    """The corner of one box that is nearest to the other, and its nearest point there: (point of a, point of b)."""
    corners = jnp.asarray(CORNERS, t.dtype)
    of_b = t + rotate(R, corners * b.size)
    of_a = rotate_back(R, corners * a.size - t)
    excess = jnp.concatenate([of_b - jnp.clip(of_b, -a.size, a.size), of_a - jnp.clip(of_a, -b.size, b.size)])
    index = jnp.argmin(lax.stop_gradient(dot(excess, excess)))
    on_b = index < 8
    corner = jnp.where(index & jnp.array([4, 2, 1], index.dtype) > 0, 1, -1)
    owner, other = (jax.tree.map(lambda x, y: jnp.where(on_b, x, y), *pair) for pair in ((b, a), (a, b)))
    x = owner.p + rotate(owner.R, corner * owner.size)
    y = other.p + rotate(other.R, jnp.clip(rotate_back(other.R, x - other.p), -other.size, other.size))
    return jnp.where(on_b, y, x), jnp.where(on_b, x, y)


def box_box(a: Shape, b: Shape):
    """8 slots: the face of least penetration against the incident face, or one pair of edges.

    Boxes that are apart: the same as long as it attains their distance, else their closest pair of points.
    """
    a0, b0 = lax.stop_gradient((a, b))
    R, t = rotate_back(a0.R, b0.R.T).T, rotate_back(a0.R, b0.p - a0.p)
    axis = separating_axis(R, t, a0.size, b0.size)
    size = jnp.sum(a0.size) + jnp.sum(b0.size)
    by_edge = axis.edge > axis.face + EDGE_BIAS * size
    heights, face_normal, face_points = face_contacts(axis, a, b)
    along, edge_normal, e1, e2 = edge_contact(axis, a, b)
    c1, c2 = closest_corner(R, t, a, b)
    nearer = lax.stop_gradient(dot(e2 - e1, e2 - e1) < dot(c2 - c1, c2 - c1))
    c1, c2 = jnp.where(nearer, e1, c1), jnp.where(nearer, e2, c2)
    apart, towards = direction(c2 - c1, size, edge_normal)
    attained = lax.stop_gradient(jnp.where(by_edge, axis.edge, axis.face) <= 0)
    slack = tolerance(t.dtype) * size
    attained |= lax.stop_gradient(jnp.where(by_edge, along >= apart - slack, jnp.min(heights) <= apart + slack))
    single = by_edge | ~attained
    first = jnp.arange(8) == 0
    one = jnp.where(first, jnp.where(attained, along, apart), FAR)
    points = jnp.where(attained, 0.5 * (e1 + e2), 0.5 * (c1 + c2))
    normal = jnp.where(single, jnp.where(attained, edge_normal, towards), face_normal)
    distance, points = jnp.where(single, one, heights), jnp.where(single, points, face_points)
    return distance, normal, points
