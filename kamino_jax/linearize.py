"""Derivatives of one step in minimal coordinates of the poses: δx⁺ = A δx + B δc + P δp.

A small change δx (12 nb,) of a state holds, for all bodies, displacement (nb, 3) [m], rotation vector in world axes (nb, 3) [rad], and
change of the twists (nb, 6).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.flatten_util import ravel_pytree

from . import spatial
from .config import Config
from .model import Model
from .pytree import pytree, replace
from .start import zero_control
from .state import Control, State
from .step import step


@pytree
class Linearization:
    """One step and its derivatives."""

    state: State  # the state after the step
    A: Array  # (12 nb, 12 nb) by the state before
    B: Array  # (12 nb, number of inputs asked for) by the control
    P: Array  # (12 nb, number of parameters) by the parameters, raveled


def retract(state: State, dx: Array) -> State:
    """The state changed by dx (12 nb,)."""
    shift, turn, du = jnp.split(dx, [3 * len(state.q), 6 * len(state.q)])
    q = spatial.advance(state.q, jnp.concatenate([shift.reshape(-1, 3), turn.reshape(-1, 3)], axis=1), jnp.ones((), dx.dtype))
    return replace(state, q=q, u=state.u + du.reshape(-1, 6))


def difference(a: State, b: State) -> Array:
    """The change dx (12 nb,) that takes state a to state b: the inverse of `retract`."""
    turn = spatial.quat_log(spatial.quat_multiply(b.q[:, 3:], spatial.quat_conjugate(a.q[:, 3:])))
    return jnp.concatenate([(b.q - a.q)[:, :3].reshape(-1), turn.reshape(-1), (b.u - a.u).reshape(-1)])


def linearize(
    model: Model,
    state: State,
    control: Control | None = None,
    *,
    dt: float | Array,
    config: Config = Config(),
    inputs: tuple[str, ...] = ("tau",),
    parameters: Any = (),
    apply: Callable[[Model, Any], Model] = lambda model, _: model,
) -> Linearization:
    """One step of one world with its derivatives by state, control, and parameters of the model.

    All columns share one assembly, one solve and one factorisation: the step is linearised once and the linear map is applied to a basis.

    Args:
        inputs: fields of `Control`, in the order of the columns of B.
        parameters: values p (any pytree) with `apply(model, p)` the model that they mean; columns of P in the order of `ravel_pytree`.

    Raises:
        ValueError: an unknown field of `Control`.
    """
    control = zero_control(model) if control is None else control
    unknown = [name for name in inputs if not hasattr(control, name)]
    if unknown:
        raise ValueError(f"inputs names {unknown}; a Control has tau, q_ref, u_ref, w_ext")
    dx, (c, controls), (p, given) = jnp.zeros(12 * model.layout.nb, model.dtype), _raveled(control, inputs), _flat(parameters, model.dtype)

    def advance(dx, c, p):
        return step(apply(model, given(p)), retract(state, dx), controls(c), dt=dt, config=config)[0]

    after, push = jax.linearize(advance, dx, c, p)
    sizes = [x.shape[0] for x in (dx, c, p)]
    basis = jnp.eye(sum(sizes), dtype=model.dtype)
    splits = [sizes[0], sizes[0] + sizes[1]]
    columns = jax.vmap(lambda e: _change(after, push(*jnp.split(e, splits))))(basis).T
    return Linearization(after, *jnp.split(columns, splits, axis=1))


def _change(after: State, moved: State) -> Array:
    """The change (12 nb,) that a tangent of the state after the step means: rotation vector 2 Im(dQ Q*)."""
    turn = 2 * spatial.quat_multiply(moved.q[:, 3:], spatial.quat_conjugate(after.q[:, 3:]))[:, :3]
    return jnp.concatenate([moved.q[:, :3].reshape(-1), turn.reshape(-1), moved.u.reshape(-1)])


def _flat(tree: Any, dtype) -> tuple[Array, Callable[[Array], Any]]:
    """(values as one vector, the way back); an empty tree has the model's type too."""
    return ravel_pytree(tree) if jax.tree.leaves(tree) else (jnp.zeros(0, dtype), lambda _: tree)


def _raveled(control: Control, inputs: tuple[str, ...]) -> tuple[Array, Callable[[Array], Control]]:
    """The named fields as one vector, and the control with them replaced."""
    flat, back = _flat(tuple(getattr(control, name) for name in inputs), control.tau.dtype)
    return flat, lambda c: replace(control, **dict(zip(inputs, back(c), strict=True)))
