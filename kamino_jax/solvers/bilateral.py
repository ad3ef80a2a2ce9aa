"""Bilateral rows eliminated by one direct factorisation.

With S = diag(1/√(D_ii + ε)) the block has a unit diagonal, and a floor makes redundant loops solvable:

    B = S D_bb S + floor = L Lᵀ,    Y = L⁻¹ S D_bu,    y = L⁻¹ S v_f,b
    λ_b(λ_u) = -S L⁻ᵀ (y + Y λ_u),    v_u(λ_u) = (D_uu - Yᵀ Y) λ_u + v_f,u - Yᵀ y

so the unilateral rows see symmetric matrices only, and nothing is ever inverted. Source: Newton `SolverKamino` (DVI), restated.
"""

import jax
import jax.numpy as jnp
from jax import Array

from ..delassus import Dual
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


def cholesky_with_retry(B: Array, shift: float) -> Array:
    """Lower factor of B; where a pivot fails, of B + shift, once."""
    factor = lambda B: jnp.linalg.cholesky(B, symmetrize_input=False)
    failed = lambda carry: (carry[1] < 1) & ~jnp.all(jnp.isfinite(carry[0]))
    retry = lambda carry: (factor(B + shift * jnp.eye(B.shape[0], dtype=B.dtype)), carry[1] + 1)
    return jax.lax.while_loop(failed, retry, (factor(B), jnp.zeros((), jnp.int32)))[0]


def eliminate(dual: Dual, rows: Array, shift: float) -> Eliminated:
    """Factorises the bilateral block; `rows`: half of D as a matrix (nd, width), shift: what is added where a pivot fails."""
    nb = dual.rows.bilateral.stop
    S = 1 / jnp.sqrt(jnp.abs(dual.D.diagonal()[:nb]) + EPS)
    half = S[:, None] * rows[:nb]
    product = lambda a, b: jnp.matmul(a, b.T, precision="highest")
    L = cholesky_with_retry(product(half, half) + jnp.diag(S * S * dual.D.E[:nb] + FLOOR), shift)
    right = jnp.concatenate([product(half, rows[nb:]), (S * dual.v_f[:nb])[:, None]], axis=1)
    Yy = jax.lax.linalg.triangular_solve(L, right, left_side=True, lower=True)
    return once(Eliminated(S, L, Yy[:, :-1], Yy[:, -1]))
