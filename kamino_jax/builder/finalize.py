"""From records to a `Model`: the only place where the builder makes device arrays."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ..joints.kinds import KINDS
from ..layout import Layout
from ..model import Bodies, Geoms, Joints, Model, Names, Start, Topology
from . import rigid
from .bodies import immovable, mass_properties, refuse_singular
from .elimination import elimination
from .inertia import MassProperties, is_singular
from .pairs import candidate_pairs, may_touch, slots
from .records import Body, Joint, Shape
from .rows import joint_tables
from .shapes import SURFACE


@dataclasses.dataclass(frozen=True, eq=False)
class Parts:
    """Everything that was added, in order."""

    gravity: np.ndarray
    bodies: list[Body]
    shapes: list[Shape]
    joints: list[Joint]
    ignored: set[tuple[int, int]]  # pairs (smaller, larger) of shape indices
    touching: list[tuple[int, int]] | None = None  # pairs of shape indices that may touch, in place of the builder's own rules


def finalize(parts: Parts, dtype, max_contacts) -> Model:
    """The model of `parts`; refuses what could not be simulated. See `ModelBuilder.finalize`."""
    if not parts.bodies:
        raise ValueError("the model has no bodies; add one with add_body")
    masses = [mass_properties(b, [s for s in parts.shapes if s.body == i]) for i, b in enumerate(parts.bodies)]
    refuse_singular(parts.bodies, masses, parts.joints)
    frozen = [immovable(b, m) for b, m in zip(parts.bodies, masses, strict=True)]
    layout, topology = _wiring(parts, masses, frozen, max_contacts)
    model = Model(
        layout=layout,
        names=_names(parts),
        topology=topology,
        bodies=_bodies(masses),
        joints=_joints(parts.joints),
        geoms=_geoms(parts.shapes),
        gravity=parts.gravity,
        start=_start(parts, masses),
    )
    return _on_device(model, _float_type(dtype))


def _names(parts):
    bodies, joints, geoms = (tuple(x.name for x in family) for family in (parts.bodies, parts.joints, parts.shapes))
    return Names(bodies, joints, geoms, tuple(s.kind for s in parts.shapes))


def _float_type(dtype):
    """The floating type of the model; None asks for JAX's default."""
    if dtype is None:
        return jnp.zeros(()).dtype
    if not jnp.issubdtype(dtype, jnp.floating):
        raise TypeError(f"dtype is {dtype!r}; it must be a floating type")
    if jax.dtypes.canonicalize_dtype(dtype) != jnp.dtype(dtype):
        raise ValueError(f"dtype {jnp.dtype(dtype).name} needs 64-bit JAX; set jax_enable_x64, or leave dtype out")
    return jnp.dtype(dtype)


def _on_device(model, dtype):
    def convert(leaf):
        kind = np.asarray(leaf).dtype.kind
        return jnp.asarray(leaf, dtype if kind == "f" else (jnp.bool_ if kind == "b" else jnp.int32))

    return jax.tree.map(convert, model)


def _capacity(max_contacts, total):
    if max_contacts is None:
        return total
    if not isinstance(max_contacts, int | np.integer) or isinstance(max_contacts, bool):
        raise TypeError(f"max_contacts is {max_contacts!r}; it must be a positive integer")
    if max_contacts < 1:
        raise ValueError(f"max_contacts is {max_contacts}; it must be positive (to switch contacts off, set collides=False on the shapes)")
    return int(max_contacts)


def _wiring(parts, masses, frozen, max_contacts):
    """Layout and topology."""
    joints, shapes = parts.joints, parts.shapes
    acts = [not (frozen[j.child] and (j.parent == -1 or frozen[j.parent])) for j in joints]
    tables = joint_tables(joints, acts)
    touching = may_touch(shapes, joints, parts.ignored) if parts.touching is None else parts.touching
    kinds, pair, flip = candidate_pairs(shapes, frozen, touching)
    moves = np.array([not f and m.mass > 0 for f, m in zip(frozen, masses, strict=True)], bool)
    turns = np.array([not (f or is_singular(m.inertia)) for f, m in zip(frozen, masses, strict=True)], bool)
    position, column, slot = elimination([j.parent for j in joints], [j.child for j in joints], moves | turns)
    layout = Layout(
        nb=len(parts.bodies),
        nj=len(joints),
        ng=len(shapes),
        nq=len(tables.coordinate),
        nv=len(tables.dof),
        rows=dataclasses.replace(tables.rows, nc=_capacity(max_contacts, slots(kinds))),
        fill=column.shape[1],
        joint_kinds=tuple(sorted({j.kind for j in joints})),
        pairs=kinds,
    )
    topology = Topology(
        moves=moves,
        turns=turns,
        base=_ints(j.parent for j in joints),
        follower=_ints(j.child for j in joints),
        kind=_ints(KINDS[j.kind].code for j in joints),
        row=tables.row,
        row_dof=tables.row_dof,
        row_on=np.ones(len(tables.row), bool),
        dof=tables.dof,
        coordinate=tables.coordinate,
        entry=tables.entry,
        mode=np.concatenate([np.zeros(0, np.int32), *(j.mode for j in joints)]),
        path=tables.path,
        mechanism=_mechanisms(len(parts.bodies), joints),
        position=position,
        column=column,
        slot=slot,
        geom_body=_ints(s.body for s in shapes),
        pair=pair,
        pair_flip=flip,
        pair_on=np.ones(len(pair), bool),
    )
    return layout, topology


def _mechanisms(count, joints):
    """The lowest body that joints connect to each body, (count,)."""
    lowest = list(range(count))
    for _ in joints:  # a label travels one joint a round, at least
        for j in joints:
            if j.parent >= 0:
                lowest[j.parent] = lowest[j.child] = min(lowest[j.parent], lowest[j.child])
    return np.array(lowest, np.int32)


def _ints(values):
    return np.array(list(values), np.int32)


def _stack(arrays, width):
    """Rows of the given width; (0, width) if there are none."""
    return np.array(list(arrays), float).reshape(-1, width)


def _bodies(masses: list[MassProperties]):
    return Bodies(
        mass=np.array([m.mass for m in masses], float),
        inertia=np.array([m.inertia for m in masses]),
        com=np.array([m.com for m in masses]),
    )


def _joints(joints):
    def per_dof(name):
        return np.concatenate([np.zeros(0), *(j.dofs[name] for j in joints)])

    given = {f.name for f in dataclasses.fields(Joints)} - {"X_B", "X_F", "handedness"}
    return Joints(
        X_B=_stack((j.X_B for j in joints), 7),
        X_F=_stack((j.X_F for j in joints), 7),
        handedness=np.array([j.handedness for j in joints], float),
        **{name: per_dof(name) for name in given},
    )


def _geoms(shapes):
    surface = {key: np.array([s.surface[key] for s in shapes], float) for key in SURFACE}
    return Geoms(X=_stack((s.pose for s in shapes), 7), size=_stack((s.size for s in shapes), 3), **surface)


def _start(parts, masses):
    centres = [rigid.compose(b.pose, np.array([*m.com, *rigid.IDENTITY])) for b, m in zip(parts.bodies, masses, strict=True)]
    return Start(
        q=_stack(centres, 7),
        u=_stack((b.twist for b in parts.bodies), 6),
        joint_q=np.concatenate([np.zeros(0), *(j.coordinates for j in parts.joints)]),
        q_ref=np.concatenate([np.zeros(0), *(j.target for j in parts.joints)]),
    )
