"""How the properties of two surfaces mix into those of their contact."""

import jax.numpy as jnp
from jax import Array


def geometric_average(a: Array, b: Array) -> Array:
    """√(a b), derivative zero at 0."""
    product = a * b
    positive = product > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, product, 1)), 0)


MIX_MODES = {
    "average": lambda a, b: 0.5 * (a + b),
    "multiply": lambda a, b: a * b,
    "max": jnp.maximum,
    "min": jnp.minimum,
    "geometric_average": geometric_average,
}
