"""Small dense linear algebra."""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from .pytree import pytree

T = TypeVar("T")


def spd_inverse(A: Array) -> Array:
    """A⁻¹ of one symmetric positive definite matrix: L⁻ᵀ L⁻¹ with A = L Lᵀ.

    For well conditioned matrices that are applied many times: a product per application costs far less than two triangular solves
    in batches of small systems.
    """
    L = jnp.linalg.cholesky(A, symmetrize_input=False)
    inverse = jax.lax.linalg.triangular_solve(L, jnp.eye(A.shape[0], dtype=A.dtype), left_side=True, lower=True)
    return jnp.matmul(inverse.T, inverse, precision="highest")


def conjugate_residuals(mv, b: Array, x: Array, *, atol: Array, rtol: float, maxiter: int) -> Array:
    """Solves mv(x) = b for a symmetric operator from the guess x.

    Stops when |b - mv(x)|² <= max((rtol |b|)², atol²), or after `maxiter` iterations.
    """
    bound = jnp.maximum((rtol * rtol) * jnp.sum(b * b), atol * atol)

    def keep_going(carry):
        k, _, r, *_ = carry
        return (k < maxiter) & (jnp.sum(r * r) > bound)

    def iterate(carry):
        k, x, r, p, Ar, Ap, rAr = carry
        square = jnp.sum(Ap * Ap)
        alpha = rAr / jnp.where(square > 0, square, 1)
        x, r = x + alpha * p, r - alpha * Ap
        Ar = mv(r)
        rAr_next = jnp.sum(r * Ar)
        beta = rAr_next / jnp.where(rAr == 0, 1, rAr)
        return k + 1, x, r, r + beta * p, Ar, Ar + beta * Ap, rAr_next

    r = b - mv(x)
    Ar = mv(r)
    return jax.lax.while_loop(keep_going, iterate, (0, x, r, r, Ar, Ar, jnp.sum(r * Ar)))[1]


@pytree
class Factors:
    """A⁻¹ = U⁻¹ (L⁻¹ P), both factors inverted explicitly: products cost less than triangular solves, and err less than A⁻¹ itself."""

    lower: Array  # (n, n) L⁻¹ P
    upper: Array  # (n, n) U⁻¹

    def __matmul__(self, b: Array) -> Array:
        """A⁻¹ b."""
        return jnp.matmul(self.upper, jnp.matmul(self.lower, b, precision="highest"), precision="highest")


def after(x: T, *, result: Array) -> T:
    """x, to be computed after `result`.

    Batched LAPACK calls that may run side by side can wait for each other for ever on XLA's CPU threads (jaxlib 0.10), so they are
    chained. A barrier does not do it: only a number that depends on another one is computed after it.
    """
    zero = 0 * jnp.sum(result)
    return jax.tree.map(lambda a: a + zero.astype(a.dtype), x)


def factorise(A: Array) -> Factors:
    """Factors of one square matrix by elimination with partial pivoting."""
    lu, _, order = jax.lax.linalg.lu(A)
    eye = jnp.eye(A.shape[0], dtype=A.dtype)
    lower = jax.lax.linalg.triangular_solve(lu, eye[order], left_side=True, lower=True, unit_diagonal=True)
    return Factors(lower, jax.lax.linalg.triangular_solve(lu, after(eye, result=lower[0, 0]), left_side=True, lower=False))
