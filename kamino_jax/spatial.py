"""Rotations and rigid transforms.

Quaternions are (x, y, z, w), poses (x, y, z, qx, qy, qz, qw), twists and wrenches (linear, angular). Functions act on one
item; `jax.vmap` gives the families. Every norm, arctangent and division is guarded on its argument, so that values and derivatives
are finite at zero rotation.
"""

import jax.numpy as jnp
from jax import Array


def cross(a: Array, b: Array) -> Array:
    """A × b of vectors (..., 3): three times fewer operations to compile than component by component."""
    a0, a1, a2 = a[..., 0], a[..., 1], a[..., 2]
    b0, b1, b2 = b[..., 0], b[..., 1], b[..., 2]
    return jnp.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, a0 * b1 - a1 * b0], axis=-1)


def skew(a: Array) -> Array:
    """S(a) with S(a) b = a × b, (..., 3, 3)."""
    zero = jnp.zeros_like(a[..., 0])
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    return jnp.stack([jnp.stack([zero, -z, y], -1), jnp.stack([z, zero, -x], -1), jnp.stack([-y, x, zero], -1)], -2)


def sqrt(a: Array) -> Array:
    """√a, and 0 with zero derivatives of every order where a <= 0."""
    positive = a > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, a, 1)), 0)


def norm(a: Array) -> Array:
    """|a| over the last axis; derivative zero at a = 0."""
    return sqrt(jnp.sum(a * a, axis=-1))


def normalize(a: Array) -> Array:
    """A / |a|, and a itself (zero derivative of the length) where |a| = 0."""
    length = norm(a)[..., None]
    return a / jnp.where(length > 0, length, 1)


def atan2(y: Array, x: Array) -> Array:
    """Angle of (x, y); 0 with zero derivative at the origin."""
    origin = (x == 0) & (y == 0)
    return jnp.arctan2(y, jnp.where(origin, 1, x))


def quat_multiply(p: Array, q: Array) -> Array:
    """Hamilton product p q."""
    pv, pw, qv, qw = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    vector = pw * qv + qw * pv + cross(pv, qv)
    return jnp.concatenate([vector, pw * qw - jnp.sum(pv * qv, axis=-1, keepdims=True)], axis=-1)


def quat_conjugate(q: Array) -> Array:
    """Inverse of a unit quaternion."""
    return jnp.concatenate([-q[..., :3], q[..., 3:]], axis=-1)


def quat_rotate(q: Array, v: Array) -> Array:
    """R(q) v."""
    t = 2 * cross(q[..., :3], v)
    return v + q[..., 3:] * t + cross(q[..., :3], t)


def quat_matrix(q: Array) -> Array:
    """Rotation matrix of a unit quaternion, (..., 3, 3)."""
    x, y, z, w = q[..., 0], q[..., 1], q[..., 2], q[..., 3]
    row_x = jnp.stack([1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)], -1)
    row_y = jnp.stack([2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)], -1)
    row_z = jnp.stack([2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)], -1)
    return jnp.stack([row_x, row_y, row_z], -2)


def quat_exp(v: Array) -> Array:
    """Unit quaternion of a rotation vector: (sin(|v|/2) v/|v|, cos(|v|/2))."""
    square = jnp.sum(v * v, axis=-1, keepdims=True)
    small = square < 16 * jnp.finfo(v.dtype).eps
    half = 0.5 * jnp.sqrt(jnp.where(small, 1, square))
    # Taylor at 0: sin(h)/(2h) = 1/2 - |v|²/48, cos(h) = 1 - |v|²/8
    scale = jnp.where(small, 0.5 - square / 48, 0.5 * jnp.sin(half) / half)
    return jnp.concatenate([scale * v, jnp.where(small, 1 - square / 8, jnp.cos(half))], axis=-1)


def quat_log(q: Array) -> Array:
    """Rotation vector of a unit quaternion along the shortest arc; q and -q give the same."""
    q = jnp.where(q[..., 3:] < 0, -q, q)
    vector, w = q[..., :3], q[..., 3:]
    square = jnp.sum(vector * vector, axis=-1, keepdims=True)
    small = square < 16 * jnp.finfo(q.dtype).eps
    n = jnp.sqrt(jnp.where(small, 1, square))
    w_safe = jnp.where(small & (w > 0), w, 1)
    return jnp.where(small, (2 - 2 * square / (3 * w_safe * w_safe)) / w_safe, 2 * jnp.arctan2(n, w) / n) * vector


def pose_compose(a: Array, b: Array) -> Array:
    """Pose of b's frame, given in a's frame, in the frame of a's parent."""
    return jnp.concatenate([a[..., :3] + quat_rotate(a[..., 3:], b[..., :3]), quat_multiply(a[..., 3:], b[..., 3:])], axis=-1)


def advance(q: Array, u: Array, h: Array) -> Array:
    """Pose after moving with the world-frame twist u for time h: (r + h v, exp(h ω) q)."""
    return jnp.concatenate([q[..., :3] + h * u[..., :3], quat_multiply(quat_exp(h * u[..., 3:]), q[..., 3:])], axis=-1)


def inverse3(A: Array) -> Array:
    """Inverse of matrices (..., 3, 3) by cofactors."""
    r = A[..., 0, :], A[..., 1, :], A[..., 2, :]
    columns = jnp.stack([cross(r[1], r[2]), cross(r[2], r[0]), cross(r[0], r[1])], axis=-1)
    return columns / jnp.sum(r[0] * columns[..., 0], axis=-1)[..., None, None]


def cholesky3(A: Array) -> Array:
    """Lower triangular L with L Lᵀ = A for one symmetric positive semidefinite 3 x 3 matrix; zero columns where a pivot vanishes."""

    def pivot(a):
        root = sqrt(a)
        return root, jnp.where(a > 0, 1 / jnp.where(a > 0, root, 1), 0)

    l00, r0 = pivot(A[0, 0])
    l10, l20 = A[1, 0] * r0, A[2, 0] * r0
    l11, r1 = pivot(A[1, 1] - l10 * l10)
    l21 = (A[2, 1] - l20 * l10) * r1
    l22, _ = pivot(A[2, 2] - l20 * l20 - l21 * l21)
    zero = jnp.zeros_like(l00)
    return jnp.stack([jnp.stack([l00, zero, zero]), jnp.stack([l10, l11, zero]), jnp.stack([l20, l21, l22])])
