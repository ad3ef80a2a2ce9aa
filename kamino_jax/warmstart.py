"""From the last step's reactions to a guess for today's rows.

Joint and limit rows keep their place; contacts are matched by geom pair and by position. A cached force F gives λ = h F, a cached
velocity the dual. A guess never changes the exact solution (it selects one where several exist). Source: Newton `SolverKamino`.
"""

import jax
import jax.numpy as jnp
from jax import Array

from .config import DVIConfig, PADMMConfig
from .dynamics.contact_rows import ContactRows
from .layout import Rows
from .problem import Problem, constraint_velocity
from .pytree import pytree
from .solvers import cones
from .solvers.backend import Guess
from .spatial import cross
from .state import Contacts, Reactions

Settings = PADMMConfig | DVIConfig


@pytree
class Matched:
    """Force [N] and velocity [m/s] of every contact, in its frame."""

    force: Array  # (nc, 3)
    velocity: Array  # (nc, 3)


def _to_world(frame: Array, v: Array) -> Array:
    return jnp.sum(frame * v[..., None], axis=-2)


def _to_frame(frame: Array, v: Array) -> Array:
    return jnp.sum(frame * v[..., None, :], axis=-1)


def same_pair(contacts: Contacts, old: Reactions) -> Array:
    """Which cached contacts (columns) belong to the geom pair of which contacts (rows), (nc, nc_old)."""
    return contacts.active[:, None] & (contacts.key[:, None] == old.key[None, :])


def _siblings(contacts: Contacts) -> Array:
    """Which contacts share a geom pair now, (nc, nc)."""
    return contacts.active[None, :] & (contacts.key[:, None] == contacts.key[None, :])


def match_by_position(problem: Problem, contacts: Contacts, rows: ContactRows, old: Reactions, h, distance: float) -> tuple[Matched, Array]:
    """(reactions, found): the first cached contact of the pair that body B carried to within `distance` of the contact."""
    u = problem.u[rows.body[:, 1]]
    carried = lambda u, r: old.point + h * (u[:3] + cross(u[3:], old.point - r))
    moved = jax.vmap(carried)(u, rows.r_B)  # (nc, nc_old, 3)
    near = jnp.sum((moved - contacts.point_b[:, None]) ** 2, axis=-1) < distance * distance
    hit = same_pair(contacts, old) & near
    found, first = jnp.any(hit, axis=1), jnp.argmax(hit, axis=1)
    nj = problem.rows.nj
    carry = lambda x: _to_frame(rows.frame, _to_world(old.frame, x[nj:].reshape(-1, 3))[first])
    keep = found[:, None]
    return Matched(jnp.where(keep, carry(old.force), 0), jnp.where(keep, carry(old.velocity), 0)), found


def pair_net_force(problem: Problem, contacts: Contacts, frame: Array, old: Reactions) -> Matched:
    """The pair's cached net force shared among its contacts, within the friction cone; velocity as it is now, not approaching."""
    same = same_pair(contacts, old).astype(frame.dtype)
    siblings = jnp.maximum(jnp.sum(_siblings(contacts), axis=1, dtype=frame.dtype), 1)
    total = same @ _to_world(old.frame, old.force[problem.rows.nj :].reshape(-1, 3))
    force = cones.project_cone(_to_frame(frame, total / siblings[:, None]), contacts.mu)
    velocity = cones.contacts_of(problem.rows, constraint_velocity(problem, problem.u))
    approach = velocity * jnp.asarray([1, 1, 0], velocity.dtype) + jnp.maximum(velocity, 0) * jnp.asarray([0, 0, 1], velocity.dtype)
    return Matched(force, approach)


def balance_tangents(problem: Problem, contacts: Contacts, frame: Array, old: Reactions, force: Array, *, by_current: bool) -> Array:
    """Tangential forces replaced by the pair's mean cached one, within μ times the normal force, (nc, 3)."""
    same = same_pair(contacts, old)
    world = _to_world(old.frame, old.force[problem.rows.nj :].reshape(-1, 3) * jnp.asarray([1, 1, 0], force.dtype))
    count = jnp.maximum(jnp.sum(_siblings(contacts) if by_current else same, axis=1, dtype=force.dtype), 1)
    tangent = _to_frame(frame, same.astype(force.dtype) @ world / count[:, None])[:, :2]
    room = contacts.mu * jnp.maximum(force[:, 2], 0)
    length = jnp.sqrt(jnp.sum(tangent * tangent, axis=1))
    tangent = tangent * jnp.where(length > room, room / jnp.where(length > 0, length, 1), 1)[:, None]
    return jnp.concatenate([tangent, force[:, 2:]], axis=1)


def match_contacts(
    problem: Problem, contacts: Contacts, rows: ContactRows, old: Reactions, h, settings: PADMMConfig | DVIConfig
) -> Matched:
    """Cached reactions for today's contacts by the configured method."""
    if problem.rows.nc == 0:  # static
        return Matched(jnp.zeros_like(contacts.normal), jnp.zeros_like(contacts.normal))
    method = settings.contact_warmstart_method
    if method == "geom_pair_net_force":
        return pair_net_force(problem, contacts, rows.frame, old)
    matched, found = match_by_position(problem, contacts, rows, old, h, settings.contact_warmstart_distance)
    if "net_force_backup" in method:
        backup = pair_net_force(problem, contacts, rows.frame, old)
        matched = jax.tree.map(lambda a, b: jnp.where(found[:, None], a, b), matched, backup)
    if "tangential" in method:
        by_current = "backup" in method
        force = balance_tangents(problem, contacts, rows.frame, old, matched.force, by_current=by_current)
        keep = contacts.active if by_current else found
        matched = Matched(jnp.where(keep[:, None], force, matched.force), matched.velocity)
    return matched


def _joint_dual(rows: Rows, problem: Problem, lam: Array, velocity: Array) -> Array:
    """Dual of joint rows: 0 bilateral, J u friction, J u + E λ + v_b effort, the cached velocity on limits."""
    Ju = constraint_velocity(problem, problem.u)
    effort = Ju + problem.E * lam + problem.v_b
    limit = jnp.maximum(velocity[rows.limit], 0)
    parts = [jnp.zeros(rows.bilateral.stop, lam.dtype), Ju[rows.friction], effort[rows.effort], limit]
    return jnp.concatenate(parts)


def _containers(problem: Problem, contacts: Contacts, touching: ContactRows, old: Reactions, h, settings: Settings) -> Guess:
    rows = problem.rows
    force = old.force[: rows.nj].at[rows.limit].set(jnp.maximum(old.force[rows.limit], 0))
    matched = match_contacts(problem, contacts, touching, old, h, settings)
    lam = h * jnp.concatenate([force, matched.force.reshape(-1)])
    v = jnp.concatenate([_joint_dual(rows, problem, lam, old.velocity), matched.velocity.reshape(-1)])
    return Guess(lam, v)


def guess(problem: Problem, contacts: Contacts, touching: ContactRows, old: Reactions, h, settings: Settings) -> Guess:
    """Where the solver starts, in physical units."""
    if settings.warmstart_mode == "none":
        zero = jnp.zeros_like(problem.E)
        return Guess(zero, zero)
    if settings.warmstart_mode == "internal":
        start = Guess(h * old.force, old.velocity)
    else:
        start = _containers(problem, contacts, touching, old, h, settings)
    v_aug = start.v_aug + cones.de_saxce(problem.rows, start.v_aug, problem.mu)
    on = problem.active
    return Guess(jnp.where(on, start.lam, 0), jnp.where(on, v_aug, 0))


def remember(problem: Problem, contacts: Contacts, touching: ContactRows, lam: Array, v_plus: Array, h) -> Reactions:
    """What the next step may start from."""
    key = jnp.where(contacts.active, contacts.key, -1)
    return Reactions(lam / h, v_plus, key, contacts.point_b, touching.frame)
