"""Three worked examples: swing up a cart-pole, push a block to a goal, find a four-bar for a path."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from ..config import Config, GradientConfig, PADMMConfig
from ..model import Model
from ..pytree import replace
from ..scenes import box_on_plane
from ..scenes import cartpole as cartpole_scene
from ..state import Control, State
from .controls import optimize_controls
from .descent import Report
from .four_bar import design_four_bar, grashof
from .ilqr import ilqr
from .problem import hold

OVERLAP = 1e-4  # [m] so that the block touches the ground from the first step on


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What an example found, for tables and pictures."""

    figures: dict[str, Any]
    history: np.ndarray  # (iterations + 1,) cost
    model: Model
    q: np.ndarray  # (T, nb, 7) poses of the result
    curves: dict[str, np.ndarray]  # name -> (T, 2): controls over time [s], or paths in x and z [m]
    labels: tuple[str, str]  # axes of the curves


def _settings(gradient: GradientConfig = GradientConfig()) -> Config:
    small = dict(primal_tolerance=1e-7, dual_tolerance=1e-7, compl_tolerance=1e-7)
    return Config(padmm=PADMMConfig(rho_0=0.1, max_iterations=500, **small), gradient=gradient)


def cartpole_problem(*, steps: int = 80, dt: float = 0.025) -> dict[str, Any]:
    """Arguments of `ilqr` for the swing-up of a hanging pole by a force on the cart [N], cart and pole at rest at the end."""
    model, state, _ = cartpole_scene(ground=False, limits=False)
    hanging = jnp.asarray([0.125, 0, -0.375, 1, 0, 0, 0], model.dtype)
    state = replace(state, q=state.q.at[1].set(hanging), joint_q=jnp.asarray([0, np.pi], model.dtype))
    t = dt * jnp.arange(steps, dtype=model.dtype)

    def running(state: State, control: Control) -> Array:
        return 0.01 * dt * control.tau[0] ** 2

    def final(state: State) -> Array:
        cart, pole = 20 * state.q[0, 1] ** 2 + 5 * state.u[0, 1] ** 2, 5 * state.u[1, 3] ** 2
        return 100 * (1 - uprightness(state.q)) + cart + pole

    # hanging at rest is stationary: a small swing breaks the tie
    tau = jnp.zeros((steps, model.layout.nv), model.dtype).at[:, 0].set(jnp.sin(4 * t))
    start = dict(model=model, state=state, running_cost=running, final_cost=final, tau=tau)
    return start | dict(dt=dt, dofs=(0,), config=_settings())


def uprightness(q: Array) -> Array:
    """Cosine of the angle between the pole of `cartpole` and the vertical: 1 upright, -1 hanging; from poses (..., nb, 7)."""
    return 1 - 2 * (q[..., 1, 3] ** 2 + q[..., 1, 4] ** 2)


def cartpole(*, iterations: int = 100, report: Report | None = None) -> Outcome:
    """Swing-up by iterative LQR."""
    problem = cartpole_problem()
    found = ilqr(**problem, iterations=iterations, report=report)
    q, tau = np.asarray(found.trajectory.states.q), np.asarray(found.tau[:, 0])
    figures = dict(
        upright=float(uprightness(q[-1])),
        cart_end_m=float(q[-1, 0, 1]),
        cart_speed_end_m_s=float(found.trajectory.states.u[-1, 0, 1]),
        force_max_n=float(np.abs(tau).max()),
        steps_converged=float(np.mean(found.trajectory.status.converged)),
    )
    t = problem["dt"] * np.arange(len(tau))
    return _outcome(found, figures, problem["model"], q, {"force on the cart [N]": np.stack([t, tau], 1)}, ("time [s]", "force [N]"))


def block_push_problem(*, goal: float = 0.3, steps: int = 40, dt: float = 0.02, gradient: str = "smoothed") -> dict[str, Any]:
    """Arguments of `optimize_controls`: push a block of 1 kg at rest (friction 0.5) by `goal` [m] with at most 15 N.

    The search starts from no push at all.
    """
    model, state, control = box_on_plane(height=-OVERLAP, mu=0.5)

    def running(state: State, control: Control) -> Array:
        return 1e-3 * dt * control.w_ext[0, 0] ** 2

    def final(state: State) -> Array:
        return 50 * (state.q[0, 0] - goal) ** 2 + 5 * state.u[0, 0] ** 2

    only_x = jnp.zeros(6, model.dtype).at[0].set(15.0)
    start = dict(model=model, state=state, running_cost=running, final_cost=final, controls=hold(control, steps))
    search = dict(fields=("w_ext",), bounds={"w_ext": (-only_x, only_x)}, optimizer=optax.adam(0.3))
    return start | search | dict(dt=dt, config=_settings(GradientConfig(mode=gradient, kappa=1e-3)))


def block_push(*, iterations: int = 150, report: Report | None = None) -> Outcome:
    """A push from zero: only the smoothed gradient tells a resting block that a push would move it."""
    problem = block_push_problem()
    found = optimize_controls(**problem, iterations=iterations, report=report)
    states, push = found.trajectory.states, np.asarray(found.controls.w_ext[:, 0, 0])
    figures = dict(
        travel_m=float(states.q[-1, 0, 0]),
        speed_end_m_s=float(states.u[-1, 0, 0]),
        push_max_n=float(np.abs(push).max()),
        steps_converged=float(np.mean(found.trajectory.status.converged)),
    )
    t = problem["dt"] * np.arange(len(push))
    curves = {"push [N]": np.stack([t, push], 1)}
    return _outcome(found, figures, problem["model"], np.asarray(states.q), curves, ("time [s]", "force [N]"))


def ellipse(positions: int = 24) -> tuple[Array, Array]:
    """(targets (T, 2) [m], crank angles (T,) [rad]): a slanted ellipse of 0.4 m by 0.16 m, once a turn."""
    angles = jnp.linspace(0, 2 * jnp.pi, positions, endpoint=False)
    x, z = 0.2 * jnp.cos(angles), 0.08 * jnp.sin(angles)
    return jnp.stack([x * np.cos(0.4) - z * np.sin(0.4), x * np.sin(0.4) + z * np.cos(0.4)], axis=1), angles


def four_bar(*, iterations: int = 100, report: Report | None = None) -> Outcome:
    """A four-bar whose coupler point follows an ellipse in time with the crank, from a random search and least squares."""
    targets, angles = ellipse()
    found = design_four_bar(targets, angles, key=jax.random.key(0), prior=1e-3, iterations=iterations, report=report)
    lengths = found.parameters.lengths
    figures = {f"{name}_m": float(x) for name, x in zip(("crank", "coupler", "rocker", "ground"), lengths, strict=True)}
    figures |= dict(rms_m=float(found.rms), closes=found.closes, gap_max_m=float(found.gap.max()), grashof=bool(grashof(lengths)))
    curves = {"target": np.asarray(targets), "coupler point": np.asarray(found.path)[:, ::2]}
    return _outcome(found, figures, found.linkage.model, np.asarray(found.q), curves, ("x [m]", "z [m]"))


def _outcome(found, figures, model, q, curves, labels) -> Outcome:
    history = np.asarray(found.history)
    common = dict(iterations=found.iterations, converged=found.converged, cost_start=float(history[0]), cost_end=float(history.min()))
    return Outcome(common | figures, history, model, q, curves, labels)


EXAMPLES: dict[str, Callable[..., Outcome]] = {example.__name__: example for example in (cartpole, four_bar, block_push)}
