"""What every dynamics backend takes and gives: `solve(dual, guess, config) -> Outcome`."""

from typing import Any

from jax import Array

from ..pytree import pytree


@pytree
class Guess:
    """Warm start in physical units."""

    lam: Array  # (nd,) [N s, N m s]
    v_aug: Array  # (nd,) [m/s, rad/s] constraint velocity with De Saxcé shift


@pytree
class Outcome:
    """End of one solve, physical units. Residuals are infinity norms; what each means is the backend's."""

    lam: Array  # (nd,) [N s, N m s]
    v_plus: Array  # (nd,) [m/s, rad/s] D λ + v_f as the backend sees it
    converged: Array  # bool
    iterations: Array  # int32
    r_p: Array
    r_d: Array
    r_c: Array
    backend: Any  # fields of this backend's own
    history: Any = None  # of every iteration, if asked for
