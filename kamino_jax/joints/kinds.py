"""The ten joint types as data: which joint-space axes are constrained, which are DoFs, how coordinates are stored.

Every joint has six joint-space axes, 0..5 = Tx Ty Tz Rx Ry Rz in the base joint frame, and ten coordinate entries: the six DoF-space values
(translation, angles) followed by the relative quaternion (6..9 = x y z w). A type only picks from them; the maths of each
type stands in `kinematics.py`. Codes follow Kamino's `JointDoFType`.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class JointKind:
    """One joint type: `constrained` axes in row order, `dofs` axes, and `coordinates` entries."""

    code: int
    constrained: tuple[int, ...]
    dofs: tuple[int, ...]
    coordinates: tuple[int, ...]


TRANSLATION, ROTATION, QUATERNION = (0, 1, 2), (3, 4, 5), (6, 7, 8, 9)
KINDS = {
    "free": JointKind(0, (), TRANSLATION + ROTATION, TRANSLATION + QUATERNION),
    "revolute": JointKind(1, (0, 1, 2, 4, 5), (3,), (3,)),
    "prismatic": JointKind(2, (1, 2, 3, 4, 5), (0,), (0,)),
    "cylindrical": JointKind(3, (1, 2, 4, 5), (0, 3), (0, 3)),
    "universal": JointKind(4, (0, 1, 2, 5), (3, 4), (3, 4)),
    "spherical": JointKind(5, TRANSLATION, ROTATION, QUATERNION),
    "cartesian": JointKind(6, ROTATION, TRANSLATION, TRANSLATION),
    "fixed": JointKind(7, TRANSLATION + ROTATION, (), ()),
    "gimbal": JointKind(8, TRANSLATION, ROTATION, ROTATION),
    "gimbal_left_handed": JointKind(9, TRANSLATION, ROTATION, ROTATION),
}
