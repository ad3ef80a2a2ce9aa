"""Rotations and poses on the host, in numpy. Same conventions as `kamino_jax.spatial`: quaternions (x, y, z, w), poses (7,)."""

import numpy as np

IDENTITY = (0.0, 0.0, 0.0, 1.0)


def multiply(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Hamilton product p q."""
    vector = p[3] * q[:3] + q[3] * p[:3] + np.cross(p[:3], q[:3])
    return np.append(vector, p[3] * q[3] - p[:3] @ q[:3])


def conjugate(q: np.ndarray) -> np.ndarray:
    """Inverse of a unit quaternion."""
    return np.append(-q[:3], q[3])


def matrix(q: np.ndarray) -> np.ndarray:
    """Rotation matrix of a unit quaternion."""
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def from_matrix(R: np.ndarray) -> np.ndarray:
    """Unit quaternion with w >= 0 of a rotation matrix; divides by the largest component, so no angle is ill-conditioned."""
    trace = np.trace(R)
    i = int(np.argmax([R[0, 0], R[1, 1], R[2, 2], trace]))
    q = np.empty(4)
    if i == 3:
        q[:] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], 1 + trace
    else:
        j, k = (i + 1) % 3, (i + 2) % 3
        q[i] = 1 - trace + 2 * R[i, i]
        q[j], q[k], q[3] = R[j, i] + R[i, j], R[k, i] + R[i, k], R[k, j] - R[j, k]
    q /= np.linalg.norm(q)
    return -q if q[3] < 0 else q


def rotate(q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """R(q) v."""
    return matrix(q) @ v


def exp(v: np.ndarray) -> np.ndarray:
    """Unit quaternion of a rotation vector."""
    angle = np.linalg.norm(v)
    return np.append(0.5 * np.sinc(angle / (2 * np.pi)) * np.asarray(v), np.cos(angle / 2))


def log(q: np.ndarray) -> np.ndarray:
    """Rotation vector of a unit quaternion along the shortest arc."""
    q = -q if q[3] < 0 else q
    length = np.linalg.norm(q[:3])
    return 2 * q[:3] if length < 1e-12 else 2 * np.arctan2(length, q[3]) / length * q[:3]


def compose(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Pose of b's frame, given in a's frame, in the frame of a's parent."""
    return np.concatenate([a[:3] + rotate(a[3:], b[:3]), multiply(a[3:], b[3:])])


def inverse(a: np.ndarray) -> np.ndarray:
    """Pose of the parent in a's frame."""
    back = conjugate(a[3:])
    return np.concatenate([-rotate(back, a[:3]), back])


def world_pose() -> np.ndarray:
    """Pose of the world in itself."""
    return np.array([0.0, 0.0, 0.0, *IDENTITY])
