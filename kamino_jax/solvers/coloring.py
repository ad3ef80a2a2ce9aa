"""Which unilateral constraints may be updated at once: those that share no body.

Entities are bounded rows, limits and contacts, in this order. Each takes the lowest colour that no earlier entity on its bodies has.
"""

import jax
import jax.numpy as jnp
from jax import Array

from ..delassus import Delassus, DenseDelassus
from ..layout import Rows


def _bodies(rows: Rows, D: Delassus) -> Array:
    """The bodies that each entity moves, (entities, 2); immovable ones and those of inactive rows as the world."""
    joints = slice(rows.bilateral.stop, rows.nj)
    moves = jnp.any(D.B != 0, axis=-1)
    moves = jnp.concatenate([moves[joints], jnp.any(moves[rows.contact].reshape(-1, 3, 2), axis=1)])
    body = jnp.concatenate([D.body[joints], D.body[rows.nj :: 3]])
    return jnp.where(moves, body, D.bodies[-1])


def colors(rows: Rows, D: Delassus | DenseDelassus) -> tuple[Array, Array]:
    """(colour of each unilateral row (nu,), number of colours), int32, both traced. Without bodies every entity has its own."""
    single, entities = rows.nf + rows.ne + rows.nl, rows.nf + rows.ne + rows.nl + rows.nc
    index = jnp.arange(entities, dtype=jnp.int32)
    of_row = jnp.concatenate([index[:single], jnp.repeat(index[single:], 3)])
    if not isinstance(D, Delassus):
        return of_row, jnp.asarray(entities, jnp.int32)
    world = D.bodies[-1]

    def assign(taken, bodies):
        free = ~jnp.any(taken[bodies] & (bodies != world)[:, None], axis=0)
        color = jnp.argmax(free).astype(jnp.int32)
        return taken.at[bodies, color].set(True), color

    _, color = jax.lax.scan(assign, jnp.zeros((D.bodies.shape[0], entities), bool), _bodies(rows, D))
    return color[of_row], jnp.max(color) + 1
