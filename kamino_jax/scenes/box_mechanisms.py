"""Small mechanisms made of boxes. Masses, sizes and places are those of Newton's `newton.tests.utils.basics`."""

import math

from ..builder import ModelBuilder
from .parts import GROUND_MU, Scene, ready

HALF = (0.25, 0.05, 0.05)  # [m] half edges of the boxes of pendulum, hinged boxes and nunchaku


def _drive(dynamic: bool, implicit: bool, *, armature=1.0, friction=0.1, kp=100.0, kd=1.0) -> dict:
    """Joint options of a motor: plain efforts, or an implicit PD controller; `dynamic` adds armature and friction."""
    options = {"drive": "position_velocity", "kp": kp, "kd": kd} if implicit else {"drive": "effort"}
    return {**options, "armature": armature, "friction": friction} if dynamic else options


def _add_box(builder, name, position, half, *, mass=1.0, mu=GROUND_MU):
    builder.add_body(name, position=position)
    builder.add_box(name, half, name=f"{name}_shape", mass=mass, mu=mu)


def box_pendulum(*, height: float = 0.7, ground: bool = True, dynamic: bool = False, implicit: bool = False, dtype=None) -> Scene:
    """A horizontal box of 1 kg and 0.5 m that swings about one end, around y, `height` [m] above a ground box."""
    builder = ModelBuilder()
    z = 0.05 + height
    _add_box(builder, "pendulum", (0.25, 0, z), HALF)
    builder.add_revolute(None, "pendulum", name="world_to_pendulum", at=(0, 0, z), axis="y", **_drive(dynamic, implicit))
    if ground:
        builder.add_box(None, (10, 10, 0.5), name="ground", position=(0, 0, -0.5), mu=GROUND_MU)
    return ready(builder, max_contacts=8 if ground else None, dtype=dtype)


def boxes_hinged(*, height: float = 0.0, ground: bool = True, dynamic: bool = False, implicit: bool = False, dtype=None) -> Scene:
    """Two boxes of 1 kg side by side on the ground, hinged about y at the end that they share."""
    builder = ModelBuilder()
    z = 0.05 + height
    _add_box(builder, "base", (0.25, -0.05, z), HALF)
    _add_box(builder, "follower", (0.75, 0.05, z), HALF)
    builder.add_revolute("base", "follower", name="hinge", at=(0.5, 0, z), axis="y", **_drive(dynamic, implicit))
    return _on_ground(builder, ground, 8, dtype)


def boxes_nunchaku(*, height: float = 0.0, ground: bool = True, dtype=None) -> Scene:
    """Two boxes and a sphere between them, each 1 kg, in a row on the ground, joined by ball joints."""
    builder = ModelBuilder()
    z = 0.05 + height
    _add_box(builder, "box_bottom", (0.25, 0, z), HALF)
    builder.add_body("sphere_middle", position=(0.55, 0, z))
    builder.add_sphere("sphere_middle", 0.05, name="sphere_middle_shape", mass=1.0, mu=GROUND_MU)
    _add_box(builder, "box_top", (0.85, 0, z), HALF)
    builder.add_spherical("box_bottom", "sphere_middle", name="box_bottom_to_sphere_middle", at=(0.5, 0, z))
    builder.add_spherical("sphere_middle", "box_top", name="sphere_middle_to_box_top", at=(0.6, 0, z))
    return _on_ground(builder, ground, 9, dtype)


def _on_ground(builder, ground, max_contacts, dtype):
    if ground:
        builder.add_plane(name="ground", mu=GROUND_MU)
    return ready(builder, max_contacts=max_contacts if ground else None, dtype=dtype)


def boxes_fourbar(
    *,
    height: float = 0.0,
    fixed: bool = False,
    limits: bool = True,
    ground: bool = True,
    dynamic: bool = False,
    implicit: bool = False,
    dtype=None,
) -> Scene:
    """Four thin boxes of 1 kg in a square of 0.1 m, hinged about y, standing on the ground.

    Joints 1 and 3 carry motors (with `implicit`, joint 1 is position-driven); `limits` stop all four at +-45 degrees; `fixed` welds
    the lowest link to the world.
    """
    long, thin, side, top = 0.05, 0.005, 0.056, 0.112  # [m] half length, half width, joint circle, height of the upper link
    builder = ModelBuilder()
    low = thin + height
    _add_box(builder, "link_1", (0, 0, low), (long, thin, thin))
    _add_box(builder, "link_2", (side, 0, low + side), (thin, thin, long))
    _add_box(builder, "link_3", (0, 0, low + top), (long, thin, thin))
    _add_box(builder, "link_4", (-side, 0, low + side), (thin, thin, long))
    if fixed:
        builder.add_fixed(None, "link_1", name="world_to_link1")
    stop = {"axis": "y", "limits": (-math.pi / 4, math.pi / 4) if limits else None}
    motor = _drive(dynamic, implicit, armature=0.1, friction=0.001, kp=1000.0, kd=20.0)
    builder.add_revolute("link_1", "link_2", name="link1_to_link2", at=(side, 0, low), **stop, **motor)
    builder.add_revolute("link_2", "link_3", name="link2_to_link3", at=(side, 0, low + top), **stop)
    builder.add_revolute("link_3", "link_4", name="link3_to_link4", at=(-side, 0, low + top), drive="effort", **stop)
    builder.add_revolute("link_4", "link_1", name="link4_to_link1", at=(-side, 0, low), **stop)
    return _on_ground(builder, ground, 8, dtype)


def cartpole(*, height: float = 0.0, ground: bool = True, limits: bool = True, dtype=None) -> Scene:
    """A cart of 1 kg on a rail along y with an upright pole of 0.2 kg and 0.75 m hinged about x to its side.

    The cart has a motor of at most 1000 N and stops at +-4 m.
    """
    builder = ModelBuilder()
    _add_box(builder, "cart", (0, 0, height), (0.1, 0.25, 0.1))
    _add_box(builder, "pole", (0.125, 0, 0.375 + height), (0.025, 0.025, 0.375), mass=0.2)
    reach = (-4.0, 4.0) if limits else None
    builder.add_prismatic(None, "cart", name="rail_to_cart", at=(0, 0, height), axis="y", limits=reach, drive="effort", effort_max=1000.0)
    builder.add_revolute("cart", "pole", name="cart_to_pole", at=(0.1, 0, height), axis="x")
    builder.add_box(None, (0.015, 4.0, 0.015), name="rail", position=(0, 0, height), collides=False)
    if ground:
        builder.add_box(None, (10, 10, 0.5), name="ground", position=(0, 0, height - 1.0), mu=GROUND_MU)
    return ready(builder, max_contacts=8 if ground else None, dtype=dtype)
