"""From a Newton model to stacked models."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ..batch import bucket as group_by_layout
from ..builder.finalize import Parts, finalize
from ..builder.records import Joint
from ..model import Model
from ..pytree import replace
from . import entities
from .arrays import Arrays, read
from .bucket import Bucket
from .contacts import Surfaces
from .partition import Members, Ownership, ownership, partition, restrict, signature
from .shapes import POLICIES, collidable
from .start import centre_poses, measured_coordinates
from .unsupported import refuse_unsupported
from .worlds import Worlds


def from_newton(model, *, dtype=None, max_contacts: int | None = None, collisions: bool = True, unsupported: str = "error") -> Worlds:
    """The worlds of a Newton model as stacked Models, and the traffic of states, controls and contacts between the two.

    Args:
        model: a `newton.Model`, or any object with its attribute names and numpy arrays.
        dtype: floating type; JAX's default if left out.
        max_contacts: contacts per world that a step can hold; by default as many as all its pairs of shapes can make.
        collisions: False builds no pairs: the contacts of every step come from outside, and need `max_contacts`.
        unsupported: "error", or "skip" to drop pairs of shapes that cannot collide here.

    Raises:
        ValueError: what this solver cannot simulate, with the label of the culprit and the remedy.
        TypeError: max_contacts or dtype of the wrong type.
    """
    if unsupported not in POLICIES:
        raise ValueError(f"unsupported is {unsupported!r}; it must be one of {', '.join(map(repr, POLICIES))}")
    arrays = read(model)
    refuse_unsupported(model, arrays)
    own = ownership(arrays)
    members = partition(arrays, own)
    built: dict[bytes, World] = {}
    keys = []
    for world in members:
        alone = restrict(arrays, own, world)
        keys.append(signature(alone))
        if keys[-1] not in built:
            built[keys[-1]] = _one_world(alone, dtype, max_contacts, collisions=collisions, unsupported=unsupported)
    return Worlds(tuple(_buckets(arrays, own, members, [built[key] for key in keys])))


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """One world and all its replicas."""

    model: Model
    joints: list[Joint]
    kept: np.ndarray  # which of its shapes are the geoms


def _one_world(world: Arrays, dtype, max_contacts, **options) -> World:
    bodies, joints = entities.bodies(world), entities.joints(world)
    found = collidable(world, bodies, **options)
    parts = Parts(world.gravity[0], bodies, found.shapes, joints, ignored=set(), touching=found.touching)
    return World(finalize(parts, dtype, max_contacts), joints, found.kept)


def _buckets(arrays: Arrays, own: Ownership, members: list[Members], built: list[World]):
    """Replicas share the arrays of the world that was built, apart from their start and gravity."""
    originals = list(dict.fromkeys(built))
    for group, stacked in group_by_layout([world.model for world in originals]):
        place = {id(originals[g]): i for i, g in enumerate(group)}
        worlds = [w for w, world in enumerate(built) if id(world) in place]
        which = np.array([place[id(built[w])] for w in worlds])
        replicas = jax.tree.map(lambda x, which=which: np.asarray(x)[which], stacked)
        yield _bucket(arrays, own, worlds, [members[w] for w in worlds], [built[w] for w in worlds], replicas)


def _bucket(arrays: Arrays, own: Ownership, worlds, members: list[Members], built: list[World], models: Model) -> Bucket:
    table = lambda name: np.stack([getattr(m, name) for m in members])
    model = _started(arrays, members, built, models)
    return Bucket(
        worlds=tuple(worlds),
        model=model,
        bodies=table("body"),
        joints=table("joint"),
        coordinates=table("coordinate"),
        dofs=table("dof"),
        shapes=np.stack([m.shape[world.kept] for m, world in zip(members, built, strict=True)]),
        surfaces=_surfaces(arrays, own, members, worlds, model),
        sizes={"body": len(own.body_world), "coordinate": len(arrays.joint_q), "dof": len(arrays.joint_axis)},
    )


def _started(arrays: Arrays, members: list[Members], built: list[World], models: Model) -> Model:
    """The models with each world's own gravity and start; joint coordinates are measured from the poses, nearest Newton's."""
    body_q, body_qd = (np.stack([getattr(arrays, name)[m.body] for m in members]) for name in ("body_q", "body_qd"))
    coordinates = [
        measured_coordinates(world.joints, poses, arrays.joint_q[m.coordinate])
        for m, world, poses in zip(members, built, body_q, strict=True)
    ]
    start = replace(models.start, q=centre_poses(body_q, models.bodies.com), u=body_qd, joint_q=np.stack(coordinates))
    models = replace(models, gravity=np.stack([m.gravity for m in members]), start=start)
    dtype = models.dtype
    return jax.tree.map(lambda x: jnp.asarray(x, dtype if x.dtype.kind == "f" else x.dtype), models)


def _surfaces(arrays: Arrays, own: Ownership, members: list[Members], worlds, models: Model) -> Surfaces:
    slot = np.full(arrays.world_count, -1)
    slot[worlds] = np.arange(len(worlds))
    immovable = np.zeros(len(own.body_world) + 1, bool)
    held = ~(np.asarray(models.topology.moves) | np.asarray(models.topology.turns))
    immovable[np.stack([m.body for m in members])] = held
    ints = lambda x: jnp.asarray(np.asarray(x), jnp.int32)
    floats = lambda name: jnp.asarray(getattr(arrays, name), models.dtype)
    return Surfaces(
        body=ints(arrays.shape_body),
        world=ints(own.shape_world),
        position=ints(own.shape_position),
        margin=floats("shape_margin"),
        mu=floats("shape_material_mu"),
        restitution=floats("shape_material_restitution"),
        stiffness=floats("shape_material_ke"),
        damping=floats("shape_material_kd"),
        body_position=ints(np.append(own.body_position, -1)),
        immovable=jnp.asarray(immovable),
        slot=ints(slot),
        own_shapes=ints([m.own_shapes for m in members]),
        all_shapes=ints([len(m.shape) for m in members]),
    )
