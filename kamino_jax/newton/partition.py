"""Which bodies, joints and shapes make up each world, and one world's arrays with its own indices."""

import dataclasses

import numpy as np

from .arrays import FIELDS, Arrays

# What replicas of one world may differ in.
OWN = ("body_q", "body_qd", "joint_q", "body_world", "joint_world", "shape_world")
NAMED = 5  # culprits that a message lists


@dataclasses.dataclass(frozen=True, eq=False)
class Members:
    """Indices into Newton's arrays of what one world is made of. Shapes: its own, then the static ones that all worlds share."""

    body: np.ndarray
    joint: np.ndarray
    coordinate: np.ndarray
    dof: np.ndarray
    shape: np.ndarray
    own_shapes: int
    pairs: np.ndarray  # (n, 2) positions in `shape`
    gravity: np.ndarray  # (3,)


@dataclasses.dataclass(frozen=True, eq=False)
class Ownership:
    """World of each entity, -1 for static shapes of several worlds; `body` and `shape` positions within their world."""

    body_world: np.ndarray
    joint_world: np.ndarray
    shape_world: np.ndarray
    body_position: np.ndarray
    shape_position: np.ndarray  # of shared static shapes: among those


def named(labels, indices) -> str:
    """The first labels at `indices`, quoted."""
    listed = ", ".join(repr(labels[i]) for i in indices[:NAMED])
    return listed + (f" and {len(indices) - NAMED} more" if len(indices) > NAMED else "")


def ownership(arrays: Arrays) -> Ownership:
    """World of everything.

    A single world owns all, whatever the arrays say: models built without worlds carry -1 throughout. Shapes follow their body.

    Raises:
        ValueError: several worlds and a body or joint in none of them, or a joint or shape that connects two worlds.
    """
    if arrays.world_count == 1:
        body, joint, shape = (np.zeros(len(x), np.int64) for x in (arrays.body_world, arrays.joint_world, arrays.shape_world))
    else:
        body, joint = arrays.body_world, arrays.joint_world
        shape = np.where(arrays.shape_body >= 0, np.append(body, -1)[arrays.shape_body], arrays.shape_world)
        _refuse_homeless(arrays, body, joint)
    return Ownership(body, joint, shape, _positions(body), _positions(shape))


def _refuse_homeless(arrays, body, joint):
    for family, world in (("body", body), ("joint", joint)):
        outside = np.flatnonzero((world < 0) | (world >= arrays.world_count))
        if len(outside):
            labels = named(getattr(arrays, f"{family}_label"), outside)
            raise ValueError(
                f"{family} {labels}: in none of the {arrays.world_count} worlds; add it between begin_world() and end_world(), or "
                "to the builder that add_world() and replicate() copy (only static shapes may be shared)"
            )
    ends = np.append(body, -1)[np.stack([arrays.joint_parent, arrays.joint_child], 1)]
    across = np.flatnonzero(((ends != -1) & (ends != joint[:, None])).any(1))
    if len(across):
        raise ValueError(f"joint {named(arrays.joint_label, across)}: connects bodies of different worlds")


def _positions(world):
    """Rank of each entry among those of the same world."""
    order = np.argsort(world, kind="stable")
    rank = np.arange(len(world)) - np.searchsorted(world[order], world[order])
    positions = np.empty(len(world), np.int64)
    positions[order] = rank
    return positions


def _grouped(world, count):
    """Indices of the entries of each world 0 .. count - 1, ascending."""
    order = np.argsort(world, kind="stable")
    edges = np.searchsorted(world[order], np.arange(count + 1))
    return [order[a:b] for a, b in zip(edges[:-1], edges[1:], strict=True)]


def partition(arrays: Arrays, own: Ownership) -> list[Members]:
    """The members of every world."""
    count = arrays.world_count
    each = lambda start: own.joint_world[np.repeat(np.arange(len(start) - 1), np.diff(start))]
    grouped = {
        "body": _grouped(own.body_world, count),
        "joint": _grouped(own.joint_world, count),
        "coordinate": _grouped(each(arrays.joint_q_start), count),
        "dof": _grouped(each(arrays.joint_qd_start), count),
    }
    shapes, shared = _grouped(own.shape_world, count), np.flatnonzero(own.shape_world == -1)
    pairs, gravity = _pairs_by_world(arrays, own, [len(s) for s in shapes]), _gravity(arrays, own)
    return [
        Members(**{k: v[w] for k, v in grouped.items()}, shape=np.append(s, shared), own_shapes=len(s), pairs=pairs[w], gravity=gravity[w])
        for w, s in enumerate(shapes)
    ]


def _pairs_by_world(arrays, own, counts):
    pairs = arrays.shape_contact_pairs
    both = own.shape_world[pairs]
    world = both.max(axis=1, initial=-1)
    offset = np.where(both == -1, np.array([*counts, 0])[world][:, None], 0)
    local = own.shape_position[pairs] + offset
    return [local[index] for index in _grouped(world, arrays.world_count)]


def _gravity(arrays, own):
    """(worlds, 3). Newton keeps one row per world and a last one for what belongs to none."""
    rows = arrays.gravity
    if arrays.world_count > 1:
        return rows[np.minimum(np.arange(arrays.world_count), len(rows) - 1)]
    used = np.unique(rows[np.clip(arrays.body_world, -1, len(rows) - 1)], axis=0)
    if len(used) > 1:
        raise ValueError(
            "bodies inside and outside the one world have different gravity; add all of them between begin_world() and end_world()"
        )
    return used if len(used) else rows[:1]


def restrict(arrays: Arrays, own: Ownership, members: Members) -> Arrays:
    """The arrays of one world, with indices into themselves."""
    fields = {name: getattr(arrays, name)[getattr(members, field.family)] for name, field in FIELDS.items()}
    position = np.append(own.body_position, -1)
    for name in ("joint_parent", "joint_child", "shape_body"):
        fields[name] = position[fields[name]]
    counts = (np.diff(getattr(arrays, name))[members.joint] for name in ("joint_q_start", "joint_qd_start"))
    q_start, qd_start = (np.concatenate([[0], np.cumsum(c)]).astype(np.int64) for c in counts)
    labels = {f"{k}_label": [getattr(arrays, f"{k}_label")[i] for i in getattr(members, k)] for k in ("body", "joint", "shape")}
    return Arrays(
        world_count=1,
        gravity=members.gravity[None],
        shape_contact_pairs=members.pairs,
        joint_q_start=q_start,
        joint_qd_start=qd_start,
        **labels,
        **fields,
    )


def signature(world: Arrays) -> bytes:
    """Equal for worlds that differ in their start and gravity only."""
    names = [*(name for name in FIELDS if name not in OWN), "shape_contact_pairs", "joint_q_start", "joint_qd_start"]
    return b"|".join(getattr(world, name).tobytes() for name in names)
