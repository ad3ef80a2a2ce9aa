"""Rod linkages without contacts: a chain, planar four-bars, a spatial loop. Hinges of the planar ones along y, angles from +x to +z."""

import math

import numpy as np

from ..builder import ModelBuilder
from .parts import Scene, add_rod, point, ready


def pendulum_chain(n: int = 5, *, length: float = 0.2, angle: float = 0.0, dtype=None) -> Scene:
    """A number n of rods of 1 kg/m in a straight line from the origin, hinged about y; the line rises from +x by `angle` [rad]."""
    builder = ModelBuilder()
    along = length * np.array([math.cos(angle), 0.0, math.sin(angle)])
    parent = None
    for i in range(n):
        rod = add_rod(builder, f"rod_{i}", i * along, (i + 1) * along)
        builder.add_revolute(parent, rod, name=f"hinge_{i}", at=point(i * along), axis="y")
        parent = rod
    return ready(builder, dtype=dtype)


def crank_rocker(
    *, lengths: tuple[float, float, float, float] = (0.3, 1.0, 0.8, 1.0), angle: float = math.pi / 2, gravity: float = 9.81, dtype=None
) -> Scene:
    """Four-bar of rods (1 kg/m): crank, coupler, rocker, and ground pins at (0, 0) and (ground, 0); the crank starts at `angle` [rad].

    The pin between coupler and rocker lies to the left of the line from the crank pin to the second ground pin.
    """
    crank, coupler, rocker, ground = lengths
    A, D = np.zeros(2), np.array([ground, 0.0])
    B = A + crank * np.array([math.cos(angle), math.sin(angle)])
    C = _apex(B, D, coupler, rocker)
    builder = ModelBuilder(gravity=(0, 0, -gravity))
    space = [(p[0], 0.0, p[1]) for p in (A, B, C, D)]
    for name, (start, end) in {"crank": (0, 1), "coupler": (1, 2), "rocker": (3, 2)}.items():
        add_rod(builder, name, space[start], space[end])
    builder.add_revolute(None, "crank", name="ground_crank", at=point(space[0]), axis="y")
    builder.add_revolute("crank", "coupler", name="crank_coupler", at=point(space[1]), axis="y")
    builder.add_revolute("coupler", "rocker", name="coupler_rocker", at=point(space[2]), axis="y")
    builder.add_revolute(None, "rocker", name="ground_rocker", at=point(space[3]), axis="y")
    return ready(builder, dtype=dtype)


def _apex(B, D, to_B, to_D):
    """Third corner of a triangle on the side BD, at the given distances, on the left of B → D. ValueError if it cannot close."""
    base = D - B
    distance = np.linalg.norm(base)
    along = (to_B**2 - to_D**2 + distance**2) / (2 * distance)
    if abs(along) > to_B:
        raise ValueError(f"crank_rocker: links {to_B:g} and {to_D:g} cannot span {distance:g} m; change lengths or angle")
    unit = base / distance
    return B + along * unit + math.sqrt(to_B**2 - along**2) * np.array([-unit[1], unit[0]])


def parallelogram(cranks: int = 3, *, angle: float = 0.2, dtype=None) -> Scene:
    """A horizontal rod of 1 m hanging from parallel rods of 1 m (all 1 kg), released at `angle` [rad]; more than two are redundant."""
    if cranks < 2:
        raise ValueError(f"parallelogram: cranks is {cranks}; at least two hold the coupler")
    swing = np.array([math.sin(angle), 0.0, -math.cos(angle)])
    builder = ModelBuilder()
    coupler = add_rod(builder, "coupler", swing, swing + np.array([1.0, 0.0, 0.0]), mass=1.0)
    for i in range(cranks):
        pin = np.array([i / (cranks - 1), 0.0, 0.0])
        crank = add_rod(builder, f"crank_{i}", pin, pin + swing, mass=1.0)
        builder.add_revolute(None, crank, name=f"ground_{i}", at=point(pin), axis="y")
        builder.add_revolute(crank, coupler, name=f"coupler_{i}", at=point(pin + swing), axis="y")
    return ready(builder, dtype=dtype)


def bennett(*, length: float = 0.6, twist: float = 0.6, other_twist: float = 1.1, angle: float = 1.0, dtype=None) -> Scene:
    """Bennett's linkage: four hinges in space that nonetheless move, 20 joint rows of rank 17.

    Opposite links are equal; lengths and twists of neighbours obey a / sin α = b / sin β. One link is the world, the others are rods of
    1 kg/m between the hinges. `angle` [rad] is the first hinge's.

    Source: G. T. Bennett, "A new mechanism", Engineering 76 (1903).
    """
    lengths = (length, length * math.sin(other_twist) / math.sin(twist))
    ratio = math.sin((other_twist + twist) / 2) / math.sin((other_twist - twist) / 2)
    second = 2 * math.atan2(ratio, math.tan(angle / 2))
    frames = [np.eye(4)]
    for i, turn in enumerate((angle, second, -angle)):
        frames.append(frames[-1] @ _link(turn, lengths[i % 2], (twist, other_twist)[i % 2]))
    hinges = [{"name": f"hinge_{i}", "at": point(f[:3, 3]), "axis": point(f[:3, 2])} for i, f in enumerate(frames)]
    builder = ModelBuilder()
    parent = None
    for i in range(3):
        rod = add_rod(builder, f"link_{i}", frames[i][:3, 3], frames[i + 1][:3, 3])
        builder.add_revolute(parent, rod, **hinges[i])
        parent = rod
    builder.add_revolute(None, "link_2", **hinges[3])  # the fourth link is the world
    return ready(builder, dtype=dtype)


def _link(turn, length, twist):
    """From one hinge frame to the next: turn about z, move along the new x, twist about it."""
    c, s, ct, st = math.cos(turn), math.sin(turn), math.cos(twist), math.sin(twist)
    return np.array([[c, -s * ct, s * st, length * c], [s, c * ct, -c * st, length * s], [0, st, ct, 0], [0, 0, 0, 1]])
