"""First-order descent with a projection and the best iterate kept."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ..pytree import pytree

Report = Callable[[int, float], Any]  # called with (iteration, cost)


@pytree
class Descent:
    """What a descent found."""

    x: Any  # the best iterate
    aux: Any  # what the objective said about it
    cost: Array  # () its cost
    history: Array  # (iterations + 1,) cost of every iterate
    iterations: int  # updates made
    converged: bool  # stationary within the tolerance


def _stationarity(x: Any, gradient: Any, project: Callable) -> Array:
    """The largest entry of x - Π(x - ∇f): zero exactly where no feasible direction descends."""
    moved = project(jax.tree.map(lambda a, g: a - g, x, gradient))
    return jnp.max(jnp.stack([jnp.max(jnp.abs(a - b), initial=0) for a, b in zip(*map(jax.tree.leaves, (x, moved)), strict=True)]))


def descend(
    value_and_grad: Callable,
    x: Any,
    data: Any,
    *,
    optimizer: optax.GradientTransformation,
    iterations: int,
    tolerance: float,
    project: Callable = lambda x: x,
    report: Report | None = None,
) -> Descent:
    """Minimise a cost over x by x ← Π(x + optimizer(∇f)), one program for all updates.

    Args:
        value_and_grad: (x, data) -> ((cost, aux), gradient), as of `jax.value_and_grad(..., has_aux=True)`.

    Stops when every entry of x - Π(x - ∇f) is within the tolerance, or when cost or gradient is not finite (not converged).

    Raises:
        ValueError: the first cost is not finite.
    """

    @jax.jit
    def update(x, memory, data):
        (cost, aux), gradient = value_and_grad(x, data)
        with jax.numpy_dtype_promotion("standard"):  # Adam counts in int32 and raises floats to that power
            moves, memory = optimizer.update(gradient, memory, x)
        return project(optax.apply_updates(x, moves)), memory, (cost, aux, _stationarity(x, gradient, project))

    x = project(x)
    memory, history, best = optimizer.init(x), [], (x, None, math.inf)
    for k in range(iterations + 1):
        after, memory, (cost, aux, slope) = update(x, memory, data)
        history.append(float(cost))
        if k == 0 and not math.isfinite(history[0]):
            raise ValueError(f"the cost where the optimisation starts is {history[0]}; start from something finite")
        if report is not None:
            report(k, history[-1])
        if history[-1] < best[2]:
            best = (x, aux, history[-1])
        if float(slope) <= tolerance or not math.isfinite(history[-1] + float(slope)):
            break
        x = after
    return Descent(best[0], best[1], jnp.asarray(best[2], cost.dtype), jnp.asarray(history, cost.dtype), k, float(slope) <= tolerance)
