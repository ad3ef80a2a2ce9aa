"""Scans whose reverse mode remembers few states: the rest is computed again when it is needed."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

SQRT = "sqrt"


def checkpointed_scan(body: Callable, start: Any, xs: Any, length: int, checkpoint: int | str | None) -> tuple[Any, Any]:
    """As `jax.lax.scan(body, start, xs, length)`, for the price of one more forward pass in reverse mode.

    Args:
        checkpoint: None remembers what is inside every step (fastest, most memory); k remembers the carry every k steps, and inside the
            steps of one segment at a time; "sqrt" takes k = √length, which needs least.

    Raises:
        ValueError: neither None, a positive number of steps, nor "sqrt".
    """
    if checkpoint is None:
        return jax.lax.scan(body, start, xs, length=length)
    if checkpoint == SQRT:
        checkpoint = max(math.isqrt(length), 1)
    if not isinstance(checkpoint, int) or isinstance(checkpoint, bool) or checkpoint < 1:
        raise ValueError(f"checkpoint is {checkpoint!r}; it must be None, a positive number of steps, or {SQRT!r}")
    k = min(checkpoint, max(length, 1))
    segments, rest = divmod(length, k)
    split = jax.tree.map(lambda x: x[: segments * k].reshape((segments, k) + x.shape[1:]), xs)
    carry, ys = jax.lax.scan(jax.checkpoint(lambda c, x: jax.lax.scan(body, c, x, length=k)), start, split, length=segments)
    ys = jax.tree.map(lambda y: y.reshape((segments * k,) + y.shape[2:]), ys)
    if not rest:
        return carry, ys
    carry, last = jax.checkpoint(lambda c, x: jax.lax.scan(body, c, x, length=rest))(carry, jax.tree.map(lambda x: x[segments * k :], xs))
    return carry, jax.tree.map(lambda a, b: jnp.concatenate([a, b]), ys, last)
