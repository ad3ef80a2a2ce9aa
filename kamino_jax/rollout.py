"""Many steps: a scan that records what is asked for."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from .checkpoint import checkpointed_scan
from .config import Config
from .model import Model
from .state import Control, Info, State
from .step import joint_state, step

Record = tuple[str, ...] | Callable[[State, Info], Any]
RECORDABLE = {
    "q": lambda model, config, state, info: state.q,
    "u": lambda model, config, state, info: state.u,
    "joint_q": lambda model, config, state, info: state.joint_q,
    "joint_qd": lambda model, config, state, info: joint_state(model, state, config)[1],
    "status": lambda model, config, state, info: info.status,
    "contacts": lambda model, config, state, info: info.contacts,
    "lam": lambda model, config, state, info: info.lam,
    "v_plus": lambda model, config, state, info: info.v_plus,
    "metrics": lambda model, config, state, info: info.metrics,
}


def _recorder(model: Model, config: Config, record: Record) -> Callable[[State, Info], Any]:
    if callable(record):
        return record
    unknown = [name for name in record if name not in RECORDABLE]
    if unknown:
        raise ValueError(f"cannot record {unknown}; known are {', '.join(RECORDABLE)}, or pass a function of (state, info)")
    return lambda state, info: {name: RECORDABLE[name](model, config, state, info) for name in record}


def rollout(
    model: Model,
    state: State,
    controls: Control | Callable[[State, Array], Control | None] | None = None,
    *,
    dt: float | Array,
    steps: int | None = None,
    config: Config = Config(),
    record: Record = ("q", "u", "joint_q", "status"),
    checkpoint: int | str | None = None,
) -> tuple[State, Any]:
    """(last state, record of every step) of one world; recorded arrays have a leading time axis.

    Args:
        controls: a `Control` whose arrays have a leading time axis; or a policy, a function of (state, step index) that returns a
            `Control`; or None for the model's own drive targets.
        dt: time step [s].
        steps: number of steps; needed unless `controls` has a time axis.
        record: names out of "q", "u", "joint_q", "joint_qd", "status", "contacts", "lam", "v_plus", "metrics", or a function of (state,
            info) that returns any pytree. An empty tuple records nothing and needs no memory.
        checkpoint: what reverse mode remembers: None everything; k the state every k steps, for one more forward pass; "sqrt" chooses the k
            that needs least memory.

    Raises:
        ValueError: an unknown name, no number of steps, or an unknown way to checkpoint.
    """
    look = _recorder(model, config, record)
    sequence = controls if isinstance(controls, Control) else None
    if sequence is None and steps is None:
        raise ValueError("rollout needs steps=..., since the controls have no time axis")
    index = None if steps is None else jnp.arange(steps)

    def advance(state, at):
        control, k = at
        if callable(controls):
            control = controls(state, k)
        state, info = step(model, state, control, dt=dt, config=config)
        return state, look(state, info)

    length = steps if sequence is None else jax.tree.leaves(sequence)[0].shape[0]
    return checkpointed_scan(advance, state, (sequence, index), length, checkpoint)
