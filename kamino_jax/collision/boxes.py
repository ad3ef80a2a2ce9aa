"""Two boxes: separating axes, a face manifold of at most 8 points, one edge pair, and the closest pair where boxes are apart.

Everything is done in the frame of box 1: box 2 has rotation R (its axes are the columns) and centre t there.
"""

from itertools import product

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..pytree import pytree
from ..spatial import cross, norm
from .segments import closest_on_segments
from .shapes import FAR, Shape, cycle, cycle_back, direction, divide, dot, rotate, rotate_back, sign, tolerance, unit_x

EDGE_BIAS = 1e-5  # an edge axis must beat the faces by this share of the size: aligned boxes touch with faces
SQUARE = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]])  # corners of a face, counterclockwise
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


def _starts(corners: Array, half: Array) -> tuple[Array, Array]:
    """Where the edges of a polygon (4, 2), walked from corner to corner, start to run inside the rectangle |x| <= half.

    Two convex polygons walked in the same sense: each corner of their intersection starts exactly one edge of one of them.
    """
    along = jnp.roll(corners, -1, 0) - corners
    moving = jnp.abs(lax.stop_gradient(along)) > jnp.finfo(along.dtype).eps * half
    reach = sign(lax.stop_gradient(along)) * half
    aside = jnp.where(lax.stop_gradient(jnp.abs(corners)) <= half, -1, 2)  # parallel to a side: the whole edge or nothing
    low = jnp.max(jnp.where(moving, divide(-reach - corners, along, moving), aside), axis=1)
    high = jnp.min(jnp.where(moving, divide(reach - corners, along, moving), 2), axis=1)
    start = jnp.clip(low, 0, 1)
    return start, lax.stop_gradient(start < jnp.minimum(high, 1))


def _overlap(Q: Array, c: Array, h_ref: Array, h_inc: Array) -> tuple[Array, Array, Array]:
    """Intersection of the reference face (|x| <= h_ref, seen along z) with the incident face, whose box has rotation Q, centre c.

    Returns (8, 2) points in the face plane, heights (8,) of the incident face over the reference face there, validity. The
    rectangle is inflated by a tolerance, so that edges which coincide up to rounding meet once, not never or twice.
    """
    j = jnp.argmax(jnp.abs(lax.stop_gradient(Q[2])))
    Q, h_inc = cycle(Q.T, j).T, cycle(h_inc, j)
    w = Q[:, 2]
    c = c - sign(lax.stop_gradient(w[2])) * h_inc[2] * w
    u, v = Q[:2, 0] * h_inc[0], Q[:2, 1] * h_inc[1]
    area = u[0] * v[1] - u[1] * v[0]  # at least h h / √3: the incident face is the one most opposed
    v, area = sign(lax.stop_gradient(area)) * v, jnp.abs(area)
    half = h_ref[:2] + lax.stop_gradient(tolerance(Q.dtype) * (h_ref[0] + h_ref[1]))
    incident = c[:2] + SQUARE[:, :1] * u + SQUARE[:, 1:] * v
    reference = SQUARE * half
    d = reference - c[:2]
    slanted = jnp.stack([d[:, 0] * v[1] - d[:, 1] * v[0], u[0] * d[:, 1] - u[1] * d[:, 0]], axis=1) / area
    s1, valid1 = _starts(incident, half)
    s2, valid2 = _starts(slanted, jnp.ones_like(half))
    corners = jnp.concatenate([incident, reference])
    ends = jnp.concatenate([jnp.roll(incident, -1, 0), jnp.roll(reference, -1, 0)])
    points = corners + jnp.concatenate([s1, s2])[:, None] * (ends - corners)
    height = c[2] - dot(points - c[:2], w[:2]) / w[2] - h_ref[2]
    return jnp.clip(points, -h_ref[:2], h_ref[:2]), height, jnp.concatenate([valid1, valid2])


def face_contacts(axis: Axis, R: Array, t: Array, h1: Array, h2: Array) -> tuple[Array, Array, Array]:
    """Distances (8,) over the reference face, its normal from box 1 to box 2, points (8, 3) midway between the faces."""
    Q, c = jnp.where(axis.second, R.T, R), jnp.where(axis.second, -rotate_back(R, t), t)
    h_ref, h_inc = jnp.where(axis.second, h2, h1), jnp.where(axis.second, h1, h2)
    Q, c, h_ref = cycle(Q, axis.k), cycle(c, axis.k), cycle(h_ref, axis.k)
    mirror = jnp.where(jnp.arange(3) == 2, sign(lax.stop_gradient(c[2])), 1)  # the incident box stands above
    points, height, valid = _overlap(mirror[:, None] * Q, mirror * c, h_ref, h_inc)
    middle = jnp.concatenate([points, (h_ref[2] + 0.5 * height)[:, None]], axis=1) * mirror
    outward = jnp.where(jnp.arange(3) == 2, mirror, 0)
    middle, outward = cycle_back(middle.T, axis.k).T, cycle_back(outward, axis.k)
    second = axis.second
    normal = jnp.where(second, -rotate(R, outward), outward)
    return jnp.where(valid, height, FAR), normal, jnp.where(second, t + rotate(R, middle), middle)


def edge_contact(axis: Axis, R: Array, t: Array, h1: Array, h2: Array) -> tuple[Array, Array, Array, Array]:
    """Separation along the best edge axis n, n, and the closest points of the two edges that support the boxes along it."""
    i, j = axis.i.astype(t.dtype), axis.j.astype(t.dtype)
    b = rotate(R, j)
    n = cross(i, b)
    length = norm(n)
    good = lax.stop_gradient(length) > 0
    n = jnp.where(good, n / jnp.where(good, length, 1), unit_x(n))
    n = sign(lax.stop_gradient(dot(n, t))) * n
    c1 = (1 - i) * sign(lax.stop_gradient(n)) * h1
    c2 = t - rotate(R, (1 - j) * sign(lax.stop_gradient(rotate_back(R, n))) * h2)
    a1, a2 = i * h1, dot(j, h2) * b
    x1, x2 = closest_on_segments(c1, a1, c2, a2)
    return dot(n, c2 - c1), n, c1 + x1 * a1, c2 + x2 * a2


def closest_corner(R: Array, t: Array, h1: Array, h2: Array) -> tuple[Array, Array]:
    """The corner of one box that is nearest to the other, and its nearest point there: (point of box 1, point of box 2)."""
    R0, t0, a, b = (lax.stop_gradient(x) for x in (R, t, h1, h2))
    of_2 = t0 + rotate(R0, CORNERS * b)
    of_1 = rotate_back(R0, CORNERS * a - t0)
    excess = jnp.concatenate([of_2 - jnp.clip(of_2, -a, a), of_1 - jnp.clip(of_1, -b, b)])
    index = jnp.argmin(dot(excess, excess))
    bits = jnp.array([4, 2, 1], index.dtype)
    corner = jnp.where(index & bits > 0, 1, -1)
    x2 = t + rotate(R, corner * h2)
    x1 = rotate_back(R, corner * h1 - t)
    on_2 = index < 8
    return jnp.where(on_2, jnp.clip(x2, -h1, h1), corner * h1), jnp.where(on_2, x2, t + rotate(R, jnp.clip(x1, -h2, h2)))


def box_box(a: Shape, b: Shape):
    """8 slots. Overlap: the face of least penetration against the incident face, or one pair of edges. Apart: the same as long as it
    attains the distance of the boxes, else their closest pair of points."""
    R, t, h1, h2 = rotate_back(a.R, b.R.T).T, rotate_back(a.R, b.p - a.p), a.size, b.size
    axis = separating_axis(*(lax.stop_gradient(x) for x in (R, t, h1, h2)))
    size = lax.stop_gradient(jnp.sum(h1) + jnp.sum(h2))
    by_edge = axis.edge > axis.face + EDGE_BIAS * size
    heights, face_normal, face_points = face_contacts(axis, R, t, h1, h2)
    along, edge_normal, e1, e2 = edge_contact(axis, R, t, h1, h2)
    c1, c2 = closest_corner(R, t, h1, h2)
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
    return distance, rotate(a.R, normal), a.p + rotate(a.R, points)
