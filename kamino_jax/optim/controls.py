"""Trajectory optimisation by gradients through the simulation: single shooting."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ..config import Config
from ..model import Model
from ..pytree import pytree, replace
from ..state import Control, State
from .descent import Report, descend
from .problem import FinalCost, RunningCost, Trajectory, check_problem, cost_of, motion

FIELDS = ("tau", "q_ref", "u_ref", "w_ext")


@pytree
class ControlsSolution:
    """The best control sequence that was seen."""

    controls: Control  # (T, ...)
    trajectory: Trajectory  # the motion that it causes
    cost: Array  # () its cost, penalty of roughness included
    history: Array  # (iterations + 1,) cost of every iterate
    iterations: int
    converged: bool  # stationary within the tolerance


def _limits(bounds: Mapping[str, Any] | None, chosen: dict[str, Array]) -> dict[str, tuple[Array, Array]]:
    """Lowest and highest values of the bounded fields, checked."""
    limits = {}
    for name, pair in (bounds or {}).items():
        if name not in chosen:
            raise ValueError(f"bounds names {name!r}, which is not optimised; fields are {', '.join(chosen)}")
        low, high = (jnp.asarray(x, chosen[name].dtype) for x in pair)
        if bool(jnp.any(~(low <= high))):
            raise ValueError(f"bounds of {name!r}: a low value lies above its high value")
        limits[name] = (jnp.broadcast_to(low, chosen[name].shape), jnp.broadcast_to(high, chosen[name].shape))
    return limits


def _roughness(chosen: dict[str, Array]) -> Array:
    """Σ_k |c_{k+1} - c_k|² over the optimised fields."""
    return sum(jnp.sum(jnp.diff(x, axis=0) ** 2) for x in chosen.values())


def _check_choice(running_cost, final_cost, fields, smoothness) -> None:
    unknown = [name for name in fields if name not in FIELDS]
    if unknown or not fields:
        raise ValueError(f"fields is {fields!r}; it must name some of {', '.join(FIELDS)}")
    if running_cost is None and final_cost is None:
        raise ValueError("there is no cost: give running_cost, final_cost or both")
    if not smoothness >= 0:
        raise ValueError(f"smoothness is {smoothness!r}; it must be at least 0")


def optimize_controls(
    model: Model,
    state: State,
    running_cost: RunningCost | None,
    final_cost: FinalCost | None,
    controls: Control,
    *,
    dt: float,
    fields: tuple[str, ...] = ("tau",),
    bounds: Mapping[str, tuple[Any, Any]] | None = None,
    smoothness: float = 0.0,
    optimizer: optax.GradientTransformation | None = None,
    iterations: int = 200,
    tolerance: float = 1e-6,
    config: Config = Config(),
    report: Report | None = None,
) -> ControlsSolution:
    """Minimise J(c) = Σ_k running(x_k, c_k) + final(x_T) + smoothness Σ_k |c_{k+1} - c_k|² over low <= c <= high.

    Motions are those of `rollout`, gradients what `config.gradient` says: with "exact" a body that rests in friction feels no push that
    does not move it; with "smoothed" it does. Each update is projected onto the bounds; the best iterate is returned, not the last.

    Args:
        model, state: one world and where it starts.
        running_cost: (state, control) -> cost of one step (not scaled by dt), or None.
        final_cost: (state) -> cost of the end, or None.
        controls: where the search starts, a `Control` whose arrays have a leading time axis (`hold` makes one).
        dt: time step [s].
        fields: fields of `Control` that are optimised; the others stay as given.
        bounds: {field: (low, high)}, numbers or arrays that broadcast to the field.
        smoothness: weight of the roughness [cost per squared unit of the fields].
        optimizer: any optax optimiser of one gradient per update; default `optax.adam(0.05)`.
        tolerance: converged when no entry of c - clip(c - dJ/dc) exceeds it.
        report: called with (iteration, cost).

    Raises:
        ValueError: unknown fields, bounds the wrong way round, no cost, controls of a wrong shape, no positive dt, a cost that is not
            finite at the start.
    """
    check_problem(model, controls, dt, iterations)
    _check_choice(running_cost, final_cost, fields, smoothness)
    chosen = {name: getattr(controls, name) for name in fields}
    limits = _limits(bounds, chosen)

    def objective(chosen, data):
        model, state, controls, h = data
        trajectory = motion(model, state, replace(controls, **chosen), h, config)
        return cost_of(trajectory, running_cost, final_cost) + smoothness * _roughness(chosen), trajectory

    found = descend(
        jax.value_and_grad(objective, has_aux=True),
        chosen,
        (model, state, controls, jnp.asarray(dt, model.dtype)),
        optimizer=optax.adam(0.05) if optimizer is None else optimizer,
        iterations=iterations,
        tolerance=tolerance,
        project=lambda c: c | {name: jnp.clip(c[name], *limit) for name, limit in limits.items()},
        report=report,
    )
    return ControlsSolution(found.aux.controls, found.aux, found.cost, found.history, found.iterations, found.converged)
