"""Shapes and contact pairs of one world as builder records."""

import dataclasses
import warnings

import numpy as np

from ..builder.bodies import immovable, mass_properties
from ..builder.records import Body, Shape
from ..collision.kinds import SHAPES, SLOTS
from .arrays import Arrays
from .entities import unique, unit_pose

# Newton's GeoType, by kind and the number of sizes
KINDS = {1: ("plane", 0), 3: ("sphere", 1), 4: ("capsule", 2), 5: ("ellipsoid", 3), 6: ("cylinder", 2), 7: ("box", 3), 9: ("cone", 2)}
OTHERS = {0: "empty shape", 2: "height field", 8: "mesh", 10: "convex mesh", 11: "Gaussian splat"}
CYLINDER = 6
BARREL = "barrelled cylinder"
SURFACE = {
    "mu": "shape_material_mu",
    "restitution": "shape_material_restitution",
    "margin": "shape_margin",
    "gap": "shape_gap",
    "stiffness": "shape_material_ke",
    "damping": "shape_material_kd",
}
POLICIES = ("error", "skip")


@dataclasses.dataclass(frozen=True, eq=False)
class Collidable:
    """The shapes that are kept, which of the world's shapes they are, and the pairs of kept shapes that may touch."""

    shapes: list[Shape]
    kept: np.ndarray
    touching: list[tuple[int, int]]


def collidable(world: Arrays, bodies: list[Body], *, collisions: bool, unsupported: str) -> Collidable:
    """Shapes and pairs of one world.

    Newton's `shape_contact_pairs` says who may touch. Shapes of a known kind that touch nothing stay, to be drawn; others are left out.

    Raises:
        ValueError: pairs that cannot collide here, unless `unsupported` is "skip".
    """
    kinds = [_kind(code, scale) for code, scale in zip(world.shape_type, world.shape_scale, strict=True)]
    pairs = _movable_pairs(world, bodies) if collisions else []
    good = [(i, j) for i, j in pairs if _collider(kinds[i], kinds[j]) in SLOTS]
    if len(good) < len(pairs):
        _report(world, kinds, [p for p in pairs if p not in set(good)], unsupported)
    kept = np.array([i for i, kind in enumerate(kinds) if kind in dict(KINDS.values())], int)
    _warn_of_finite_planes(world, {i for p in good for i in p})
    position = {int(i): k for k, i in enumerate(kept)}
    names = unique(world.shape_label)
    touching = [(position[i], position[j]) for i, j in good]
    return Collidable([_shape(world, i, names[i]) for i in kept], kept, touching)


def _kind(code, scale):
    if code == CYLINDER and scale[2] > 0:
        return BARREL
    return KINDS[code][0] if code in KINDS else OTHERS.get(code, f"shape of type {code}")


def _movable_pairs(world, bodies):
    """Pairs on different bodies that are not both immovable, the world apart."""
    frozen = [immovable(b, mass_properties(b, [])) for b in bodies]
    ends = world.shape_body[world.shape_contact_pairs]
    held = np.array([*frozen, False])[ends]
    keep = (ends[:, 0] != ends[:, 1]) & ~held.all(axis=1)
    return [(int(i), int(j)) for i, j in world.shape_contact_pairs[keep]]


def _collider(a, b):
    first, second = sorted((a, b), key=lambda kind: SHAPES.index(kind) if kind in SHAPES else len(SHAPES))
    return f"{first}_{second}"


def _report(world, kinds, bad, unsupported):
    few = "; ".join(f"{kinds[i]} {world.shape_label[i]!r} and {kinds[j]} {world.shape_label[j]!r}" for i, j in bad[:3])
    what = f"{len(bad)} pairs of shapes cannot collide here ({few}{'; ...' if len(bad) > 3 else ''})"
    if unsupported == "skip":
        warnings.warn(f"{what}: they pass through each other", stacklevel=2)
        return
    raise ValueError(
        f"{what}. Pass unsupported='skip' to let them pass through each other; or collisions=False, max_contacts=..., and the contacts of "
        f"Newton's pipeline to every step; or use other shapes (there are {', '.join(SLOTS)})"
    )


def _warn_of_finite_planes(world, used):
    finite = [world.shape_label[i] for i in sorted(used) if world.shape_type[i] == 1 and world.shape_scale[i, :2].any()]
    if finite:
        warnings.warn(f"shape {finite[0]!r}: a finite plane collides as an infinite one; use a box to end it", stacklevel=2)


def _shape(world, i, name):
    kind, sizes = KINDS[world.shape_type[i]]
    return Shape(
        name=name,
        kind=kind,
        body=int(world.shape_body[i]),
        size=world.shape_scale[i] * (np.arange(3) < sizes),
        pose=unit_pose(f"shape {name!r}", world.shape_transform[i]),
        density=0.0,
        mass=None,
        surface={key: float(getattr(world, field)[i]) for key, field in SURFACE.items()},
        group=1,
        collides=False,
    )
