"""Arrays between Warp (or numpy) and JAX. Warp arrays are shared, not copied, where their memory allows."""

import jax.numpy as jnp
import numpy as np
from jax import Array

from .arrays import to_numpy


def to_jax(value, entry: tuple[int, ...] = ()) -> Array:
    """JAX array (n, *entry) of a Warp or numpy array. May share its memory: finish all work on it before Newton writes again."""
    if hasattr(value, "numpy") and hasattr(value, "device"):
        import warp as wp

        return wp.to_jax(value).reshape(-1, *entry)
    return jnp.asarray(to_numpy(value)).reshape(-1, *entry)


def assign(target, values: Array) -> None:
    """Write JAX values into a Warp or numpy array of the same size."""
    if isinstance(target, np.ndarray):
        target[...] = np.asarray(values).reshape(target.shape)
        return
    import warp as wp

    wp.copy(target, wp.from_jax(values, dtype=target.dtype))
