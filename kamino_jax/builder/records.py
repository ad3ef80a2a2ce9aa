"""What the builder remembers of each entity until `finalize`. Bodies are referred to by index, -1 is the world."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Body:
    """A rigid body. Mass properties are None where the shapes give them."""

    name: str
    mass: float | None  # [kg]
    inertia: np.ndarray | None  # (3, 3) [kg m²] about the centre of mass, body axes
    com: np.ndarray | None  # (3,) [m] in the body frame
    pose: np.ndarray  # (7,) of the body origin at the start
    twist: np.ndarray  # (6,) of the centre of mass, world axes
    kinematic: bool

    @property
    def label(self) -> str:
        return f"body {self.name!r}"


@dataclasses.dataclass(frozen=True, eq=False)
class Shape:
    """A shape on a body: geometry for collisions, volume for mass."""

    name: str
    kind: str
    body: int
    size: np.ndarray  # (3,) [m], as in `Geoms.size`
    pose: np.ndarray  # (7,) in the body frame
    density: float  # [kg/m³]
    mass: float | None  # [kg] instead of a density
    surface: dict[str, float]  # margin, gap, mu, restitution, stiffness, damping
    group: int
    collides: bool

    @property
    def label(self) -> str:
        return f"shape {self.name!r}"

    @property
    def massive(self) -> bool:
        return self.density > 0 or bool(self.mass)


@dataclasses.dataclass(frozen=True, eq=False)
class Joint:
    """A joint; arrays have one entry per DoF or per coordinate of its kind."""

    name: str
    kind: str
    parent: int
    child: int
    X_B: np.ndarray  # (7,) in the parent body's frame, DoF axes included
    X_F: np.ndarray  # (7,) in the child body's frame
    handedness: float
    dofs: dict[str, np.ndarray]  # the per-DoF fields of `Joints`
    mode: np.ndarray  # DRIVE_*
    coordinates: np.ndarray  # at the start
    target: np.ndarray  # per coordinate

    @property
    def label(self) -> str:
        return f"joint {self.name!r}"
