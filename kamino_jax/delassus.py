"""The Delassus operator D = J M⁻¹ Jᵀ + E: apparent inverse inertia of the constraint rows [1/kg, 1/(kg m²)].

Stored as half of it: B = P J S with M⁻¹ = S Sᵀ, so that P D P = B Bᵀ + P² E is symmetric by construction, for any positive row
scaling P. It is never differentiated; derivatives go through J and M⁻¹ themselves.

An operator offers `diagonal`, `mv`, `dense_rows` (B as a matrix), `width` (its columns) and `scaled`.
"""

import jax
import jax.numpy as jnp
from jax import Array

from . import spatial
from .elimination import Elimination
from .layout import Rows
from .problem import Problem, free_velocity
from .pytree import once, pytree, replace, static


@pytree
class Delassus:
    """P D P in factored form."""

    B: Array  # (nd, 2, 6) blocks of P J S
    body: Array  # (nd, 2)
    E: Array  # (nd,) P² E
    bodies: Array  # (nb + 1,) bodies' indices, the world last

    @property
    def width(self) -> int:
        """Columns of B as a matrix, 6 nb."""
        return 6 * (self.bodies.shape[0] - 1)

    def diagonal(self) -> Array:
        """Diagonal (nd,)."""
        return jnp.sum(self.B * self.B, axis=(1, 2)) + self.E

    def mv(self, x: Array) -> Array:
        """Product with x (nd,), matrix-free."""
        momenta = jnp.zeros((self.bodies.shape[0], 6), x.dtype).at[self.body].add(self.B * x[:, None, None])
        return jnp.sum(self.B * momenta[self.body], axis=(1, 2)) + self.E * x

    def dense_rows(self, rows: slice = slice(None)) -> Array:
        """B as a matrix, (nd, 6 nb), or some rows of it."""
        B, body = self.B[rows], self.body[rows]
        at = body[:, :, None] == self.bodies[None, None, :-1]  # (nd, 2, nb)
        blocks = jnp.where(at[..., None], B[:, :, None, :], 0)
        return jnp.sum(blocks, axis=1).reshape(B.shape[0], self.width)

    def scaled(self, P: Array) -> "Delassus":
        """The operator with rows and columns multiplied by P (nd,)."""
        return replace(self, B=self.B * P[:, None, None], E=self.E * P * P)


@pytree
class DenseDelassus:
    """D = B Bᵀ + diag(E) from a given matrix B, for problems that come without bodies."""

    B: Array  # (nd, width)
    E: Array  # (nd,)

    @property
    def width(self) -> int:
        """Columns of B."""
        return self.B.shape[1]

    def diagonal(self) -> Array:
        """Diagonal (nd,)."""
        return jnp.sum(self.B * self.B, axis=1) + self.E

    def mv(self, x: Array) -> Array:
        """Product with x (nd,)."""
        return self.B @ (x @ self.B) + self.E * x

    def dense_rows(self, rows: slice = slice(None)) -> Array:
        """B, or some rows of it."""
        return self.B[rows]

    def scaled(self, P: Array) -> "DenseDelassus":
        """The operator with rows and columns multiplied by P (nd,)."""
        return replace(self, B=self.B * P[:, None], E=self.E * P * P)


@pytree
class Dual:
    """A problem in its dual form, v = D λ + v_f: all that the dual solvers look at."""

    rows: Rows = static()
    D: Delassus | DenseDelassus
    v_f: Array  # (nd,) [m/s, rad/s]
    lower: Array  # (nf + ne,) [N s, N m s]
    upper: Array  # (nf + ne,)
    mu: Array  # (nc,)
    active: Array  # (nd,) bool
    recovery: Array | None = None  # (nc,) [m/s] share of v_f on normals that removes the penetration of hard contacts; None: zero
    elimination: Elimination | None = None  # order of the bilateral rows, where one is wanted


def dual_form(problem: Problem) -> Dual:
    """The dual form of a problem."""
    D, v_f = delassus(problem), free_velocity(problem)
    normals = jnp.s_[problem.rows.nj + 2 :: 3]
    recovery = jnp.where(problem.E[normals] == 0, problem.v_b[normals], 0)
    return Dual(problem.rows, D, v_f, problem.lower, problem.upper, problem.mu, problem.active, recovery, problem.elimination)


def delassus(problem: Problem) -> Delassus:
    """D of a problem, unscaled."""
    G = once(jax.vmap(spatial.cholesky3)(problem.inv_I))[problem.body]  # (nd, 2, 3, 3)
    linear = problem.J[..., :3] * spatial.sqrt(problem.inv_m)[problem.body][..., None]
    angular = jnp.sum(problem.J[..., 3:, None] * G, axis=-2)
    bodies = jnp.arange(problem.inv_m.shape[0], dtype=jnp.int32)
    return once(Delassus(jnp.concatenate([linear, angular], axis=-1), problem.body, problem.E, bodies))
