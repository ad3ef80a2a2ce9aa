"""The preconditioned problem: λ = P y, s = P v, D̂ = P D P with a unit diagonal. P is one number per row, one per contact."""

import jax.numpy as jnp
from jax import Array

from ..delassus import Delassus, DenseDelassus, Dual
from ..layout import Rows
from ..pytree import once, pytree, static
from . import cones

EPS = 1.1920929e-07  # Kamino's float32 epsilon
P_MAX = 50.0  # an upper clamp alone: a lower one leaves the rows of light bodies at D̂_ii >> 1, which float32 cannot invert


@pytree
class Scaled:
    """The preconditioned problem."""

    rows: Rows = static()
    operator: Delassus | DenseDelassus
    P: Array
    v_f: Array
    lower: Array
    upper: Array
    bounds: tuple[Array, Array]
    mu: Array


def preconditioner(dual: Dual) -> Array:
    """P = min(1/√(D_ii + ε), 50), (nd,); contacts take the largest of their three diagonal entries."""
    rows, diagonal = dual.rows, dual.D.diagonal()
    contacts = jnp.max(cones.contacts_of(rows, diagonal), axis=1)
    diagonal = jnp.concatenate([diagonal[: rows.nj], jnp.repeat(contacts, 3)])
    return jnp.minimum(1 / jnp.sqrt(jnp.abs(diagonal) + EPS), P_MAX)


def precondition(dual: Dual, enabled: bool) -> Scaled:
    """The problem in preconditioned units (P = 1 if not enabled)."""
    rows = dual.rows
    P = once(preconditioner(dual)) if enabled else jnp.ones_like(dual.v_f)
    lower, upper = dual.lower / P[rows.bounded], dual.upper / P[rows.bounded]
    bounds = cones.joint_bounds(rows, lower, upper)
    return once(Scaled(rows, dual.D.scaled(P), P, P * dual.v_f, lower, upper, bounds, dual.mu))
