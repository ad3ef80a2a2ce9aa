"""Any tree of numbers as one vector, with logarithms where a number must stay positive."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from ..pytree import pytree, static


@pytree
class Coordinates:
    """Unconstrained coordinates θ (n,) of parameters p: p = exp θ where `log`, else p = θ."""

    log: Array  # (n,) bool
    unravel: Callable[[Array], Any] = static()

    def flat(self, theta: Array) -> Array:
        """The parameters as a vector (n,)."""
        return jnp.where(self.log, jnp.exp(jnp.where(self.log, theta, 0)), theta)

    def tree(self, theta: Array) -> Any:
        """The parameters as they were given."""
        return self.unravel(self.flat(theta))

    def slope(self, theta: Array) -> Array:
        """Derivative dp/dθ (n,)."""
        return jnp.where(self.log, self.flat(theta), 1)


def coordinates_of(parameters: Any, positive: Any, dtype) -> tuple[Array, Coordinates]:
    """(θ, their meaning) of a tree of numbers.

    Args:
        positive: True or False for all, or a tree like `parameters` with one of them per leaf.

    Raises:
        ValueError: no parameters, a tree of another structure, or a positive parameter that is not.
    """
    parameters = jax.tree.map(lambda x: jnp.asarray(x, dtype), parameters)
    leaves, structure = jax.tree.flatten(parameters)
    if not any(leaf.size for leaf in leaves):
        raise ValueError("parameters is empty; there is nothing to fit")
    flags = [positive] * len(leaves) if isinstance(positive, bool) else jax.tree.leaves(positive)
    if not isinstance(positive, bool) and jax.tree.structure(positive) != structure:
        raise ValueError(
            f"positive has the structure {jax.tree.structure(positive)}; it must be a bool or be built like parameters: {structure}"
        )
    flat, unravel = ravel_pytree(parameters)
    log = jnp.concatenate([jnp.full(leaf.size, bool(flag)) for leaf, flag in zip(leaves, flags, strict=True)])
    if bool(jnp.any(log & ~(flat > 0))):
        raise ValueError("a parameter that must stay positive starts at or below zero")
    return jnp.where(log, jnp.log(jnp.where(log, flat, 1)), flat), Coordinates(log, unravel)
