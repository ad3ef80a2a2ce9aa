"""Row tables: which constraint rows a joint owns, and where a DoF's command acts."""

import dataclasses

import numpy as np

from ..joints.kinds import KINDS
from ..layout import Rows
from ..model import DRIVE_POSITION, DRIVE_POSITION_VELOCITY, DRIVE_VELOCITY, PATH_DYNAMIC, PATH_EFFORT, PATH_WRENCH
from .records import Joint

UNBOUNDED_EFFORT = 1e6  # [N, N m] effort limits from here on count as none (Newton's default is this number)
UNLIMITED = 1e10  # [m, rad] joint limits from here on count as none (Newton's MAXVAL)


@dataclasses.dataclass(frozen=True, eq=False)
class JointTables:
    """Index tables of `Topology` and the row counts without contacts."""

    rows: Rows
    row: np.ndarray  # (rows.nj,)
    row_dof: np.ndarray  # (rows.nj,)
    dof: np.ndarray  # (nv,)
    coordinate: np.ndarray  # (nq,)
    entry: np.ndarray  # (nj, 10)
    path: np.ndarray  # (nv,)


def joint_tables(joints: list[Joint], free_to_move: list[bool]) -> JointTables:
    """Tables of all joints, in joint order and, within a joint, in axis order.

    `free_to_move` says whether a joint has a movable end; the others keep coordinates but own no rows.
    """
    families: dict[str, list] = {"dynamic": [], "kinematic": [], "friction": [], "effort": [], "limit": []}
    dof, coordinate, path = [], [], []
    for j, (joint, moves) in enumerate(zip(joints, free_to_move, strict=True)):
        kind = KINDS[joint.kind]
        own = classify(joint)
        if moves:
            families["kinematic"] += [(6 * j + axis, 0) for axis in kind.constrained]
            for name, mask in own.items():
                families[name] += [(6 * j + axis, len(dof) + d) for d, axis in enumerate(kind.dofs) if mask[d]]
        wheres = np.where(own["effort"], PATH_EFFORT, np.where(own["dynamic"], PATH_DYNAMIC, PATH_WRENCH))
        path += list(wheres if moves else np.full(len(kind.dofs), PATH_WRENCH))
        dof += [6 * j + axis for axis in kind.dofs]
        coordinate += [10 * j + entry for entry in kind.coordinates]
    counts = [len(families[name]) for name in families]
    table = np.array([entry for rows in families.values() for entry in rows], np.int32).reshape(-1, 2)
    dof, coordinate, path = (np.array(x, np.int32) for x in (dof, coordinate, path))
    entry = inverse_entries(coordinate, len(joints))
    return JointTables(Rows(*counts), row=table[:, 0], row_dof=table[:, 1], dof=dof, coordinate=coordinate, entry=entry, path=path)


def inverse_entries(coordinate: np.ndarray, nj: int) -> np.ndarray:
    """(nj, 10) coordinate behind each coordinate entry of each joint; the number of coordinates where there is none."""
    entry = np.full(10 * nj, len(coordinate), np.int32)
    entry[coordinate] = np.arange(len(coordinate))
    return entry.reshape(nj, 10)


def classify(joint: Joint) -> dict[str, np.ndarray]:
    """Which of a joint's DoFs own a dynamic, friction, effort and limit row, bool (number of DoFs,).

    Source: Newton `kamino/_src/core/joints.py`.
    """
    d = joint.dofs
    stiff = np.isin(joint.mode, (DRIVE_POSITION, DRIVE_POSITION_VELOCITY)) & ((d["kp"] > 0) | (d["kd"] > 0))
    implicit = stiff | ((joint.mode == DRIVE_VELOCITY) & (d["kd"] > 0))
    bounded = d["effort_max"] < UNBOUNDED_EFFORT
    return {
        "dynamic": (d["armature"] > 0) | (d["damping"] > 0) | (implicit & ~bounded),
        "friction": d["friction"] > 0,
        "effort": implicit & bounded,
        "limit": (d["q_min"] > -UNLIMITED) | (d["q_max"] < UNLIMITED),
    }
