"""Many worlds: stacking equals, padding unequals to a common size, sorting by size.

`jax.vmap` of a step over a stacked Model, State and Control simulates them together.
"""

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from .collision.kinds import SLOTS
from .joints.kinds import KINDS
from .layout import Layout, Rows
from .model import PATH_WRENCH, Bodies, Geoms, Joints, Model, Start, Topology
from .pytree import replace

T = TypeVar("T")
PAD_DISTANCE = 10.0  # [m] between the two padded shapes, so that no collider meets a degenerate distance
# Fields of Joints that switch a padded DoF off; all others are zero.
IDLE_DOF = {"q_min": -np.inf, "q_max": np.inf}


def stack(trees: Sequence[T]) -> T:
    """One pytree with a leading world axis from equal ones: Models, States, Controls, or tuples of them.

    Raises:
        ValueError: nothing to stack, or trees that differ in structure or shape; for Models it names the counts that differ.
    """
    trees = list(trees)
    if not trees:
        raise ValueError("stack: there is nothing to stack; give at least one Model, State or Control")
    first, structure = trees[0], jax.tree.structure(trees[0])
    for i, tree in enumerate(trees[1:], start=1):
        if isinstance(first, Model) and isinstance(tree, Model) and first.layout != tree.layout:
            _refuse(i, "; ".join(differing_counts(first.layout, tree.layout)))
        if jax.tree.structure(tree) != structure:
            _refuse(i, f"structure {jax.tree.structure(tree)} against {structure}")
        shapes = [[jnp.shape(leaf) for leaf in jax.tree.leaves(t)] for t in (first, tree)]
        if shapes[0] != shapes[1]:
            a, b = next(pair for pair in zip(*shapes, strict=True) if pair[0] != pair[1])
            _refuse(i, f"an array of shape {a} against {b}")
    return jax.tree.map(_stack_leaves, *trees)


def _stack_leaves(*leaves):
    """On the host unless traced: a device stack of thousands of worlds takes minutes to compile."""
    if any(isinstance(leaf, jax.core.Tracer) for leaf in leaves):
        return jnp.stack(leaves)
    return jnp.asarray(np.stack([np.asarray(leaf) for leaf in leaves]))


def _refuse(i, difference):
    raise ValueError(
        f"stack: worlds 0 and {i} differ: {difference}. Pad the models to one size with pad_to(model, common_layout(models)), "
        "or group them by size with bucket(models)"
    )


def unstack(tree: T) -> list[T]:
    """The worlds of a stacked pytree, the inverse of `stack`. ValueError if the arrays do not share a leading axis."""
    sizes = {jnp.shape(leaf)[:1] for leaf in jax.tree.leaves(tree)}
    if len(sizes) != 1 or () in sizes:
        raise ValueError(f"unstack: the arrays have leading axes {sorted(sizes)}; they need one common world axis, as made by stack")
    ((worlds,),) = sizes
    return [jax.tree.map(lambda leaf, i=i: leaf[i], tree) for i in range(worlds)]


def bucket(models: Sequence[Model]) -> list[tuple[tuple[int, ...], Model]]:
    """Models grouped by layout, in order of first appearance: (indices into `models`, their stacked Model) each."""
    groups: dict[Layout, list[int]] = {}
    for i, model in enumerate(models):
        groups.setdefault(model.layout, []).append(i)
    return [(tuple(members), stack([models[i] for i in members])) for members in groups.values()]


def differing_counts(a: Layout, b: Layout) -> list[str]:
    """Lines such as "rows.nl 2 against 4", one per differing count."""
    flat = [{**_fields(x), **{f"rows.{k}": v for k, v in _fields(x.rows).items()}} for x in (a, b)]
    return [f"{name} {flat[0][name]} against {flat[1][name]}" for name in flat[0] if name != "rows" and flat[0][name] != flat[1][name]]


def _fields(x):
    return {f.name: getattr(x, f.name) for f in dataclasses.fields(x)}


def common_layout(models: Sequence[Model]) -> Layout:
    """Smallest layout that all models can be padded to: the largest count of everything, and all kinds of joints and pairs.

    Models that get padded pairs also get two padded shapes for them.
    """
    layouts = [m.layout for m in models]
    if not layouts:
        raise ValueError("common_layout: there are no models")
    counts = [dict(x.pairs) for x in layouts]
    pairs = tuple((name, max(c.get(name, 0) for c in counts)) for name in SLOTS if any(name in c for c in counts))
    rows = Rows(**{name: max(getattr(x.rows, name) for x in layouts) for name in _fields(layouts[0].rows)})
    return Layout(
        nb=max(x.nb for x in layouts),
        nj=max(x.nj for x in layouts),
        ng=max(x.ng + (2 if x.pairs != pairs else 0) for x in layouts),
        nq=max(x.nq for x in layouts),
        nv=max(x.nv for x in layouts),
        rows=rows,
        fill=max(x.fill for x in layouts),
        joint_kinds=tuple(sorted({k for x in layouts for k in x.joint_kinds})),
        pairs=pairs,
    )


def pad_to(model: Model, layout: Layout) -> Model:
    """The same world in arrays of the given, larger layout; what is added takes part in nothing.

    Padded bodies are immovable, padded rows and pairs are off, padded joints tie the last body to itself, and padded DoFs have no
    effort. Start from `initial_state(padded)` and `zero_control(padded)`.

    Raises:
        ValueError: a layout that is too small, naming the counts.
    """
    if layout == model.layout:
        return model
    _check_room(model.layout, layout)
    padded = replace(
        model,
        layout=layout,
        topology=_pad_topology(model.topology, model.layout, layout),
        bodies=_pad_bodies(model.bodies, layout.nb),
        joints=_pad_joints(model.joints, layout),
        geoms=_pad_geoms(model.geoms, layout.ng),
        start=_pad_start(model.start, layout),
    )
    return jax.tree.map(jnp.asarray, padded)


def _check_room(small, large):
    needs = {**_fields(small), **{f"rows.{k}": v for k, v in _fields(small.rows).items()}}
    room = {**_fields(large), **{f"rows.{k}": v for k, v in _fields(large.rows).items()}}
    lacks = [f"{name} {room[name]} but {n} needed" for name, n in needs.items() if isinstance(n, int) and room[name] < n]
    offered = dict(large.pairs)
    lacks += [f"{offered.get(name, 0)} {name} pairs but {n} needed" for name, n in small.pairs if offered.get(name, 0) < n]
    lacks += [f"joint kind {kind!r} missing" for kind in small.joint_kinds if kind not in large.joint_kinds]
    if small.pairs != large.pairs and large.ng < small.ng + 2:
        lacks.append(f"ng {large.ng} but {small.ng + 2} needed, as padded pairs take two shapes")
    if lacks:
        raise ValueError(f"pad_to: the layout is too small: {'; '.join(lacks)}. common_layout(models) gives one that fits")


def _extend(array, length, value=0):
    """`array` with its first axis filled up to `length` by `value` (broadcast to one entry), on the host."""
    array = np.asarray(array)
    extra = np.broadcast_to(np.asarray(value, array.dtype), (length - array.shape[0], *array.shape[1:]))
    return np.concatenate([array, extra])


def _pad_bodies(bodies: Bodies, nb) -> Bodies:
    fill = {"inertia": np.eye(3)}
    return Bodies(**{name: _extend(value, nb, fill.get(name, 0)) for name, value in _fields(bodies).items()})


def _pad_joints(joints: Joints, layout) -> Joints:
    fields = _fields(joints)
    poses = {name: _extend(fields.pop(name), layout.nj, _pose()) for name in ("X_B", "X_F")}
    handedness = _extend(fields.pop("handedness"), layout.nj, 1)
    dofs = {name: _extend(value, layout.nv, IDLE_DOF.get(name, 0)) for name, value in fields.items()}
    return Joints(**poses, handedness=handedness, **dofs)


def _pad_geoms(geoms: Geoms, ng) -> Geoms:
    fields = _fields(geoms)
    fields["size"] = _extend(geoms.size, ng, 1)
    fields["X"] = _extend(geoms.X, ng, _pose())
    extra = ng - geoms.X.shape[0]
    if extra:
        fields["X"][-1, 2] = PAD_DISTANCE
    return Geoms(**{name: value if name in ("X", "size") else _extend(value, ng) for name, value in fields.items()})


def _pad_start(start: Start, layout) -> Start:
    return Start(
        q=_extend(start.q, layout.nb, _pose()),
        u=_extend(start.u, layout.nb),
        joint_q=_extend(start.joint_q, layout.nq),
        q_ref=_extend(start.q_ref, layout.nq),
    )


def _pose():
    return np.array([0, 0, 0, 0, 0, 0, 1])


def _pad_topology(topology: Topology, small: Layout, large: Layout) -> Topology:
    """Padded joints join the last body with itself: their two sides cancel, and every formula stays finite."""
    own, last = large.nb - 1, max(large.nj - 1, 0)
    kind = KINDS[large.joint_kinds[0]].code if large.joint_kinds else 0
    return Topology(
        moves=_extend(topology.moves, large.nb),
        turns=_extend(topology.turns, large.nb),
        base=_extend(topology.base, large.nj, own),
        follower=_extend(topology.follower, large.nj, own),
        kind=_extend(topology.kind, large.nj, kind),
        **_pad_rows(topology, small.rows, large.rows, 6 * last),
        dof=_extend(topology.dof, large.nv, 6 * last),
        coordinate=_extend(topology.coordinate, large.nq, 10 * last),
        entry=_extend(np.where(np.asarray(topology.entry) == small.nq, np.int32(large.nq), topology.entry), large.nj, large.nq),
        mode=_extend(topology.mode, large.nv),
        path=_extend(topology.path, large.nv, PATH_WRENCH),
        mechanism=np.concatenate([topology.mechanism, np.arange(small.nb, large.nb, dtype=np.int32)]),
        **_pad_elimination(topology, small, large),
        geom_body=_extend(topology.geom_body, large.ng, own),
        **_pad_pairs(topology, dict(small.pairs), large),
    )


def _pad_elimination(topology, small, large):
    """Padded joints come last and touch no other."""
    column = np.full((large.nj, large.fill), large.nj, np.int32)
    column[: small.nj, : small.fill] = np.where(np.asarray(topology.column) == small.nj, large.nj, topology.column)
    slot = np.zeros((large.nj, large.fill, large.fill), np.int32)
    slot[: small.nj, : small.fill, : small.fill] = topology.slot
    position = np.concatenate([topology.position, np.arange(small.nj, large.nj, dtype=np.int32)])
    return dict(position=position, column=column, slot=slot)


def _pad_rows(topology, small, large, idle_row):
    """Each family is filled up in place, as families stand one after the other."""
    fill = {"row": idle_row, "row_dof": 0, "row_on": False}
    starts = np.cumsum([0, *(getattr(small, name) for name in JOINT_FAMILIES)])
    return {
        name: np.concatenate(
            [
                _extend(getattr(topology, name)[start : start + getattr(small, family)], getattr(large, family), value)
                for family, start in zip(JOINT_FAMILIES, starts[:-1], strict=True)
            ]
        )
        for name, value in fill.items()
    }


JOINT_FAMILIES = ("njd", "njk", "nf", "ne", "nl")


def _pad_pairs(topology, small, large):
    """Each collider's pairs are filled up in place, with the last two shapes."""
    fill = {"pair": np.array([large.ng - 2, large.ng - 1]), "pair_flip": False, "pair_on": False}
    padded = {name: [getattr(topology, name)[:0]] for name in fill}
    start = 0
    for collider, count in large.pairs:
        stop = start + small.get(collider, 0)
        for name, value in fill.items():
            padded[name].append(_extend(getattr(topology, name)[start:stop], count, value))
        start = stop
    return {name: np.concatenate(parts) for name, parts in padded.items()}
