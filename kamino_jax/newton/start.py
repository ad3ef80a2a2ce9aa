"""Where Newton's worlds stand: joint coordinates from body poses, on the host (compiling this would take longer than doing it)."""

import numpy as np

from ..builder import rigid
from ..builder.coordinates import TURN, coordinates_between
from ..builder.records import Joint
from ..joints.kinds import KINDS, QUATERNION, ROTATION


def measured_coordinates(joints: list[Joint], body_q: np.ndarray, joint_q: np.ndarray) -> np.ndarray:
    """Coordinates (nq,) of one world whose body origins have the poses body_q (nb, 7), in the turn nearest joint_q (nq,)."""
    poses = [*(np.append(p[:3], p[3:] / np.linalg.norm(p[3:])) for p in body_q), rigid.world_pose()]
    parts, start = [np.zeros(0)], 0
    for joint in joints:
        seen = coordinates_between(
            joint.kind,
            joint.handedness,
            rigid.compose(poses[joint.parent], joint.X_B),
            rigid.compose(poses[joint.child], joint.X_F),
        )
        parts.append(nearest(joint.kind, joint.handedness, seen, joint_q[start : start + len(seen)]))
        start += len(seen)
    return np.concatenate(parts)


def nearest(kind: str, handedness: float, seen: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """The same coordinates plus the whole turns, of the gimbal triple, and with the sign of the quaternion nearest the reference."""
    entries = np.array(KINDS[kind].coordinates, int)
    angular = np.isin(entries, ROTATION)
    unwrap = lambda c: np.where(angular, c + TURN * np.round((reference - c) / TURN), c)
    near = unwrap(seen)
    if kind.startswith("gimbal"):
        other = unwrap(np.array([seen[0] + np.pi, np.pi - seen[1], seen[2] + handedness * np.pi]))
        near = min(near, other, key=lambda c: np.sum((c - reference) ** 2))
    quaternion = np.isin(entries, QUATERNION)
    return np.where(quaternion & (near[quaternion] @ reference[quaternion] < 0), -near, near)


def centre_poses(body_q: np.ndarray, com: np.ndarray) -> np.ndarray:
    """Poses (..., 7) of the centres of mass `com` (..., 3) of bodies whose origins have the poses body_q, unit quaternions."""
    q = body_q[..., 3:] / np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    t = 2 * np.cross(q[..., :3], com)
    return np.concatenate([body_q[..., :3] + com + q[..., 3:] * t + np.cross(q[..., :3], t), q], axis=-1)
