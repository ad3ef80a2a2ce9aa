"""The unilateral rows of a problem, the bilateral ones solved for.

With the bilateral rows at rest under the impulses λ_s,

    v_u = K λ_u - C λ_s + b,    K = D_uu,  C = Yᵀ Y,  b = v_f,u - Yᵀ y      (see `bilateral`)

Alternation holds λ_s fixed while λ_u moves and then sets λ_s = λ_u; elimination moves both at once: K ← K - C, C ← 0.
"""

import jax.numpy as jnp
from jax import Array

from ..delassus import Dual
from ..layout import Rows
from ..linear import after
from ..pytree import once, pytree, replace, static
from . import cones
from .bilateral import Eliminated
from .ordered import OrderedElimination


@pytree
class Reduced:
    """Unilateral rows only."""

    rows: Rows = static()
    K: Array  # (nu, nu)
    C: Array | None  # (nu, nu), or None where nothing is held
    b: Array  # (nu,)
    bounds: tuple[Array, Array]  # of joint rows
    lower: Array
    upper: Array
    mu: Array
    recovery: Array

    def free(self, solved: Array) -> Array:
        """Velocities at λ_u = 0 with the bilateral rows solved at `solved`, (nu,)."""
        return self.b if self.C is None else self.b - self.C @ solved

    def velocity(self, lam: Array) -> Array:
        """Velocities with the bilateral rows at rest, (nu,)."""
        return self.K @ lam + self.free(lam)

    def project(self, lam: Array) -> Array:
        """Projection on boxes, half lines and cones."""
        return cones.project(self.rows, lam, self.bounds, self.mu)

    def residuals(self, lam: Array, v: Array) -> tuple[Array, Array, Array]:
        """(primal, dual, complementarity), see `cones.violations`."""
        return cones.violations(self.rows, lam, v, self.bounds, self.mu)

    def natural_map(self, lam: Array, v: Array) -> Array:
        """Largest |λ - Proj_C(λ - v - Γ(v))|."""
        return jnp.max(jnp.abs(cones.natural_map(self.rows, lam, v, self.bounds, self.mu)), initial=0)


def reduce(dual: Dual, eliminated: Eliminated | OrderedElimination | None, schur: bool) -> Reduced:
    """The unilateral part of a dual form; `schur`: elimination instead of alternation."""
    first = dual.rows.bilateral.stop
    rows = replace(dual.rows, njd=0, njk=0)
    half = dual.D.dense_rows(slice(first, None))
    half = half if eliminated is None else after(half, result=eliminated.y[0])
    K = jnp.matmul(half, half.T, precision="highest") + jnp.diag(dual.D.E[first:])
    C, b = None, dual.v_f[first:]
    if eliminated is not None:
        C, b = jnp.matmul(eliminated.Y.T, eliminated.Y, precision="highest"), b - eliminated.y @ eliminated.Y
        K, C = (K - C, None) if schur else (K, C)
    bounds = cones.joint_bounds(rows, dual.lower, dual.upper)
    recovery = jnp.zeros_like(dual.mu) if dual.recovery is None else dual.recovery
    return once(Reduced(rows, K, C, b, bounds, dual.lower, dual.upper, dual.mu, recovery))
