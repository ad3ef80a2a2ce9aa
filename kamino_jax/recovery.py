"""How a position error becomes a constraint bias, and how stiffness becomes compliance.

    hard         c = s/h, or 1/(h + T) with a recovery time T                    E = 0
    compliant    c = 1/(f h + T or c_mat/k)                                      E = c/(h k)

s: share removed per step, h: time step, k, c_mat: stiffness and damping, f: share of the step left for the position update (1 Euler,
1/2 Moreau). The bias is c times the error, capped at the recovery speed. Source: Newton `SolverKamino` constraint stabilisation.
"""

import jax.numpy as jnp
from jax import Array


def hard_rate(share: float, time: float | None, h: Array) -> Array:
    """Recovery rate c of a hard constraint [1/s]."""
    return share / h if time is None else 1 / (h + time)


def compliant_rate(share: float, time: float | None, h: Array, f: float, stiffness: Array, damping: Array) -> tuple[Array, Array]:
    """(c [1/s], E [1/kg]) per row; rows with stiffness <= 0 or infinite are hard."""
    soft = (stiffness > 0) & jnp.isfinite(stiffness)
    k = jnp.where(soft, stiffness, 1)
    relaxation = jnp.maximum(damping, 0) / k if time is None else time
    c = 1 / (f * h + relaxation)
    return jnp.where(soft, c, hard_rate(share, time, h)), jnp.where(soft, c / (h * k), 0)
