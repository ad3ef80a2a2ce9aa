"""What the collision tests compare with: random shapes, rotations, and brute-force distances in NumPy."""

import itertools

import jax.numpy as jnp
import numpy as np

from kamino_jax.collision.kinds import SLOTS
from kamino_jax.collision.shapes import Shape

KINDS = tuple(SLOTS)
CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
EDGES = [(i, j) for i, j in itertools.combinations(range(8), 2) if np.sum(CORNERS[i] != CORNERS[j]) == 1]


def rotation(axis, angle):
    """Matrix of a rotation about an axis (Rodrigues)."""
    x, y, z = np.asarray(axis, float) / np.linalg.norm(axis)
    K = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K


def quaternion_rotation(q):
    """Matrix of a quaternion (x, y, z, w)."""
    angle = 2 * np.arctan2(np.linalg.norm(q[:3]), q[3])
    return np.eye(3) if np.linalg.norm(q[:3]) == 0 else rotation(q[:3], angle)


def random_rotation(rng):
    return quaternion_rotation(rng.normal(size=4))


def shape(p, R, size, dtype=None):
    """One shape as the pair functions take it."""
    dtype = dtype or jnp.zeros(()).dtype
    size = np.pad(np.asarray(size, float), (0, 3 - len(size)))
    return Shape(jnp.asarray(np.asarray(p, float), dtype), jnp.asarray(R, dtype), jnp.asarray(size, dtype))


def random_pair(rng, spread=0.35):
    """Two shapes of about 0.3 m, near enough to touch now and then."""
    pair = [shape(rng.normal(size=3) * spread, random_rotation(rng), rng.uniform(0.1, 0.4, 3)) for _ in range(2)]
    return tuple(pair)


def segments_distance(a0, a1, b0, b1):
    """Least distance of two segments: interior solution, or an end of one against the other."""

    def to_segment(p, s0, s1):
        d = s1 - s0
        return np.linalg.norm(p - s0 - np.clip((p - s0) @ d / (d @ d), 0, 1) * d)

    best = min(to_segment(a0, b0, b1), to_segment(a1, b0, b1), to_segment(b0, a0, a1), to_segment(b1, a0, a1))
    x, *_ = np.linalg.lstsq(np.stack([a1 - a0, b0 - b1], 1), b0 - a0, rcond=None)
    if np.all((x >= 0) & (x <= 1)):
        best = min(best, np.linalg.norm(a0 + x[0] * (a1 - a0) - b0 - x[1] * (b1 - b0)))
    return best


def box_distance(points, p, R, h):
    """Distances of points (k, 3) to a box."""
    x = (points - p) @ R
    return np.linalg.norm(x - np.clip(x, -h, h), axis=-1)


def segment_box_distance(c, d, length, p, R, h):
    """Distance of the segment c + t d, |t| <= length, to a box: golden section on a convex function."""
    lo, hi = -length, length
    f = lambda t: box_distance((c + t * d)[None], p, R, h)[0]
    for _ in range(90):
        a, b = hi - 0.6180339887 * (hi - lo), lo + 0.6180339887 * (hi - lo)
        lo, hi = (lo, b) if f(a) <= f(b) else (a, hi)
    return f(0.5 * (lo + hi))


def box_axes(R1, R2):
    """Unit normals of the 15 candidate separating axes of two boxes."""
    crosses = [np.cross(R1[:, i], R2[:, j]) for i in range(3) for j in range(3)]
    return np.array([*R1.T, *R2.T, *(x / np.linalg.norm(x) for x in crosses if np.linalg.norm(x) > 1e-6)])


def box_box_distance(p1, R1, h1, p2, R2, h2):
    """Signed distance of two boxes: minus the least penetration over the axes, or the least distance of vertices and edges."""
    axes = box_axes(R1, R2)
    separation = np.max(np.abs(axes @ (p2 - p1)) - np.abs(axes @ R1) @ h1 - np.abs(axes @ R2) @ h2)
    if separation <= 0:
        return separation
    v1, v2 = p1 + (CORNERS * h1) @ R1.T, p2 + (CORNERS * h2) @ R2.T
    edges = min(segments_distance(v1[i], v1[j], v2[k], v2[m]) for i, j in EDGES for k, m in EDGES)
    return min(edges, box_distance(v1, p2, R2, h2).min(), box_distance(v2, p1, R1, h1).min())


def surface_distance(kind, x, s):
    """Signed distance of a point to the surface of a shape (not for ellipsoids)."""
    p, R, size = (np.asarray(v) for v in (s.p, s.R, s.size))
    x = R.T @ (x - p)
    if kind == "plane":
        return x[2]
    if kind == "sphere":
        return np.linalg.norm(x) - size[0]
    if kind == "capsule":
        return np.linalg.norm(x - [0, 0, np.clip(x[2], -size[1], size[1])]) - size[0]
    q = np.array([np.hypot(x[0], x[1]) - size[0], abs(x[2]) - size[1]]) if kind == "cylinder" else np.abs(x) - size
    return np.linalg.norm(np.maximum(q, 0)) + min(q.max(), 0)
