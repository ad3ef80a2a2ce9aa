"""Newton's flat list of contacts as contact slots of every world, on the device."""

import functools

import jax
import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..collision.materials import MIX_MODES
from ..config import Config
from ..pytree import pytree, replace
from ..state import Contacts


@pytree
class Surfaces:
    """Newton's shapes and bodies, as far as contacts need them. A last entry stands for the world, body -1."""

    body: Array  # (S,) int32 in Newton's numbering
    world: Array  # (S,) int32, -1 for shared static shapes
    position: Array  # (S,) int32 in the world, or among the shared shapes
    margin: Array  # (S,) [m]
    mu: Array  # (S,)
    restitution: Array  # (S,)
    stiffness: Array  # (S,) [N/m]
    damping: Array  # (S,) [N s/m]
    body_position: Array  # (B + 1,) int32 in its world
    immovable: Array  # (B + 1,) bool, False for the world
    slot: Array  # (worlds,) int32 place of each world in the bucket, -1 if in another
    own_shapes: Array  # (W,) int32
    all_shapes: Array  # (W,) int32 with the shared ones


@pytree
class Rigid:
    """Newton's contact arrays, one row per contact."""

    count: Array  # (1,) int32 may exceed the number of rows
    shape: Array  # (R, 2) int32, negative: filtered out
    point: Array  # (R, 2, 3) [m] skeleton points in the body frames
    offset: Array  # (R, 2, 3) [m] from there to the surface with its margin
    normal: Array  # (R, 3) world, from the first shape to the second
    margin: Array  # (R, 2) [m] radius and margin
    stiffness: Array  # (R,) [N/m] 0: that of the shapes
    damping: Array  # (R,)


@functools.partial(jax.jit, static_argnames=("capacity", "config", "dtype"))
def contacts_from_newton(surfaces: Surfaces, rigid: Rigid, body_q: Array, *, capacity: int, config: Config, dtype) -> Contacts:
    """Contact slots (W, capacity).

    distance = n · (p₁ - p₀) - (m₀ + m₁) from the skeleton points and effective margins; the anchors are on the surfaces without
    margin. Dropped: rows beyond the count, negative shapes, two immovable bodies, and positive distances if speculative contacts are
    culled. Body B is a body. Slots are sorted by depth, so that the deepest fit. Source: Newton `SolverKamino`, conversion of contacts.
    """
    cast = lambda x: x.astype(dtype) if jnp.issubdtype(x.dtype, jnp.floating) else x
    surfaces, rigid, body_q = jax.tree.map(cast, (surfaces, rigid, body_q))
    rows, world = rows_of(surfaces, rigid, body_q, config)
    keep = rows.active & (world >= 0)
    if config.dynamics.cull_speculative_contacts:
        keep &= rows.distance <= 0
    worlds = surfaces.own_shapes.shape[0]
    slots, found = deal(rows, jnp.where(keep, world, worlds), worlds, capacity)
    lost = jnp.maximum(rigid.count[0] - rigid.shape.shape[0], 0)
    # rows that Newton had no room for may be of any world: no world may look complete
    return replace(slots, found=jnp.where(lost > 0, jnp.maximum(found, capacity) + lost, found).astype(jnp.int32))


def rows_of(surfaces: Surfaces, rigid: Rigid, body_q: Array, config: Config) -> tuple[Contacts, Array]:
    """Every row as a contact (R,), and the place of its world in the bucket (R,), -1 if it is of no world here."""
    shape = jnp.maximum(rigid.shape, 0)
    body = jnp.where(rigid.shape >= 0, surfaces.body[shape], -1)
    poses = jnp.concatenate([body_q, jnp.array([[0, 0, 0, 0, 0, 0, 1]], body_q.dtype)])[body]  # (R, 2, 7)
    skeleton, surface = (_place(poses, x) for x in (rigid.point, rigid.point + _bare(surfaces, rigid, shape)))
    gap = jnp.sum(rigid.normal * (skeleton[:, 1] - skeleton[:, 0]), axis=1) - jnp.sum(rigid.margin, axis=1)
    live = (jnp.arange(rigid.shape.shape[0], dtype=jnp.int32) < rigid.count[0]) & jnp.all(rigid.shape >= 0, axis=1)
    flip = body[:, 1] < 0
    a, b = jnp.where(flip, 1, 0), jnp.where(flip, 0, 1)
    pick = lambda x, side: jnp.take_along_axis(x, side.reshape(-1, *(1,) * (x.ndim - 1)), axis=1)[:, 0]
    body_a, body_b = pick(body, a), pick(body, b)
    world = jnp.max(surfaces.world[shape], axis=1)
    slot = jnp.where(world >= 0, surfaces.slot[world], -1)
    contacts = Contacts(
        active=live & (body_b >= 0) & ~(surfaces.immovable[body_a] & surfaces.immovable[body_b]),
        distance=gap,
        normal=jnp.where(flip[:, None], -rigid.normal, rigid.normal),
        point_a=pick(surface, a),
        point_b=pick(surface, b),
        body_a=surfaces.body_position[body_a],
        body_b=surfaces.body_position[body_b],
        key=_key(surfaces, pick(shape, a), pick(shape, b), jnp.maximum(slot, 0)),
        **_material(surfaces, rigid, shape, config),
        found=jnp.int32(0),
    )
    return contacts, slot


def _place(poses, points):
    return poses[..., :3] + spatial.quat_rotate(spatial.normalize(poses[..., 3:]), points)


def _bare(surfaces, rigid, shape):
    """Offsets (R, 2, 3) shortened by the margin of the shape."""
    thick = rigid.margin != 0
    share = (rigid.margin - surfaces.margin[shape]) / jnp.where(thick, rigid.margin, 1)
    return rigid.offset * jnp.where(thick, share, 0)[..., None]


def _key(surfaces, a, b, slot):
    """Number of the shape pair in its world, as in contacts that this package finds."""
    own = lambda s: surfaces.position[s] + jnp.where(surfaces.world[s] < 0, surfaces.own_shapes[slot], 0)
    return own(a) * surfaces.all_shapes[slot] + own(b)


def _material(surfaces, rigid, shape, config):
    mix = lambda mode, x: MIX_MODES[mode](x[shape[:, 0]], x[shape[:, 1]])
    special = rigid.stiffness > 0
    return dict(
        mu=mix(config.materials.friction_mix_mode, surfaces.mu),
        restitution=mix(config.materials.restitution_mix_mode, surfaces.restitution),
        stiffness=jnp.where(special, rigid.stiffness, mix("average", surfaces.stiffness)),
        damping=jnp.where(special, rigid.damping, mix("average", surfaces.damping)),
    )


def deal(rows: Contacts, world: Array, worlds: int, capacity: int) -> tuple[Contacts, Array]:
    """Rows dealt to the slots (worlds, capacity) of their world, deepest first, and how many each world has; world = worlds: no row.

    Ties are broken by shape pair and place, so the result does not depend on the order of the rows.
    """
    p = rows.point_b
    order = jnp.lexsort((p[:, 2], p[:, 1], p[:, 0], rows.key, rows.distance, world))
    world = world[order]
    found = jnp.zeros(worlds + 1, jnp.int32).at[world].add(1)
    rank = jnp.arange(world.shape[0], dtype=jnp.int32) - (jnp.cumsum(found, dtype=jnp.int32) - found)[world]
    slot = jnp.where((world < worlds) & (rank < capacity), world * capacity + rank, worlds * capacity)

    def scatter(values, empty):
        slots = jnp.broadcast_to(jnp.asarray(empty, values.dtype), (worlds * capacity, *values.shape[1:]))
        return slots.at[slot].set(values[order], mode="drop").reshape(worlds, capacity, *values.shape[1:])

    empty = dict(active=False, distance=0, normal=(0, 0, 1), point_a=0, point_b=0, body_a=-1, body_b=-1, key=-1)
    empty |= dict(mu=0, restitution=0, stiffness=0, damping=0)
    return Contacts(**{name: scatter(getattr(rows, name), value) for name, value in empty.items()}, found=found[:worlds]), found[:worlds]
