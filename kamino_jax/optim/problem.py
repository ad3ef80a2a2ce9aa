"""What trajectory problems share: a sequence of controls, its cost along the motion, and the checks of both."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from ..config import Config
from ..model import Model
from ..pytree import pytree
from ..rollout import rollout
from ..state import Control, State
from ..status import Status

RunningCost = Callable[[State, Control], Array]
FinalCost = Callable[[State], Array]


@pytree
class Trajectory:
    """A motion of T steps and what was asked of it."""

    states: State  # (T + 1, ...) before each step, and after the last
    controls: Control  # (T, ...)
    status: Status  # (T,) outcome of every step


def hold(control: Control, steps: int) -> Control:
    """The same control for a number of steps: arrays with a leading time axis."""
    return jax.tree.map(lambda x: jnp.broadcast_to(x, (steps, *x.shape)), control)


def motion(model: Model, state: State, controls: Control, dt: Array, config: Config) -> Trajectory:
    """The motion of one world from a state under a control sequence."""
    _, (after, status) = rollout(model, state, controls, dt=dt, config=config, record=lambda state, info: (state, info.status))
    return Trajectory(jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), state, after), controls, status)


def cost_of(trajectory: Trajectory, running: RunningCost | None, final: FinalCost | None) -> Array:
    """J = Σ_k running(x_k, c_k) + final(x_T) over k = 0 ... T - 1."""
    total = jnp.zeros((), trajectory.states.q.dtype)
    if running is not None:
        before = jax.tree.map(lambda x: x[:-1], trajectory.states)
        total = total + jnp.sum(jax.vmap(running)(before, trajectory.controls))
    return total if final is None else total + final(jax.tree.map(lambda x: x[-1], trajectory.states))


def check_problem(model: Model, controls: Control, dt, iterations: int) -> int:
    """Number of steps of a control sequence.

    Raises:
        ValueError: no positive time step, no iterations, or controls without a common time axis before the model's shapes.
    """
    if not dt > 0:
        raise ValueError(f"dt is {dt!r}; a time step must be positive")
    if iterations < 0:
        raise ValueError(f"iterations is {iterations!r}; it must be at least 0")
    layout = model.layout
    ends = dict(tau=(layout.nv,), q_ref=(layout.nq,), u_ref=(layout.nv,), w_ext=(layout.nb, 6))
    steps = controls.tau.shape[0] if controls.tau.ndim else 0
    for name, end in ends.items():
        shape = getattr(controls, name).shape
        if shape != (steps, *end) or steps < 1:
            raise ValueError(f"controls.{name} has shape {shape}; it must be {('steps', *end)} with the same steps in all, see optim.hold")
    return steps
