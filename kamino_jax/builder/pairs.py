"""Which shapes may touch: candidate pairs, sorted by collider."""

import itertools
from collections.abc import Iterable

import numpy as np

from ..collision.kinds import SHAPES, SLOTS
from .records import Joint, Shape
from .validate import refuse


def may_touch(shapes: list[Shape], joints: list[Joint], ignored: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs (smaller, larger) of shape indices that the builder lets touch.

    Two shapes may touch if both collide, their groups agree, they stand on different bodies (the world counts as one) that no joint
    connects (to the world: no fixed joint), and if the pair is not ignored.
    """
    joined = {frozenset((j.parent, j.child)) for j in joints if j.parent != -1 or j.kind == "fixed"}
    return [
        (i, j)
        for (i, a), (j, b) in itertools.combinations(enumerate(shapes), 2)
        if (i, j) not in ignored
        and a.body != b.body
        and a.collides
        and b.collides
        and frozenset((a.body, b.body)) not in joined
        and _groups_agree(a.group, b.group)
    ]


def candidate_pairs(shapes: list[Shape], frozen: list[bool], touching: Iterable[tuple[int, int]]):
    """Geom pairs in collider order.

    Args:
        shapes: all shapes.
        frozen: immovable flag of each body.
        touching: pairs of shape indices that may touch; pairs of two immovable bodies are left out.

    Returns:
        kinds: ((collider, count), ...); pairs: (n, 2) int32; flip: (n,) bool, whether the second shape stands on the world.
    """
    found: dict[str, list] = {}
    for i, j in touching:
        a, b = shapes[i], shapes[j]
        if -1 not in (a.body, b.body) and frozen[a.body] and frozen[b.body]:
            continue
        first, second = (i, j) if SHAPES.index(a.kind) <= SHAPES.index(b.kind) else (j, i)
        found.setdefault(_collider(shapes[first], shapes[second]), []).append((first, second))
    kinds = tuple((name, len(found[name])) for name in SLOTS if name in found)
    pairs = np.array([p for name, _ in kinds for p in found[name]], np.int32).reshape(-1, 2)
    return kinds, pairs, np.array([shapes[second].body == -1 for _, second in pairs], bool)


def _groups_agree(a, b):
    """Positive groups meet themselves, negative ones everything but themselves, 0 nothing."""
    if a == 0 or b == 0:
        return False
    return a == b if a > 0 and b > 0 else a != b


def _collider(a, b):
    name = f"{a.kind}_{b.kind}"
    if name not in SLOTS:
        known = ", ".join(SLOTS)
        refuse(
            a.label,
            f"a {a.kind} cannot collide with the {b.kind} {b.name!r}; ignore_collisions({a.name!r}, {b.name!r}), set collides=False on one "
            f"of them, or use other shapes (there are {known})",
        )
    return name


def slots(kinds) -> int:
    """Contact slots of all pairs."""
    return sum(SLOTS[name] * count for name, count in kinds)
