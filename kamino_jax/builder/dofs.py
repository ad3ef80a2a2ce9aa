"""Per-DoF parameters of a joint: limits, drive, armature, damping, friction."""

from typing import TypedDict

import numpy as np

from ..joints.kinds import KINDS
from ..model import DRIVE_EFFORT, DRIVE_NONE, DRIVE_POSITION, DRIVE_POSITION_VELOCITY, DRIVE_VELOCITY
from .validate import not_negative, numbers, refuse

DRIVES = {
    None: DRIVE_NONE,
    "position": DRIVE_POSITION,
    "velocity": DRIVE_VELOCITY,
    "position_velocity": DRIVE_POSITION_VELOCITY,
    "effort": DRIVE_EFFORT,
}
NOT_NEGATIVE = ("limit_stiffness", "limit_damping", "armature", "damping", "friction", "kp", "kd", "effort_max")


class DofOptions(TypedDict, total=False):
    """Joint parameters: one value for all DoFs of the joint, or a sequence with one per DoF."""

    limits: tuple | None  # (lower, upper) [m or rad], or one pair or None per DoF
    limit_stiffness: float  # [N/m, N m/rad] used with limit_compliance
    limit_damping: float  # [N s/m, N m s/rad]
    armature: float  # [kg, kg m²]
    damping: float  # [N s/m, N m s/rad]
    friction: float  # [N, N m]
    drive: str | None  # "position", "velocity", "position_velocity" or "effort"
    kp: float  # [N/m, N m/rad] drive stiffness
    kd: float  # [N s/m, N m s/rad] drive damping
    effort_max: float  # [N, N m]


def parse_dofs(owner: str, kind: str, given: DofOptions) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The per-DoF fields of `Joints` and the DRIVE_* modes, each (number of DoFs,)."""
    n = len(KINDS[kind].dofs)
    if kind == "free":
        _refuse_on_free(owner, given)
    values: dict = {**dict.fromkeys(NOT_NEGATIVE, 0.0), "effort_max": np.inf, **given}
    dofs = {name: _per_dof(owner, name, values[name], n) for name in NOT_NEGATIVE}
    dofs["q_min"], dofs["q_max"] = _limits(owner, given.get("limits"), n)
    drives = given.get("drive")
    mode = _modes(owner, drives, n)
    _check_gains(owner, mode, dofs)
    return dofs, mode


def _refuse_on_free(owner, given):
    idle = {"effort_max": np.inf, "limits": None, "drive": None}
    for name, value in given.items():
        nothing = idle.get(name, 0.0)
        if value is not None and (nothing is None or np.any(np.not_equal(value, nothing))):
            refuse(owner, f"a free joint takes no {name}; leave it out, and push the body with Control.tau or Control.w_ext")


def _per_dof(owner, name, value, n):
    shape = () if np.ndim(value) == 0 else (n,)
    return np.broadcast_to(not_negative(owner, name, value, shape, infinite=name == "effort_max"), (n,))


def _limits(owner, limits, n):
    """Lower and upper limits (n,), infinite where there is none."""
    if limits is None:
        pairs = [None] * n
    elif len(limits) == 2 and all(np.ndim(x) == 0 and x is not None for x in limits):
        pairs = [limits] * n
    else:
        pairs = list(limits)
    if len(pairs) != n:
        refuse(owner, f"limits has {len(pairs)} entries for {n} DoFs; give (lower, upper), or one pair (or None) per DoF")
    both = [(-np.inf, np.inf) if p is None else numbers(owner, "limits", p, (2,), infinite=True) for p in pairs]
    table = np.reshape(np.array(both, float), (n, 2))
    for lower, upper in table:
        if lower > upper:
            refuse(owner, f"limits are ({lower:g}, {upper:g}); the lower one comes first")
    return table[:, 0], table[:, 1]


def _modes(owner, drives, n):
    each = [drives] * n if drives is None or isinstance(drives, str) else list(drives)
    if len(each) != n:
        refuse(owner, f"drive has {len(each)} entries for {n} DoFs; give one name, or one per DoF")
    for drive in each:
        if drive not in DRIVES:
            refuse(owner, f"drive is {drive!r}; it must be one of {', '.join(repr(d) for d in DRIVES)}")
    return np.array([DRIVES[d] for d in each], np.int32).reshape(n)


def _check_gains(owner, mode, dofs):
    """A drive without gain, and a gain without drive, do nothing: both are mistakes."""
    names = {code: name for name, code in DRIVES.items()}
    for code, kp, kd in zip(mode, dofs["kp"], dofs["kd"], strict=True):
        if code in (DRIVE_POSITION, DRIVE_POSITION_VELOCITY) and kp == 0 and kd == 0:
            refuse(owner, f"drive {names[code]!r} has no gain; give kp and kd, e.g. kp=100.0, kd=1.0")
        if code == DRIVE_VELOCITY and kd == 0:
            refuse(owner, "drive 'velocity' has no gain; give kd, e.g. kd=1.0")
        if code in (DRIVE_NONE, DRIVE_EFFORT) and (kp or kd):
            refuse(owner, f"drive {names[code]!r} ignores the gains kp {kp:g}, kd {kd:g}; give drive='position' or leave them out")
