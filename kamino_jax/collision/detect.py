"""Contacts of one world: poses of the geoms, pair functions, thresholds, selection of at most `rows.nc` contacts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..model import Model
from ..pytree import pytree
from ..spatial import quat_matrix, quat_multiply, quat_rotate
from ..state import Contacts
from . import boxes, capsule_box, capsules, planes, spheres
from .kinds import SLOTS
from .materials import MIX_MODES
from .shapes import FAR, Shape

if TYPE_CHECKING:  # the configuration knows the mix modes of this package
    from ..config import Config

PAIR_FUNCTIONS = {
    "plane_sphere": planes.plane_sphere,
    "plane_capsule": planes.plane_capsule,
    "plane_ellipsoid": planes.plane_ellipsoid,
    "plane_cylinder": planes.plane_cylinder,
    "plane_box": planes.plane_box,
    "sphere_sphere": spheres.sphere_sphere,
    "sphere_capsule": spheres.sphere_capsule,
    "sphere_cylinder": spheres.sphere_cylinder,
    "sphere_box": spheres.sphere_box,
    "capsule_capsule": capsules.capsule_capsule,
    "capsule_box": capsule_box.capsule_box,
    "box_box": boxes.box_box,
}


@pytree
class Slots:
    """Candidate contacts, one row per slot of every pair; the normal points from the pair's first geom to its second."""

    distance: Array  # (s,) [m] between the surfaces
    normal: Array  # (s, 3)
    midpoint: Array  # (s, 3) [m]
    pair: Array  # (s,) int32


def geom_shapes(model: Model, q: Array) -> Shape:
    """All geoms (ng, ...) in the world, for CoM poses q (nb, 7)."""
    world = jnp.array([[0, 0, 0, 0, 0, 0, 1]], q.dtype)
    body = model.topology.geom_body
    poses = jnp.concatenate([q, world])[body]
    com = jnp.concatenate([model.bodies.com, jnp.zeros_like(q[:1, :3])])[body]
    X = model.geoms.X
    p = poses[:, :3] + quat_rotate(poses[:, 3:], X[:, :3] - com)
    return Shape(p, quat_matrix(quat_multiply(poses[:, 3:], X[:, 3:])), model.geoms.size)


def _select(index: Array, tree):
    return jax.tree.map(lambda x: x[index], tree)


def candidates(model: Model, q: Array) -> Slots:
    """Every slot of every pair, collider by collider."""
    shapes, pair = geom_shapes(model, q), model.topology.pair
    first, second = _select(pair[:, 0], shapes), _select(pair[:, 1], shapes)
    groups, start = [], 0
    for kind, count in model.layout.pairs:  # static: one vmapped function per collider
        group, k = slice(start, start + count), SLOTS[kind]
        distance, normal, midpoint = jax.vmap(PAIR_FUNCTIONS[kind])(_select(group, first), _select(group, second))
        if normal.ndim == 2:
            normal = jnp.broadcast_to(normal[:, None], midpoint.shape)
        rows = np.repeat(np.arange(start, start + count, dtype=np.int32), k)
        groups.append(Slots(distance.reshape(-1), normal.reshape(-1, 3), midpoint.reshape(-1, 3), jnp.asarray(rows)))
        start += count
    return jax.tree.map(lambda *x: jnp.concatenate(x), *groups)


def thresholds(model: Model, config: Config) -> tuple[Array, Array]:
    """Margin of each pair (pairs,) [m], and the surface distance up to which it is in contact (-inf where switched off)."""
    geoms, a, b = model.geoms, model.topology.pair[:, 0], model.topology.pair[:, 1]
    margin = geoms.margin[a] + geoms.margin[b]
    gap = jnp.maximum(geoms.gap, config.collision.default_gap)
    reach = margin if config.dynamics.cull_speculative_contacts else margin + (gap[a] + gap[b])
    return margin, jnp.where(model.topology.pair_on, reach, -jnp.inf)


def compact(slots: Slots, active: Array, depth: Array, capacity: int) -> tuple[Slots, Array]:
    """`capacity` slots and which of them are active: all, padded, if they fit, else the active ones of largest depth (s,)."""
    missing = capacity - active.shape[0]
    if missing >= 0:
        pad = lambda x: jnp.pad(x, ((0, missing),) + ((0, 0),) * (x.ndim - 1))
        return jax.tree.map(pad, slots), pad(active)
    score, index = lax.top_k(jnp.where(active, lax.stop_gradient(depth), -jnp.inf), capacity)
    return _select(index, slots), score > -jnp.inf


def contacts_of(model: Model, config: Config, slots: Slots, active: Array, margin: Array, found: Array) -> Contacts:
    """Contacts (nc,) of the chosen slots. Empty ones have distance 0, normal z, points 0, key -1, and no derivative."""
    topology, geoms = model.topology, model.geoms
    flip = topology.pair_flip[slots.pair]
    pair = topology.pair[slots.pair]
    a, b = jnp.where(flip, pair[:, 1], pair[:, 0]), jnp.where(flip, pair[:, 0], pair[:, 1])
    on, zero = active[:, None], jnp.zeros_like(slots.distance)
    distance = jnp.where(active, slots.distance, 0)
    normal = jnp.where(on, jnp.where(flip[:, None], -slots.normal, slots.normal), jnp.array([0, 0, 1], slots.normal.dtype))
    midpoint, half = jnp.where(on, slots.midpoint, 0), 0.5 * distance[:, None] * normal
    mix = lambda mode, x: jnp.where(active, MIX_MODES[mode](x[a], x[b]), zero)
    return Contacts(
        active=active,
        distance=distance - jnp.where(active, margin[slots.pair], 0),
        normal=normal,
        point_a=midpoint - half,
        point_b=midpoint + half,
        body_a=topology.geom_body[a],
        body_b=topology.geom_body[b],
        key=jnp.where(active, a * model.layout.ng + b, -1),
        mu=mix(config.materials.friction_mix_mode, geoms.mu),
        restitution=mix(config.materials.restitution_mix_mode, geoms.restitution),
        stiffness=mix("average", geoms.stiffness),
        damping=mix("average", geoms.damping),
        found=found,
    )


def no_contacts(capacity: int, dtype) -> Contacts:
    """Empty slots (capacity,), of a world in which nothing can touch."""
    zero, none = jnp.zeros(capacity, dtype), jnp.full(capacity, -1, jnp.int32)
    point = jnp.zeros((capacity, 3), dtype)
    normal = point + jnp.array([0, 0, 1], dtype)
    off = jnp.zeros(capacity, bool)
    return Contacts(off, zero, normal, point, point, none, none, none, zero, zero, zero, zero, jnp.int32(0))


def collide(model: Model, q: Array, config: Config, *, beyond: float = 0.0) -> Contacts:
    """Contacts of one world whose bodies have the CoM poses q (nb, 7), and pairs up to `beyond` [m] farther apart.

    Contact: surface distance d <= m + g with m, g the summed margins and gaps, and d <= m alone if speculative contacts are culled.
    `distance` = d - m; the points are the midpoint -+ n d/2, on the surfaces. `found` counts all contacts, also those beyond `rows.nc`.
    """
    capacity = model.layout.rows.nc
    if not model.layout.pairs or capacity == 0:
        return no_contacts(capacity, model.dtype)
    slots = candidates(model, q)
    margin, reach = thresholds(model, config)
    found = jnp.sum(slots.distance <= jnp.minimum(reach[slots.pair], 0.5 * FAR), dtype=jnp.int32)
    active = slots.distance <= jnp.minimum(reach[slots.pair] + beyond, 0.5 * FAR)
    slots, active = compact(slots, active, margin[slots.pair] - slots.distance, capacity)
    return contacts_of(model, config, slots, active, margin, found)
