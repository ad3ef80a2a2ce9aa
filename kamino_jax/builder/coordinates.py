"""Joint coordinates from two joint frames, on the host: what the start of a simulation counts angles from."""

import numpy as np

from ..joints.kinds import KINDS
from . import rigid
from .validate import numbers, refuse, rotation

TURN = 2 * np.pi
COORDINATE_TOLERANCE = 1e-3  # [m, rad] given coordinates may differ from the poses by as much as hand-typed numbers do


def coordinates_between(kind: str, handedness: float, frame_B: np.ndarray, frame_F: np.ndarray) -> np.ndarray:
    """Coordinates of a joint of this kind whose frames stand at the given world poses (7,); angles in [-π, π]."""
    relative = rigid.compose(rigid.inverse(frame_B), frame_F)
    rho = relative[3:] if relative[6] >= 0 else -relative[3:]
    entries = np.concatenate([relative[:3], _angles(kind, handedness, rho), rho])
    return entries[list(KINDS[kind].coordinates)]


def _angles(kind, handedness, rho):
    """The rotational DoF-space values (3,), zero where the kind has none."""
    R = rigid.matrix(rho)
    if kind == "revolute":
        return np.array([2 * np.arctan2(rho[0], rho[3]), 0, 0])
    if kind == "cylindrical":
        return np.array([rigid.log(rho)[0], 0, 0])
    if kind == "universal":
        x, y = R[:, 0], R[:, 1]
        return np.array([np.arctan2(y[2], y[1]), np.arctan2(np.cross([1, 0, 0], x) @ y, x[0]), 0])
    if kind.startswith("gimbal"):
        last = np.arctan2(-R[0, 1], R[0, 0])
        return np.array([np.arctan2(-R[1, 2], R[2, 2]), np.arcsin(np.clip(R[0, 2], -1, 1)), handedness * last])
    return np.zeros(3)


def zero_coordinates(kind: str) -> np.ndarray:
    """Coordinates of the joint with its frames on top of each other: 0, and the identity quaternion."""
    entries = np.zeros(10)
    entries[9] = 1
    return entries[list(KINDS[kind].coordinates)]


def checked(owner: str, name: str, kind: str, value) -> np.ndarray:
    """`value` as coordinates of this kind; one number will do for one coordinate. Quaternions are normalised."""
    n = len(KINDS[kind].coordinates)
    array = numbers(owner, name, [value] if n == 1 and np.ndim(value) == 0 else value, (n,)).copy()
    if kind in ("spherical", "free"):
        array[-4:] = rotation(owner, name, array[-4:])
    return array


def start_coordinates(owner: str, kind: str, given, measured: np.ndarray) -> np.ndarray:
    """The given coordinates, which must agree with those `measured` from the poses up to full turns; `measured` if None.

    Gimbals name one rotation in two ways, so they are taken at their word.
    """
    if given is None:
        return measured
    array = checked(owner, "coordinates", kind, given)
    error = array - measured
    angular = np.array([3 <= c <= 5 for c in KINDS[kind].coordinates])
    error = np.where(angular, error - TURN * np.round(error / TURN), error)
    if kind in ("spherical", "free") and array[-4:] @ measured[-4:] < 0:
        error[-4:] = array[-4:] + measured[-4:]
    if not kind.startswith("gimbal") and np.abs(error).max(initial=0) > COORDINATE_TOLERANCE:
        told, seen = array.tolist(), measured.tolist()
        refuse(owner, f"coordinates are {told}, but the poses of its bodies say {seen}; they may only differ by full turns")
    return array
