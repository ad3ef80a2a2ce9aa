"""The bilateral block factorised in a fill-reducing order: work and memory follow the mechanism, not the square of its rows.

Block Cholesky by columns of six rows (one joint), in the order of `Elimination`. With the right-hand sides as further rows,

    L_kk = chol(A_kk),  L_ik = A_ik L_kk⁻ᵀ,  Y_k = R_k L_kk⁻ᵀ
    A_ij ← A_ij - L_ik L_jkᵀ,  R_j ← R_j - Y_k L_jkᵀ     for the rows i >= j that column k touches

and backwards x_k = L_kk⁻ᵀ (y_k - Σ_i L_ikᵀ x_i). A chain takes linear time.
"""

import jax
import jax.numpy as jnp
from jax import Array

from ..delassus import Dual
from ..elimination import Elimination
from ..pytree import once, pytree
from .bilateral import FLOOR, retried
from .scaling import EPS


@pytree
class OrderedElimination:
    """As `bilateral.Eliminated`, with six places per joint in the order of elimination."""

    S: Array  # (nb,)
    order: Elimination
    diagonal: Array  # (nj, 6, 6) L_kk
    below: Array  # (nj, fill, 6, 6) L_ik
    Y: Array  # (6 nj, nu)
    y: Array  # (6 nj,)

    def impulses(self, lam_u: Array) -> Array:
        """λ_b that keeps the bilateral rows at rest under given unilateral impulses, (nb,)."""
        nj = self.diagonal.shape[0]

        def column(x, at):
            L, below, rows, y, k = at
            r = y - jnp.einsum("aij,ai->j", below, x[rows])
            x_k = jax.lax.linalg.triangular_solve(L, r[:, None], left_side=True, lower=True, transpose_a=True)[:, 0]
            return x.at[k].set(x_k), None

        y = (self.y + self.Y @ lam_u).reshape(nj, 6)
        steps = (self.diagonal, self.below, self.order.column, y, jnp.arange(nj, dtype=jnp.int32))
        x, _ = jax.lax.scan(column, jnp.zeros((nj + 1, 6), y.dtype), steps, reverse=True)
        return -self.S * x.reshape(-1)[self.order.place]


def _couplings(B: Array, body: Array, other: Array, other_body: Array, world: Array) -> Array:
    """Blocks Σ B_s O_tᵀ over the bodies that two items share: B (..., 2, m, 6), other (..., 2, n, 6) -> (..., m, n)."""
    shared = (body[..., :, None] == other_body[..., None, :]) & (body != world)[..., :, None]
    return jnp.einsum("...smx,...tnx,...st->...mn", B, other, shared.astype(B.dtype), precision="highest")


def _columns(dual: Dual, S: Array, order: Elimination) -> tuple[Array, Array]:
    """(blocks (nj + 1, fill + 1, 6, 6): diagonal and rows below, right-hand sides (nj + 1, nu + 1, 6))."""
    rows, D, nb, nj = dual.rows.bilateral, dual.D, dual.rows.bilateral.stop, order.column.shape[0]
    world, joint, place = D.bodies[-1], order.place // 6, order.place % 6
    B = jnp.zeros((nj + 1, 6, 2, 6), S.dtype).at[joint, place].set(S[:, None, None] * D.B[rows]).swapaxes(1, 2)
    body = jnp.full((nj + 1, 2), world).at[joint].set(D.body[rows])
    touched = jnp.concatenate([jnp.arange(nj, dtype=jnp.int32)[:, None], order.column], axis=1)
    blocks = _couplings(B[touched], body[touched], B[:-1, None], body[:-1, None], world)
    diagonal = jnp.ones((nj + 1, 6), S.dtype).at[joint, place].set(S * S * D.E[rows] + FLOOR)
    blocks = blocks.at[:, 0].add(diagonal[:-1, None, :] * jnp.eye(6, dtype=S.dtype))
    right = _couplings(D.B[None, nb:, :, None, :], D.body[None, nb:], B[:, None], body[:, None], world)[:, :, 0]
    free = jnp.zeros((nj + 1, 6), S.dtype).at[joint, place].set(S * dual.v_f[rows])
    pad = jnp.zeros((1, *blocks.shape[1:]), S.dtype)
    return jnp.concatenate([blocks, pad]), jnp.concatenate([right, free[:, None]], axis=1)


def _factor(blocks: Array, right: Array, order: Elimination, shift: Array) -> tuple[Array, Array, Array]:
    """(L_kk (nj, 6, 6), L_ik (nj, fill, 6, 6), Y (nj, nu + 1, 6)); `shift` is added to the diagonal."""
    nj, fill = order.column.shape
    product = lambda spec, *x: jnp.einsum(spec, *x, precision="highest")
    lower = jnp.tril(jnp.ones((fill, fill), bool))
    eye = jnp.eye(6, dtype=blocks.dtype)

    def column(carry, at):
        blocks, right = carry
        k, rows, slot = at
        L = jnp.linalg.cholesky(blocks[k, 0] + shift * eye, symmetrize_input=False)
        stacked = jnp.concatenate([blocks[k, 1:].reshape(-1, 6), right[k]])
        solved = jax.lax.linalg.triangular_solve(L, stacked, left_side=False, lower=True, transpose_a=True)
        below, Y = solved[: 6 * fill].reshape(fill, 6, 6), solved[6 * fill :]
        target = jnp.where(lower & (rows < nj)[:, None], rows[None, :], nj)
        blocks = blocks.at[target, slot].add(-product("aix,bjx->abij", below, below))
        right = right.at[rows].add(-product("mx,ajx->amj", Y, below))
        return (blocks, right), (L, below, Y)

    steps = (jnp.arange(nj, dtype=jnp.int32), order.column, order.slot)
    return jax.lax.scan(column, (blocks, right), steps)[1]


def eliminate_in_order(dual: Dual, shift: float) -> OrderedElimination:
    """Factorises the bilateral block in the order that the problem brings along; `shift`: what is added where a pivot fails."""
    if dual.elimination is None:
        raise ValueError("bilateral_solver_type 'LLTBRCM' needs a problem that says in which order; this one does not: use 'LLTB'")
    order, nb = dual.elimination, dual.rows.bilateral.stop
    S = 1 / jnp.sqrt(jnp.abs(dual.D.diagonal()[:nb]) + EPS)
    blocks, right = once(_columns(dual, S, order))
    L, below, Y = retried(lambda shift: _factor(blocks, right, order, shift), shift, S.dtype)
    Y = jnp.swapaxes(Y, 1, 2).reshape(-1, Y.shape[1])
    return once(OrderedElimination(S, order, L, below, Y[:, :-1], Y[:, -1]))
