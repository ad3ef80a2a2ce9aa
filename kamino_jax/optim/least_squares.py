"""Levenberg-Marquardt for problems with few unknowns and many residuals."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..pytree import pytree
from .descent import Report

DAMPING = (1e-12, 1e-3, 1e12)  # least, first, largest
EASE, STIFFEN = 0.1, 8.0  # factors of the damping after a step that helped, and after one that did not


@pytree
class Normal:
    """A least-squares problem around one point."""

    cost: Array  # () ½ |r|²
    gradient: Array  # (n,) Jᵀ r
    curvature: Array  # (n, n) Jᵀ J


@pytree
class LeastSquares:
    """What Levenberg-Marquardt found."""

    x: Array  # (n,)
    normal: Normal  # the problem at x
    aux: Any  # what the residual said about x
    history: Array  # (iterations + 1,) cost of the best point so far
    iterations: int  # trial steps
    converged: bool


def normal_equations(residual: Callable, x: Array, data: Any) -> tuple[Normal, Any]:
    """(normal equations, aux) of residual(x, data) -> (r (m,), aux), Jacobian forward: few unknowns."""
    r, push, aux = jax.linearize(lambda x: residual(x, data), x, has_aux=True)
    J = jax.vmap(push)(jnp.eye(x.shape[0], dtype=x.dtype))
    return Normal(0.5 * jnp.sum(r * r), J @ r, jnp.matmul(J, J.T, precision="highest")), aux


@jax.jit
def _trial(x: Array, at: Normal, damping: Array) -> tuple[Array, Array, Array]:
    """(point, predicted share of the cost, relative length) of the step -(JᵀJ + damping D²)⁻¹ Jᵀr, D² the diagonal of JᵀJ."""
    diagonal = jnp.diag(at.curvature)
    scale = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1))
    A = at.curvature / (scale[:, None] * scale[None, :]) + damping * jnp.eye(x.shape[0], dtype=x.dtype)
    dx = -jnp.linalg.solve(A, at.gradient / scale) / scale
    predicted = -(at.gradient @ dx + 0.5 * dx @ at.curvature @ dx)
    share = predicted / jnp.where(at.cost > 0, at.cost, 1)
    return x + dx, share, jnp.max(jnp.abs(dx) / (1 + jnp.abs(x)))


def levenberg_marquardt(
    residual: Callable, x: Array, data: Any, *, iterations: int, tolerance: float | None = None, report: Report | None = None
) -> LeastSquares:
    """Minimise ½ |r|² of residual(x, data) -> (r (m,), aux) over x (n,); one program evaluates residual and Jacobian.

    Converged when the step promises less than `tolerance` of the cost or moves x by less than `tolerance` (relative, entries below 1
    absolute). `tolerance` None: ε^⅔, 4e-11 in double and 2e-5 in single precision.

    Raises:
        ValueError: the first cost is not finite.
    """
    tolerance = float(jnp.finfo(x.dtype).eps) ** (2 / 3) if tolerance is None else tolerance
    evaluate = jax.jit(lambda x, data: normal_equations(residual, x, data))
    (at, aux), damping, converged, k = evaluate(x, data), DAMPING[1], False, 0
    history = [float(at.cost)]
    if not math.isfinite(history[0]):
        raise ValueError(f"the residual where the fit starts has the square {history[0]}; start from something finite")
    while k < iterations and not converged and damping < DAMPING[2]:
        k += 1
        trial, share, length = _trial(x, at, jnp.asarray(damping, x.dtype))
        there, said = evaluate(trial, data)
        converged = min(float(share), float(length)) <= tolerance
        if float(there.cost) < history[-1]:
            x, at, aux, damping = trial, there, said, max(damping * EASE, DAMPING[0])
        else:
            damping *= STIFFEN
        history.append(float(at.cost))
        if report is not None:
            report(k, history[-1])
    return LeastSquares(x, at, aux, jnp.asarray(history, x.dtype), k, converged)
