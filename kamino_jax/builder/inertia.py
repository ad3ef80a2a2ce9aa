"""Mass, centre of mass and inertia of solids and of their sums; checks of given inertias."""

import dataclasses
from collections.abc import Callable, Iterable

import numpy as np

from . import rigid
from .validate import numbers, refuse

# Given inertias often come from single precision files: relative errors below this are rounding, not mistakes.
INERTIA_TOLERANCE = 1e-5


@dataclasses.dataclass(frozen=True, eq=False)
class MassProperties:
    """Of one body, in its frame."""

    mass: float  # [kg]
    com: np.ndarray  # (3,) [m]
    inertia: np.ndarray  # (3, 3) [kg m²] about the centre of mass


def _sphere(size):
    r = size[0]
    return 4 / 3 * np.pi * r**3, 0.0, 0.4 * r**2 * np.ones(3)


def _box(size):
    x, y, z = size**2
    return 8 * np.prod(size), 0.0, np.array([y + z, x + z, x + y]) / 3


def _ellipsoid(size):
    x, y, z = size**2
    return 4 / 3 * np.pi * np.prod(size), 0.0, np.array([y + z, x + z, x + y]) / 5


def _cylinder(size):
    r, h = size[:2]
    across = r**2 / 4 + h**2 / 3
    return 2 * np.pi * r**2 * h, 0.0, np.array([across, across, r**2 / 2])


def _capsule(size):
    r, h = size[:2]
    barrel, caps = 2 * np.pi * r**2 * h, 4 / 3 * np.pi * r**3
    # both half balls together, by the parallel axis theorem from their own centroids 3 r/8 beyond the barrel
    across = barrel * (r**2 / 4 + h**2 / 3) + caps * (0.4 * r**2 + 0.75 * r * h + h**2)
    along = barrel * r**2 / 2 + caps * 0.4 * r**2
    volume = barrel + caps
    return volume, 0.0, np.array([across, across, along]) / volume


def _cone(size):
    r, h = size[:2]  # base at z = -h, tip at z = h
    across = 0.15 * (r**2 + h**2)
    return 2 / 3 * np.pi * r**2 * h, -h / 2, np.array([across, across, 0.3 * r**2])


# size (3,) -> volume [m³], height of the centroid on local z [m], principal inertias per mass about it [m²]
SOLIDS: dict[str, Callable] = {
    "sphere": _sphere,
    "box": _box,
    "ellipsoid": _ellipsoid,
    "cylinder": _cylinder,
    "capsule": _capsule,
    "cone": _cone,
}


def solid(kind: str, size: np.ndarray, pose: np.ndarray, *, density: float = 0.0, mass: float | None = None) -> MassProperties:
    """Mass properties of a homogeneous solid at `pose`: of the given mass [kg], otherwise of the given density [kg/m³].

    Args:
        kind: "sphere", "box", "ellipsoid", "cylinder", "capsule" or "cone".
        size: (3,) [m] as in `Geoms.size`; cones: radius and half height, base at local z = -half height.
        pose: (7,) of the shape in the body frame.
        density: [kg/m³].
        mass: [kg], instead of the density.
    """
    volume, height, principal = SOLIDS[kind](size)
    total = density * volume if mass is None else mass
    R = rigid.matrix(pose[3:])
    com = pose[:3] + R @ np.array([0.0, 0.0, height])
    return MassProperties(float(total), com, total * (R * principal) @ R.T)


def combine(parts: Iterable[MassProperties]) -> MassProperties:
    """Sum of bodies that move as one: masses add, inertias add about the common centre of mass (parallel axis theorem)."""
    parts = list(parts)
    mass = sum(p.mass for p in parts)
    com = sum(p.mass * p.com for p in parts) / mass
    inertia = np.zeros((3, 3))
    for part in parts:
        d = part.com - com
        inertia += part.inertia + part.mass * (d @ d * np.eye(3) - np.outer(d, d))
    return MassProperties(mass, com, inertia)


def checked_inertia(owner: str, value) -> np.ndarray:
    """(3, 3) inertia from three principal moments or a matrix.

    Raises:
        ValueError: not symmetric, a negative principal moment, or one that exceeds the sum of the other two
            (no distribution of mass has that).
    """
    three = np.ndim(value) == 1
    given = numbers(owner, "inertia", value, (3,) if three else (3, 3))
    matrix = np.diag(given) if three else given
    slack = INERTIA_TOLERANCE * np.abs(matrix).max()
    if np.abs(matrix - matrix.T).max() > slack:
        refuse(owner, "inertia is not symmetric; give three moments, or a symmetric 3 x 3 matrix about the centre of mass")
    matrix = (matrix + matrix.T) / 2
    moments = np.linalg.eigvalsh(matrix)
    if moments[0] < -slack:
        refuse(owner, f"inertia has the principal moment {moments[0]:g}; it must be positive semidefinite")
    if moments[2] > moments[0] + moments[1] + slack:
        refuse(
            owner,
            f"inertia has the principal moments {moments[0]:g}, {moments[1]:g}, {moments[2]:g}: none may exceed the sum of the "
            "other two (triangle inequality); check the units, and that it is taken about the centre of mass",
        )
    return matrix


def is_singular(inertia: np.ndarray) -> bool:
    """Whether some rotation meets no inertia."""
    moments = np.linalg.eigvalsh(inertia)
    return bool(moments[0] <= 1e-12 * max(moments[2], 0.0))
