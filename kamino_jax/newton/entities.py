"""Bodies and joints of one world as builder records."""

import warnings

import numpy as np

from ..builder import rigid
from ..builder.axes import resolve_axes
from ..builder.coordinates import checked, zero_coordinates
from ..builder.dofs import DRIVES, parse_dofs
from ..builder.records import Body, Joint
from ..builder.rows import UNBOUNDED_EFFORT, UNLIMITED
from ..builder.validate import refuse, rotation
from ..model import DRIVE_EFFORT, DRIVE_NONE
from .arrays import Arrays

KINEMATIC = 2  # Newton's BodyFlags
# Kind by (linear, angular) DoFs; three angular ones are a ball joint with four coordinates, and a gimbal with three.
KINDS_BY_DOFS = {
    (0, 0): "fixed",
    (1, 0): "prismatic",
    (0, 1): "revolute",
    (1, 1): "cylindrical",
    (0, 2): "universal",
    (3, 0): "cartesian",
}
KINDS_BY_COORDINATES = {((0, 3), 3): "gimbal", ((0, 3), 4): "spherical", ((3, 3), 7): "free"}
DRIVE_NAMES = {code: name for name, code in DRIVES.items()}


def unique(labels: list[str]) -> list[str]:
    """The labels, repeated ones told apart by their position."""
    seen: set[str] = set()
    out = []
    for i, label in enumerate(labels):
        out.append(f"{label} ({i})" if label in seen else label)
        seen.add(label)
    return out


def unit_pose(owner: str, pose: np.ndarray) -> np.ndarray:
    """Pose (7,) with its quaternion normalised in double precision."""
    return np.concatenate([pose[:3], rotation(owner, "rotation", pose[3:])])


def bodies(world: Arrays) -> list[Body]:
    """One record per body. What Newton gives no inverse of counts as zero, so that such bodies do not move."""
    names = unique(world.body_label)
    return [
        Body(
            name=name,
            mass=world.body_mass[i] if world.body_inv_mass[i] > 0 else 0.0,
            inertia=(world.body_inertia[i] + world.body_inertia[i].T) / 2 * world.body_inv_inertia[i].any(),
            com=world.body_com[i],
            pose=unit_pose(f"body {name!r}", world.body_q[i]),
            twist=world.body_qd[i],
            kinematic=bool(world.body_flags[i] & KINEMATIC),
        )
        for i, name in enumerate(names)
    ]


def joints(world: Arrays) -> list[Joint]:
    """One record per joint.

    Raises:
        ValueError: a kind, axes or parameters that this solver does not have, with the joint's name and the remedy.
    """
    return [_joint(world, j, name) for j, name in enumerate(unique(world.joint_label))]


def _joint(world, j, name):
    owner = f"joint {name!r}"
    coordinates, dofs = slice(*world.joint_q_start[j : j + 2]), slice(*world.joint_qd_start[j : j + 2])
    kind = _kind(owner, tuple(map(int, world.joint_dof_dim[j])), coordinates.stop - coordinates.start)
    kind, A, handedness = resolve_axes(owner, kind, None, _axes(owner, kind, world.joint_axis[dofs]))
    turn = np.concatenate([np.zeros(3), rigid.from_matrix(A)])
    parameters, mode = parse_dofs(owner, kind, _options(owner, kind, world, dofs))
    return Joint(
        name=name,
        kind=kind,
        parent=int(world.joint_parent[j]),
        child=int(world.joint_child[j]),
        X_B=rigid.compose(unit_pose(owner, world.joint_X_p[j]), turn),
        X_F=rigid.compose(unit_pose(owner, world.joint_X_c[j]), turn),
        handedness=handedness,
        dofs=parameters,
        mode=mode,
        coordinates=world.joint_q[coordinates],
        target=_target(owner, kind, world.joint_target_q[coordinates]),
    )


def _kind(owner, dims, coordinates):
    kind = KINDS_BY_DOFS.get(dims) or KINDS_BY_COORDINATES.get((dims, coordinates))
    if kind is None:
        refuse(
            owner,
            f"{dims[0]} linear and {dims[1]} angular DoFs with {coordinates} coordinates make no joint of this solver (it has fixed, "
            "revolute, prismatic, cylindrical, universal, gimbal, ball, three linear axes, and free); put simple joints and a light "
            "body in a row instead",
        )
    return kind


def _axes(owner, kind, axes):
    if kind == "fixed":
        return None
    if kind == "free" and np.abs(axes[:3] - axes[3:]).max() > 0:
        refuse(owner, "the linear and angular axes of a FREE joint differ; use the same three")
    lengths = np.linalg.norm(axes, axis=1)
    if kind in ("universal", "gimbal") or not lengths.all():
        return list(axes)
    return list((axes / lengths[:, None])[:3])


def _options(owner, kind, world, dofs):
    """Keyword options of `parse_dofs`."""
    lower, upper = world.joint_limit_lower[dofs], world.joint_limit_upper[dofs]
    lower, upper = np.where(lower <= -UNLIMITED, -np.inf, lower), np.where(upper >= UNLIMITED, np.inf, upper)
    limited = np.isfinite(lower) | np.isfinite(upper)
    mode = world.joint_target_mode[dofs]
    if kind == "free":
        mode = np.where(mode == DRIVE_EFFORT, DRIVE_NONE, mode)  # either way joint_f is a wrench on the body
    drives = [_drive(owner, code) for code in mode]
    driven = ~np.isin(mode, (DRIVE_NONE, DRIVE_EFFORT))
    effort = world.joint_effort_limit[dofs]
    return {
        "limits": list(zip(lower, upper, strict=True)) if limited.any() else None,
        "limit_stiffness": np.where(limited, world.joint_limit_ke[dofs], 0),
        "limit_damping": np.where(limited, world.joint_limit_kd[dofs], 0),
        "armature": world.joint_armature[dofs],
        "damping": world.joint_damping[dofs],
        "friction": _friction(owner, kind, world.joint_friction[dofs]),
        "drive": drives if any(drives) else None,
        "kp": np.where(driven, world.joint_target_ke[dofs], 0),
        "kd": np.where(driven, world.joint_target_kd[dofs], 0),
        "effort_max": np.where(effort >= UNBOUNDED_EFFORT, np.inf, effort),
    }


def _drive(owner, code):
    if code not in DRIVE_NAMES:
        refuse(owner, f"joint_target_mode is {code}; it must be one of NONE, POSITION, VELOCITY, POSITION_VELOCITY, EFFORT (0 to 4)")
    return DRIVE_NAMES[code]


def _friction(owner, kind, friction):
    if kind == "free" and friction.any():
        warnings.warn(f"{owner}: friction on a FREE joint is ignored, as by SolverKamino", stacklevel=2)
        return np.zeros_like(friction)
    return friction


def _target(owner, kind, target):
    """Targets; a quaternion of zeros is one that nobody set."""
    if kind in ("spherical", "free") and not target[-4:].any():
        target = np.concatenate([target[:-4], zero_coordinates("spherical")])
    return checked(owner, "target", kind, target)
