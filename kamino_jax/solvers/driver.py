"""The one loop of every iterative backend.

A backend is a set of pure functions on its own iterate:

    step(iterate) -> iterate             one iteration
    progress(iterate) -> Progress        has it converged, is it finite
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..pytree import pytree


@pytree
class Progress:
    """Whether to go on."""

    converged: Array  # bool
    finite: Array  # bool


def _done(progress: Progress) -> Array:
    return progress.converged | ~progress.finite


def iterate_until(step: Callable, progress: Callable, start: Any, budget: int) -> tuple[Any, Array]:
    """(last iterate, iterations): steps until converged, not finite, or `budget` iterations."""

    def keep_going(carry):
        x, k = carry
        return (k < budget) & ~_done(progress(x))

    return jax.lax.while_loop(keep_going, lambda carry: (step(carry[0]), carry[1] + 1), (start, jnp.zeros((), jnp.int32)))


def iterate_recording(step: Callable, progress: Callable, start: Any, budget: int, record: Callable) -> tuple[Any, Array, Any]:
    """The same with `record(iterate)` of every iteration, (budget, ...); entries after the end repeat the last one."""

    def frozen_step(carry, _):
        x, k = carry
        done = _done(progress(x))
        x = jax.tree.map(lambda old, new: jnp.where(done, old, new), x, step(x))
        k = jnp.where(done, k, k + 1)
        return (x, k), record(x)

    (x, k), history = jax.lax.scan(frozen_step, (start, jnp.zeros((), jnp.int32)), None, length=budget)
    return x, k, history
