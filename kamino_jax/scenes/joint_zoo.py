"""One joint of every kind."""

import math

from ..builder import ModelBuilder
from .parts import Scene, ready

# What makes each joint interesting: every family of rows and every drive occurs once.
PARAMETERS = {
    "revolute": {"axis": "y", "limits": (-0.5, 0.5), "friction": 0.02, "armature": 0.01},
    "prismatic": {"axis": "z", "drive": "position_velocity", "kp": 400.0, "kd": 20.0},
    "cylindrical": {"axis": "x", "limits": ((-0.05, 0.05), None), "damping": (2.0, 0.01)},
    "universal": {"axes": ("x", "y"), "friction": 0.01},
    "spherical": {"armature": 0.005, "damping": 0.01},
    "gimbal": {"drive": "position", "kp": 2.0, "kd": 0.1},
    "gimbal_left_handed": {"drive": "velocity", "kd": 0.1},
    "cartesian": {"drive": "position", "kp": 400.0, "kd": 20.0, "effort_max": 30.0},
    "fixed": {},
    "free": {},
}


def all_joints(*, fixed: bool = True, dtype=None) -> Scene:
    """A beam with one hanging box per joint kind, its joint at the top of the box; `fixed` holds the beam in the world. No contacts."""
    spacing, half = 0.4, (0.04, 0.05, 0.1)
    builder = ModelBuilder()
    builder.add_body("beam", position=(0, 0, 1))
    builder.add_box("beam", (spacing * len(PARAMETERS) / 2, 0.05, 0.05), name="beam_shape", mass=20.0, collides=False)
    if fixed:
        builder.add_fixed(None, "beam", name="world_to_beam")
    for i, (kind, options) in enumerate(PARAMETERS.items()):
        x = spacing * (i - (len(PARAMETERS) - 1) / 2)
        builder.add_body(kind, position=(x, 0, 0.85), rotation=(0, 0, math.sin(0.1), math.cos(0.1)))
        builder.add_box(kind, half, name=f"{kind}_shape", mass=1.0, collides=False)
        builder.add_joint(kind, "beam", kind, name=f"{kind}_joint", at=(x, 0, 0.95), **options)
    return ready(builder, dtype=dtype)
