"""Bilateral rows eliminated by one direct factorisation.

With S = diag(1/√(D_ii + ε)) the block has a unit diagonal, and a floor makes redundant loops solvable:

    B = S D_bb S + floor = L Lᵀ,    Y = L⁻¹ S D_bu,    y = L⁻¹ S v_f,b
    λ_b(λ_u) = -S L⁻ᵀ (y + Y λ_u),    v_u(λ_u) = (D_uu - Yᵀ Y) λ_u + v_f,u - Yᵀ y

so the unilateral rows see symmetric matrices only, and nothing is ever inverted. Source: Newton `SolverKamino` (DVI), restated.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..delassus import Dual
from ..linear import after
from ..pytree import once, pytree
from .scaling import EPS

FLOOR = 7e-7


@pytree
class Eliminated:
    """The dual form with the bilateral rows eliminated."""

    S: Array  # (nb,) scaling of the bilateral rows
    L: Array  # (nb, nb) lower triangular factor
    Y: Array  # (nb, nu) L⁻¹ S D_bu
    y: Array  # (nb,) L⁻¹ S v_f,b

    def impulses(self, lam_u: Array) -> Array:
        """λ_b that keeps the bilateral rows at rest under given unilateral impulses, (nb,)."""
        back = jax.lax.linalg.triangular_solve(self.L, (self.y + self.Y @ lam_u)[:, None], left_side=True, lower=True, transpose_a=True)
        return -self.S * back[:, 0]


def retried(factor: Callable, shift: float, dtype) -> Any:
    """factor(0), or factor(shift) where that is not finite.

    The shift is carried: were it a constant, XLA would see that the second attempt never changes and make it before the first has ended.
    """
    finite = lambda tree: jnp.all(jnp.stack([jnp.all(jnp.isfinite(x)) for x in jax.tree.leaves(tree)]))
    failed = lambda carry: (carry[1] > 0) & ~finite(carry[0])
    again = lambda carry: (factor(carry[1]), jnp.zeros_like(carry[1]))
    return jax.lax.while_loop(failed, again, (factor(jnp.zeros((), dtype)), jnp.asarray(shift, dtype)))[0]


def eliminate(dual: Dual, shift: float) -> Eliminated:
    """Factorises the bilateral block; `shift`: what is added where a pivot fails."""
    nb, rows = dual.rows.bilateral.stop, dual.D.dense_rows()
    S = 1 / jnp.sqrt(jnp.abs(dual.D.diagonal()[:nb]) + EPS)
    half = S[:, None] * rows[:nb]
    product = lambda a, b: jnp.matmul(a, b.T, precision="highest")
    right = jnp.concatenate([product(half, rows[nb:]), (S * dual.v_f[:nb])[:, None]], axis=1)
    B = after(product(half, half) + jnp.diag(S * S * dual.D.E[:nb] + FLOOR), result=right[0, 0])
    eye = jnp.eye(nb, dtype=S.dtype)
    L = retried(lambda shift: jnp.linalg.cholesky(B + shift * eye, symmetrize_input=False), shift, S.dtype)
    Yy = jax.lax.linalg.triangular_solve(L, right, left_side=True, lower=True)
    return once(Eliminated(S, L, Yy[:, :-1], Yy[:, -1]))
