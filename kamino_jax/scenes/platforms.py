"""Spatial loops and rings: a Stewart platform, a Hoberman ring."""

import math

import numpy as np

from ..builder import ModelBuilder
from ..builder.rigid import from_matrix
from .parts import Scene, add_rod, point, ready


def stewart_platform(*, height: float = 0.8, kp: float = 2e4, kd: float = 400.0, dtype=None) -> Scene:
    """A hexapod with six degrees of freedom: a disc of 10 kg on six legs, each a universal joint, a driven slider and a ball joint.

    The sliders hold the length of the start; `Control.q_ref` moves the platform.
    """
    builder = ModelBuilder()
    builder.add_body("platform", position=(0, 0, height))
    builder.add_cylinder("platform", 0.3, 0.02, name="disc", mass=10.0, collides=False)
    for i in range(6):
        # neighbouring legs share a corner of the triangle below, other neighbours one of the triangle above
        foot = _on_circle(0.5, math.pi / 3 * (2 * (i // 2)) + (0.2 if i % 2 else -0.2))
        head = _on_circle(0.3, math.pi / 3 * (2 * ((i + 1) // 2) - 1) + (-0.2 if i % 2 else 0.2), height)
        _add_leg(builder, i, foot, head, {"drive": "position", "kp": kp, "kd": kd})
    return ready(builder, dtype=dtype)


def _on_circle(radius, angle, height=0.0):
    return np.array([radius * math.cos(angle), radius * math.sin(angle), height])


def _add_leg(builder, i, foot, head, drive):
    along = (head - foot) / np.linalg.norm(head - foot)
    across = np.cross((0, 0, 1), along)
    across /= np.linalg.norm(across)
    middle = (foot + head) / 2
    lower = add_rod(builder, f"lower_{i}", foot, middle)
    upper = add_rod(builder, f"upper_{i}", middle, head)
    builder.add_universal(None, lower, name=f"foot_{i}", at=point(foot), axes=(point(across), point(np.cross(along, across))))
    builder.add_prismatic(lower, upper, name=f"leg_{i}", at=point(middle), axis=point(along), **drive)
    builder.add_spherical(upper, "platform", name=f"head_{i}", at=point(head))


def hoberman(n: int = 6, *, radius: float = 0.5, opening: float = 0.35, fixed: bool = True, dtype=None) -> Scene:
    """A Hoberman ring: n scissor pairs of angulated bars in a closed ring in the x-z plane, hinged about y, that opens as one.

    Each bar has its pivot on the ray of its sector and its ends on the rays half a sector away. Its three points can move along these
    rays if they lie on one circle through the ring's centre; all bars share the circle's diameter, so the whole ring has one degree of
    freedom, though counting rows says it has none.

    Args:
        n: scissor pairs, at least 3.
        radius: diameter of that circle [m], the reach of the open ring.
        opening: how far the ring is folded [rad], 0 < opening < pi/2 - pi/n; the pivots stand at radius * cos(opening).
        fixed: hold the first bar of the first pair in the world.
        dtype: floating type; JAX's default if left out.
    """
    half_sector = math.pi / n
    if n < 3 or not 0 < opening < math.pi / 2 - half_sector:
        raise ValueError(f"hoberman: n is {n} and opening {opening:g}; n must be at least 3 and 0 < opening < pi/2 - pi/n")
    offsets = {"pivot": 0.0, "inner": half_sector, "outer": -half_sector}
    reach = {name: radius * math.cos(opening + offset) for name, offset in offsets.items()}
    builder = ModelBuilder()
    for k in range(n):
        _add_scissor(builder, k, half_sector, reach)
    for k in range(n):
        seam = (2 * k + 1) * half_sector
        following = (k + 1) % n
        builder.add_revolute(f"left_{k}", f"right_{following}", name=f"outer_{k}", at=_on_ring(reach["outer"], seam), axis="y")
        builder.add_revolute(f"right_{k}", f"left_{following}", name=f"inner_{k}", at=_on_ring(reach["inner"], seam), axis="y")
    if fixed:
        builder.add_fixed(None, "left_0", name="world_to_left_0")
    return ready(builder, dtype=dtype)


def _on_ring(radius, angle):
    return radius * math.cos(angle), 0.0, radius * math.sin(angle)


def _add_scissor(builder, k, half_sector, reach):
    """The two bars of sector k: "left" runs from the inner end before the pivot to the outer end after it, "right" is its mirror image."""
    ray = 2 * k * half_sector
    pivot = np.array(_on_ring(reach["pivot"], ray))
    for side, sign in {"left": 1.0, "right": -1.0}.items():
        ends = _on_ring(reach["inner"], ray - sign * half_sector), _on_ring(reach["outer"], ray + sign * half_sector)
        _add_angulated_bar(builder, f"{side}_{k}", pivot, ends)
    builder.add_revolute(f"left_{k}", f"right_{k}", name=f"pivot_{k}", at=point(pivot), axis="y")


def _add_angulated_bar(builder, name, pivot, ends, thickness=0.005):
    """Two thin round bars of 1 kg/m that meet at the pivot, one body."""
    builder.add_body(name, position=point(pivot))
    for end, label in zip(ends, ("inner", "outer"), strict=True):
        arm = np.array(end) - pivot
        length = float(np.linalg.norm(arm))
        z = arm / length
        turn = from_matrix(np.column_stack([np.cross((0, 1, 0), z), (0, 1, 0), z]))
        place = {"position": point(arm / 2), "rotation": point(turn)}
        builder.add_cylinder(name, thickness, length / 2, name=f"{name}_{label}", mass=length, collides=False, **place)
