"""What the scenes share: rods between points, the mechanism-wide defaults, and the finished triple."""

import numpy as np

from ..builder import ModelBuilder
from ..model import Model
from ..start import initial_state, zero_control
from ..state import Control, State

Scene = tuple[Model, State, Control]

GROUND_MU = 0.7  # friction of the small box mechanisms and their ground
ROD_AXIAL_INERTIA = 2e-4  # [kg m²] of a slender rod about itself; it has no thickness to compute it from


def ready(builder: ModelBuilder, *, max_contacts: int | None = None, dtype=None) -> Scene:
    """The model with its initial state and a control that does nothing."""
    model = builder.finalize(dtype=dtype, max_contacts=max_contacts)
    return model, initial_state(model), zero_control(model)


def point(at) -> tuple:
    """The entries of a vector or quaternion as plain numbers."""
    return tuple(float(x) for x in at)


def turn_x_to(direction) -> tuple:
    """Quaternion of the shortest turn from the x axis to a direction."""
    unit = np.asarray(direction, float) / np.linalg.norm(direction)
    half = np.array([0.0, -unit[2], unit[1], 1 + unit[0]])
    length = np.linalg.norm(half)
    return point(half / length) if length > 1e-9 else (0.0, 0.0, 1.0, 0.0)


def add_rod(builder: ModelBuilder, name: str, start, end, *, mass: float | None = None) -> str:
    """Slender uniform rod between two world points, its frame in the middle with x along it; 1 kg/m unless a mass is given."""
    start, end = np.asarray(start, float), np.asarray(end, float)
    length = float(np.linalg.norm(end - start))
    mass = length if mass is None else mass
    across = mass * length**2 / 12
    return builder.add_body(
        name,
        mass=mass,
        inertia=(ROD_AXIAL_INERTIA, across, across),
        position=point((start + end) / 2),
        rotation=turn_x_to(end - start),
    )
