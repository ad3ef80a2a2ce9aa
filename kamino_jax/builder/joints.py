"""Joints: placement, axes, parameters."""

from typing import Unpack

import numpy as np

from ..joints.kinds import KINDS
from . import rigid
from .axes import resolve_axes
from .coordinates import checked, coordinates_between, start_coordinates, zero_coordinates
from .dofs import DofOptions, parse_dofs
from .records import Body, Joint
from .validate import known_options, new_name, numbers, pose, refuse

FRAMES = ("parent_position", "parent_rotation", "child_position", "child_rotation")


class JointOptions(DofOptions, total=False):
    """Keyword options of every joint. Place it with `at` (axes in world directions), or with frames (axes in the joint frame)."""

    name: str | None  # automatic if left out
    at: tuple  # (3,) [m] the joint's point in the world; coordinates start at 0
    axis: tuple | str  # direction of the one axis of a revolute, prismatic or cylindrical joint; "x", "y" or "z" will do
    axes: tuple  # two (universal) or three orthogonal unit axes; default x, y, z
    parent_position: tuple  # (3,) [m] joint frame in the parent body's frame (world frame without parent)
    parent_rotation: tuple  # (4,) quaternion x y z w
    child_position: tuple  # (3,) [m] joint frame in the child body's frame
    child_rotation: tuple  # (4,)
    target: float | tuple  # where the drive starts to aim, per coordinate; default 0 and the identity quaternion
    coordinates: float | tuple  # what the coordinates count from, e.g. 4.0 rad for a hinge past half a turn


def make_joint(name: str, kind: str, bodies: list[Body], ends: tuple[int, int], given: JointOptions) -> Joint:
    """Checked record of a joint between the bodies with the indices `ends` (parent -1: the world)."""
    owner = f"joint {name!r}"
    kind, A, handedness = resolve_axes(owner, kind, given.get("axis"), given.get("axes"))
    poses = [rigid.world_pose() if i == -1 else bodies[i].pose for i in ends]
    X_B, X_F = _frames(owner, kind, A, poses, given)
    measured = coordinates_between(kind, handedness, rigid.compose(poses[0], X_B), rigid.compose(poses[1], X_F))
    dofs, mode = parse_dofs(owner, kind, {k: v for k, v in given.items() if k in DofOptions.__annotations__})
    target = given.get("target")
    return Joint(
        name=name,
        kind=kind,
        parent=ends[0],
        child=ends[1],
        X_B=X_B,
        X_F=X_F,
        handedness=handedness,
        dofs=dofs,
        mode=mode,
        coordinates=start_coordinates(owner, kind, given.get("coordinates"), measured),
        target=zero_coordinates(kind) if target is None else checked(owner, "target", kind, target),
    )


def _frames(owner, kind, A, poses, given):
    """Joint frames in the two bodies, the axes folded in."""
    local = [key for key in FRAMES if key in given]
    if given.get("at") is not None:
        if local:
            refuse(owner, f"has both at and {local[0]}; place it either by at (in the world) or by frames (in its bodies)")
        frame = np.concatenate([numbers(owner, "at", given["at"], (3,)), rigid.from_matrix(A)])
        return [rigid.compose(rigid.inverse(p), frame) for p in poses]
    if not local and kind == "fixed":  # welds the bodies as they stand
        return [rigid.compose(rigid.inverse(p), poses[1]) for p in poses]
    if not local and kind != "free":
        refuse(owner, "is not placed; give at=(x, y, z) in the world, or parent_position and child_position in the bodies")
    axes = np.concatenate([np.zeros(3), rigid.from_matrix(A)])
    frames = []
    for end in ("parent", "child"):
        position, turn = given.get(f"{end}_position", (0, 0, 0)), given.get(f"{end}_rotation", rigid.IDENTITY)
        frames.append(rigid.compose(pose(owner, f"{end}_", position, turn), axes))
    return frames


class JointMethods:
    """The `add_<joint>` methods of `ModelBuilder`. `parent` is a body's name or None for the world; each returns the joint's name.

    Keyword options are those of `JointOptions`.
    """

    _bodies: list[Body]
    _joints: list[Joint]

    def _body_index(self, owner: str, name, *, world: bool = True) -> int:
        raise NotImplementedError

    def add_joint(self, kind: str, parent: str | None, child: str, **options: Unpack[JointOptions]) -> str:
        """A joint of a kind in `kamino_jax.joints.KINDS`. The motion of the child relative to the parent counts positive.

        Raises:
            ValueError: an unknown kind or body, a joint of a body with itself, bad axes, frames, limits, gains or coordinates.
            TypeError: an unknown option, or a value of the wrong type.
        """
        name = new_name("joint", options.get("name"), [j.name for j in self._joints])
        owner = f"joint {name!r}"
        if kind not in KINDS:
            refuse(owner, f"kind is {kind!r}; it must be one of {', '.join(KINDS)}")
        known_options(owner, options, JointOptions.__annotations__)
        ends = self._body_index(owner, parent), self._body_index(owner, child, world=False)
        if ends[0] == ends[1]:
            refuse(owner, f"joins body {child!r} with itself; a joint needs two bodies, or parent None for the world")
        self._joints.append(make_joint(name, kind, self._bodies, ends, options))
        return name

    def add_free(self, parent: str | None, child: str, **options: Unpack[JointOptions]) -> str:
        """No constraint; reads the child's pose in the parent's frame. Bodies without any joint are free as well."""
        return self.add_joint("free", parent, child, **options)

    def add_fixed(self, parent: str | None, child: str, **options: Unpack[JointOptions]) -> str:
        """Welds two bodies, as they stand unless frames are given."""
        return self.add_joint("fixed", parent, child, **options)

    def add_revolute(self, parent: str | None, child: str, **options: Unpack[JointOptions]) -> str:
        """Hinge: turns about `axis`."""
        return self.add_joint("revolute", parent, child, **options)

    def add_prismatic(self, parent: str | None, child: str, **options: Unpack[JointOptions]) -> str:
        """Slider: moves along `axis`."""
        return self.add_joint("prismatic", parent, child, **options)

    def add_cylindrical(self, parent: str | None, child: str, **options: Unpack[JointOptions]) -> str:
        """Slides along `axis` (DoF 0) and turns about it (DoF 1)."""
        return self.add_joint("cylindrical", parent, child, **options)

    def add_universal(self, parent: str | None, child: str, **options: Unpack[JointOptions]) -> str:
        """Cardan joint: turns about `axes` [0], fixed in the parent, and [1], fixed in the child."""
        return self.add_joint("universal", parent, child, **options)

    def add_spherical(self, parent: str | None, child: str, **options: Unpack[JointOptions]) -> str:
        """Ball joint; its four coordinates are a quaternion x y z w."""
        return self.add_joint("spherical", parent, child, **options)

    def add_gimbal(self, parent: str | None, child: str, **options: Unpack[JointOptions]) -> str:
        """Three turns about `axes`, one after the other; left-handed axes make a left-handed gimbal."""
        return self.add_joint("gimbal", parent, child, **options)

    def add_cartesian(self, parent: str | None, child: str, **options: Unpack[JointOptions]) -> str:
        """Slides along the three `axes`, does not turn."""
        return self.add_joint("cartesian", parent, child, **options)
