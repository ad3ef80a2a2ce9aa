"""Runs a scene in many worlds with a progress bar, and sums up what happened. The engine of `python -m kamino_jax simulate`."""

import dataclasses
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .config import Config
from .measure import energy
from .model import Model
from .solvers.cones import contacts_of
from .start import initial_state, zero_control
from .state import Control, Info, State
from .step import step


@dataclasses.dataclass(frozen=True)
class Recording:
    """What a run leaves behind, as NumPy arrays with a leading time axis."""

    summary: dict[str, np.ndarray]  # (steps, worlds) each
    first: dict[str, np.ndarray]  # world 0: q (steps, nb, 7), joint_q (steps, nq); contact_force [N], residual, joint_gap (steps,)
    seconds: dict[str, float]  # trace, compile, run
    energy: tuple[float, float]  # [J] mean over worlds, start and end
    last: State


def _per_world(info: Info) -> dict[str, jax.Array]:
    metrics, status = info.metrics, info.status
    return dict(
        iterations=status.iterations,
        converged=status.converged,
        found=status.contacts_found,
        kept=status.contacts_kept,
        dropped=status.contacts_dropped,
        natural_map=metrics.solution.natmap.value,
        joint_gap=metrics.joints.value,
        penetration=metrics.contacts.value,
    )


def normal_force(model: Model, info: Info, dt) -> jax.Array:
    """Sum of the normal contact forces of one world [N]."""
    return jnp.sum(contacts_of(model.layout.rows, info.lam)[:, 2]) / dt


def _chunk(steps: int, parts: int = 40) -> int:
    """The largest divisor of `steps` that leaves about `parts` chunks, so that one compiled program runs them all."""
    return max(d for d in range(1, steps + 1) if steps % d == 0 and (d <= max(1, steps // parts) or d == 1))


def _program(models: Model, controls: Control, dt: float, config: Config, steps: int) -> Callable:
    one = jax.vmap(lambda m, s, c: step(m, s, c, dt=dt, config=config))

    def advance(states, _):
        states, info = one(models, states, controls)
        first = jax.tree.map(lambda x: x[0], (models, states, info))
        seen = dict(q=first[1].q, joint_q=first[1].joint_q, contact_force=normal_force(first[0], first[2], dt))
        return states, (_per_world(info), seen)

    return lambda states: jax.lax.scan(advance, states, length=steps)


def _mean_energy(models: Model, states: State) -> float:
    kinetic, potential = jax.jit(jax.vmap(energy))(models, states)
    return float(jnp.mean(kinetic + potential))


def _join(parts: list[Any]) -> Any:
    return jax.tree.map(lambda *x: np.concatenate([np.asarray(p) for p in x]), *parts)


def run(models: Model, *, steps: int, dt: float, config: Config, progress: Callable = lambda chunks: chunks) -> Recording:
    """Simulate stacked worlds from their start.

    Args:
        models: a stacked Model, worlds first.
        steps, dt: how long [s].
        config: settings; solution metrics are switched on.
        progress: wraps the iterable of chunks, e.g. `tqdm.tqdm`.
    """
    config = dataclasses.replace(config, compute_solution_metrics=True)
    states, controls, chunk = initial_state(models), zero_control(models), _chunk(steps)
    clock = [time.perf_counter()]
    traced = jax.jit(_program(models, controls, dt, config, chunk)).trace(states)
    clock.append(time.perf_counter())
    program = traced.lower().compile()
    clock.append(time.perf_counter())
    begin, parts = _mean_energy(models, states), []
    started = time.perf_counter()
    for _ in progress(range(steps // chunk)):
        states, part = jax.block_until_ready(program(states))
        parts.append(part)
    seconds = dict(trace=clock[1] - clock[0], compile=clock[2] - clock[1], run=time.perf_counter() - started)
    summary, first = _join(parts)
    first |= dict(residual=summary["natural_map"][:, 0], joint_gap=summary["joint_gap"][:, 0])
    return Recording(summary, first, seconds, (begin, _mean_energy(models, states)), states)


def rows_by_family(model: Model) -> dict[str, int]:
    """Number of constraint rows of each family."""
    rows = model.layout.rows
    return dict(dynamic=rows.njd, kinematic=rows.njk, friction=rows.nf, effort=rows.ne, limit=rows.nl, contact=3 * rows.nc)


def _percentiles(values: np.ndarray, *ranks: int) -> list[float]:
    return [float(np.percentile(values, rank)) for rank in ranks]


def report(scene: str, model: Model, recording: Recording, *, dt: float) -> dict[str, Any]:
    """The figures of a run, ready for a table or JSON. SI units."""
    s, seconds = recording.summary, recording.seconds
    steps, worlds = s["iterations"].shape
    iterations, natural_map = _percentiles(s["iterations"], 50, 99), _percentiles(s["natural_map"], 50, 99)
    return dict(
        scene=scene,
        worlds=worlds,
        bodies=model.layout.nb,
        joints=model.layout.nj,
        rows=rows_by_family(model),
        contacts_found=int(s["found"].max()),
        contacts_kept=int(s["kept"].max()),
        contacts_dropped=int(s["dropped"].sum()),
        steps=steps,
        dt=dt,
        trace_s=seconds["trace"],
        compile_s=seconds["compile"],
        run_s=seconds["run"],
        world_steps_per_s=worlds * steps / seconds["run"],
        iterations_p50=iterations[0],
        iterations_p99=iterations[1],
        natural_map_p50=natural_map[0],
        natural_map_p99=natural_map[1],
        natural_map_max=float(s["natural_map"].max()),
        joint_gap_max_m=float(s["joint_gap"].max()),
        penetration_max_m=float(s["penetration"].max()),
        converged_fraction=float(s["converged"].mean()),
        energy_start_j=recording.energy[0],
        energy_end_j=recording.energy[1],
        finite=bool(math.isfinite(s["natural_map"].max())),
        device=str(jax.devices()[0].device_kind),
        precision=32 if model.dtype == jnp.float32 else 64,
    )


def table(figures: dict[str, Any]) -> str:
    """The report as aligned lines."""

    def text(value):
        if isinstance(value, dict):
            return ", ".join(f"{k} {v}" for k, v in value.items() if v) or "none"
        return f"{value:.4g}" if isinstance(value, float) else str(value)

    width = max(map(len, figures))
    return "\n".join(f"{name:<{width}}  {text(value)}" for name, value in figures.items())
