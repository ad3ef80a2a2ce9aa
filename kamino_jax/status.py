"""Per-world outcome of a step: failure is data on the device, an exception only where the host asks for one."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from .pytree import pytree

CONVERGED, MAX_ITERATIONS, NOT_FINITE = 0, 1, 2


@pytree
class Status:
    """How the solve of one world ended. Residuals are infinity norms in physical units."""

    code: Array  # int32: CONVERGED, MAX_ITERATIONS or NOT_FINITE
    converged: Array  # bool, never True when anything is not finite
    iterations: Array  # int32
    r_p: Array  # [N s] primal residual
    r_d: Array  # [m/s] dual residual
    r_c: Array  # [J] complementarity residual
    contacts_found: Array  # int32, before capacity
    contacts_kept: Array  # int32
    contacts_dropped: Array  # int32: found but beyond the model's max_contacts
    backend: Any  # fields of the dynamics solver


def result_code(converged: Array, finite: Array) -> Array:
    """Code of a finished solve."""
    return jnp.where(finite, jnp.where(converged, CONVERGED, MAX_ITERATIONS), NOT_FINITE).astype(jnp.int32)


def raise_if_failed(status: Status, *, require_convergence: bool = True) -> None:
    """Raise RuntimeError on the host if any world failed.

    Names the first worlds that are not finite, not converged (unless `require_convergence` is False) or that dropped contacts, with the
    remedy. Works on the status of one world, of a batch, and of a recorded rollout (any leading axes).
    """
    code, dropped = np.asarray(status.code), np.asarray(status.contacts_dropped)
    problems = [
        (code == NOT_FINITE, "not finite: look for NaN or Inf in the state, control and model, or reduce dt"),
        (dropped > 0, "dropped contacts: finalize the model with a larger max_contacts"),
    ]
    if require_convergence:
        problems.append((code == MAX_ITERATIONS, "not converged: raise max_iterations or loosen the tolerances"))
    lines = [f"{text} (at {_where(bad)})" for bad, text in problems if bad.any()]
    if lines:
        raise RuntimeError("; ".join(lines))


def _where(bad: np.ndarray) -> str:
    if bad.ndim == 0:
        return "the world"
    index = [tuple(int(i) for i in row) for row in np.argwhere(bad)[:5]]
    names = [str(i[0]) if len(i) == 1 else str(i) for i in index]
    more = "" if bad.sum() <= 5 else f" and {int(bad.sum()) - 5} more"
    return f"index {', '.join(names)}{more}"
