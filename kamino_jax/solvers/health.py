"""How far the derivatives of a step can be trusted."""

import jax
import jax.numpy as jnp
from jax import Array

from ..config import GradientConfig
from ..problem import Problem
from ..pytree import pytree
from . import implicit


@pytree
class GradientHealth:
    """Measured where derivatives are taken: at the polished impulses, in preconditioned units (unit diagonal of D)."""

    residual: Array  # largest entry of the natural map; a derivative is no better than this
    margin: Array  # smallest distance of a row from its next change of law; inf if no row has one
    condition: Array  # 1-norm condition number of the factorised matrix; redundant rows bring it near 1e6 (1e5 in single precision)


def gradient_health(problem: Problem, lam: Array, settings: GradientConfig) -> GradientHealth:
    """Health of the derivatives of one solution; has none itself."""
    problem, lam = jax.lax.stop_gradient((problem, lam))
    scaled = implicit.scaled_problem(problem)
    y = implicit.polished(scaled, lam.astype(scaled.P.dtype) / scaled.P, problem.active, settings)
    s = implicit.velocities(scaled, y)
    linear = implicit.system(scaled, y, s, problem.active, settings)
    norm = lambda A: jnp.max(jnp.sum(jnp.abs(A), axis=0), initial=0)
    inverse = linear.factors @ jnp.eye(linear.matrix.shape[0], dtype=y.dtype)
    return GradientHealth(
        residual=jnp.max(jnp.abs(implicit.natural_map(scaled, y, s, problem.active)), initial=0),
        margin=jnp.min(linear.modes.margin, initial=jnp.inf),
        condition=norm(linear.matrix) * norm(inverse),
    )
