"""Iterative LQR on the maximal coordinates of the mechanism.

A backward sweep over the steps solves, with the quadratic model of the cost and the linear model of the motion in δx (12 nb,),

    Q_x = l_x + Aᵀ V_x     Q_uu = l_uu + Bᵀ V_xx B + ρ     δu = α k + K δx,   k = -Q_uu⁻¹ Q_u,   K = -Q_uu⁻¹ Q_ux
    Q_u = l_u + Bᵀ V_x     Q_ux = l_ux + Bᵀ V_xx A         Q_xx = l_xx + Aᵀ V_xx A

and a forward sweep with u = ū + α k + K (x ⊖ x̄) tries α = 1, ½, ¼, ... Curvatures of the cost are made positive semidefinite step by
step, so Q_uu is positive definite whatever the cost; ρ grows when no α helps. Source: Tassa, Erez, Todorov 2012, Gauss-Newton variant.
"""

from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
from jax import Array

from ..config import Config
from ..linearize import difference, linearize, retract
from ..model import Model
from ..pytree import pytree, replace
from ..start import zero_control
from ..state import Control, State
from ..step import joint_state, step
from .descent import Report
from .problem import FinalCost, RunningCost, Trajectory, check_problem, cost_of, hold

ENOUGH = 1e-4  # share of the predicted decrease that a step must deliver
SHORTEST = 2.0**-12  # step length below which the line search gives up


@pytree
class ILQRSolution:
    """A locally optimal motion, and the feedback that keeps to it."""

    tau: Array  # (T, nv) [N, N m]
    trajectory: Trajectory
    gains: Array  # (T, inputs, 12 nb) K of the last backward sweep
    dofs: Array  # (inputs,) DoFs that the gains act on
    cost: Array  # ()
    history: Array  # (iterations + 1,) cost after every iteration
    iterations: int
    converged: bool  # the predicted decrease fell below the tolerance

    def policy(self, state: State, k: Array) -> Control:
        """Control of step k in a state near the planned one: c̄_k + K_k (x ⊖ x̄_k). A policy for `rollout`."""
        states, controls = jax.tree.map(lambda x: x[k], (self.trajectory.states, self.trajectory.controls))
        return replace(controls, tau=controls.tau.at[self.dofs].add(self.gains[k] @ difference(states, state)))


@pytree
class Quadratic:
    """Cost of one step around the plan; of the end, with no inputs."""

    x: Array  # (n,)
    u: Array  # (m,)
    xx: Array  # (n, n)
    ux: Array  # (m, n)
    uu: Array  # (m, m)


@pytree
class Sweep:
    """Result of the backward sweep."""

    k: Array  # (T, m)
    K: Array  # (T, m, n)
    slope: Array  # () Σ Q_u·k, negative
    bend: Array  # () Σ k·Q_uu k


def _convex(H: Array) -> Array:
    """The nearest positive semidefinite matrix."""
    w, V = jnp.linalg.eigh(0.5 * (H + H.T))
    return jnp.matmul(V * jnp.maximum(w, 0), V.T, precision="highest")


def quadratic(cost: Callable[[State, Array], Array], model: Model, state: State, u: Array, config: Config) -> Quadratic:
    """Second-order model of cost(state, u) in (δx, δu); joint coordinates follow the poses."""
    n = 12 * model.layout.nb

    def moved(z):
        near = retract(state, z[:n])
        return cost(replace(near, joint_q=joint_state(model, near, config)[0]), u + z[n:])

    zero = jnp.zeros(n + u.shape[0], model.dtype)
    g, H = jax.grad(moved)(zero), _convex(jax.hessian(moved)(zero))
    return Quadratic(g[:n], g[n:], H[:n, :n], H[n:, :n], H[n:, n:])


def backward(A: Array, B: Array, running: Quadratic, final: Quadratic, rho: Array) -> Sweep:
    """Riccati sweep from the end: A (T, n, n), B (T, n, m), running costs with a leading time axis."""

    def sweep(carry, at):
        V_x, V_xx, slope, bend = carry
        A, B, l = at
        V_A, V_B = jnp.matmul(V_xx, A, precision="highest"), jnp.matmul(V_xx, B, precision="highest")
        Q_x, Q_u = l.x + V_x @ A, l.u + V_x @ B
        Q_xx, Q_ux, Q_uu = l.xx + A.T @ V_A, l.ux + B.T @ V_A, l.uu + B.T @ V_B
        factor = jax.scipy.linalg.cho_factor(0.5 * (Q_uu + Q_uu.T) + rho * jnp.eye(B.shape[1], dtype=B.dtype))
        k, K = -jax.scipy.linalg.cho_solve(factor, Q_u), -jax.scipy.linalg.cho_solve(factor, Q_ux)
        V_x = Q_x + K.T @ (Q_uu @ k + Q_u) + Q_ux.T @ k
        V_xx = Q_xx + K.T @ Q_uu @ K + K.T @ Q_ux + Q_ux.T @ K
        return (V_x, 0.5 * (V_xx + V_xx.T), slope + Q_u @ k, bend + k @ Q_uu @ k), (k, K)

    zero = jnp.zeros((), rho.dtype)
    (_, _, slope, bend), (k, K) = jax.lax.scan(sweep, (final.x, final.xx, zero, zero), (A, B, running), reverse=True)
    return Sweep(k, K, slope, bend)


class _Programs:
    """The two compiled pieces of one problem: search direction around a plan, and motion under it."""

    def __init__(self, running_cost, final_cost, dofs, config):
        self.costs, self.dofs, self.config = (running_cost, final_cost), dofs, config
        self.direction, self.forward = jax.jit(self._direction), jax.jit(self._forward)

    def _direction(self, model, plan, rho, dt):
        """Backward sweep on the models of motion and cost around the plan."""
        running_cost, final_cost = (c or (lambda *_: jnp.zeros((), model.dtype)) for c in self.costs)
        before, last = jax.tree.map(lambda x: x[:-1], plan.states), jax.tree.map(lambda x: x[-1], plan.states)

        def one(state, control):
            linear = linearize(model, state, control, dt=dt, config=self.config)
            cost = lambda s, u: running_cost(s, replace(control, tau=control.tau.at[self.dofs].set(u)))
            return linear.A, linear.B[:, self.dofs], quadratic(cost, model, state, control.tau[self.dofs], self.config)

        final = quadratic(lambda s, _: final_cost(s), model, last, jnp.zeros(0, model.dtype), self.config)
        return backward(*jax.vmap(one)(before, plan.controls), final, rho)

    def _forward(self, model, states, controls, sweep, alpha, dt):
        """(motion, cost) from the first state under the planned controls, the step α k, and feedback on the way from `states`."""

        def advance(state, at):
            planned, control, k, K = at
            move = alpha * k + K @ difference(planned, state)
            control = replace(control, tau=control.tau.at[self.dofs].add(move))
            after, info = step(model, state, control, dt=dt, config=self.config)
            return after, (after, control, info.status)

        first = jax.tree.map(lambda x: x[0], states)
        before = jax.tree.map(lambda x: x[: len(controls.tau)], states)
        _, (after, controls, status) = jax.lax.scan(advance, first, (before, controls, sweep.k, sweep.K))
        trajectory = Trajectory(jax.tree.map(lambda x, xs: jnp.concatenate([x[None], xs]), first, after), controls, status)
        return trajectory, cost_of(trajectory, *self.costs)

    def start(self, model, state, controls, dt):
        """(motion, cost) under the given controls alone, by the same program as all others."""
        steps, m = controls.tau.shape[0], self.dofs.shape[0]
        zero = jnp.zeros((), model.dtype)
        still = Sweep(jnp.zeros((steps, m), model.dtype), jnp.zeros((steps, m, 12 * model.layout.nb), model.dtype), zero, zero)
        states = jax.tree.map(lambda x: jnp.broadcast_to(x, (steps + 1, *x.shape)), state)
        return self.forward(model, states, controls, still, zero, dt)

    def search(self, model, plan, cost, sweep, dt):
        """(motion, cost, whether it is better) of the first step length that keeps its promise."""
        alpha = 1.0
        while True:
            trial, there = self.forward(model, plan.states, plan.controls, sweep, jnp.asarray(alpha, cost.dtype), dt)
            promised = alpha * sweep.slope + 0.5 * alpha**2 * sweep.bend
            if bool(there <= cost + ENOUGH * promised):
                return trial, there, bool(there < cost)
            alpha *= 0.5
            if alpha < SHORTEST:
                return plan, cost, False


def _columns(model: Model, dofs: Sequence[int] | None) -> Array:
    """Indices of the DoFs that the search may push, checked."""
    chosen = list(range(model.layout.nv)) if dofs is None else [int(i) for i in dofs]
    if not chosen or len(set(chosen)) != len(chosen) or not all(0 <= i < model.layout.nv for i in chosen):
        raise ValueError(f"dofs is {dofs!r}; it must name different DoFs between 0 and {model.layout.nv - 1}")
    return jnp.asarray(chosen, jnp.int32)


def ilqr(
    model: Model,
    state: State,
    running_cost: RunningCost | None,
    final_cost: FinalCost | None,
    tau: Array,
    *,
    dt: float,
    dofs: Sequence[int] | None = None,
    iterations: int = 100,
    tolerance: float | None = None,
    regularization: float = 1e-6,
    config: Config = Config(),
    report: Report | None = None,
) -> ILQRSolution:
    """Minimise J(τ) = Σ_k running(x_k, c_k) + final(x_T) over joint efforts by iterative LQR.

    Every accepted iterate costs less than the one before. Curvature in the control must come from the running cost (a weight on the
    effort), or `regularization` stands in for it.

    Args:
        model, state: one world and where it starts.
        running_cost: (state, control) -> cost of one step, twice differentiable, or None.
        final_cost: (state) -> cost of the end, or None.
        tau: efforts (T, nv) [N, N m] where the search starts; other inputs are those of `zero_control`.
        dt: time step [s].
        dofs: DoFs that may be pushed; default all. The others keep the efforts in `tau`.
        tolerance: converged when the predicted decrease is below tolerance (1 + |J|); None: √ε, 1.5e-8 in double precision.
        regularization: ρ at the start and at least; tenfold after an iteration that found nothing better, up to 1e10.
        report: called with (iteration, cost).

    Raises:
        ValueError: efforts of a wrong shape, unknown DoFs, no cost, no positive dt, a cost that is not finite at the start.
    """
    tau, columns = jnp.asarray(tau, model.dtype), _columns(model, dofs)
    controls = replace(hold(zero_control(model), tau.shape[0] if tau.ndim else 0), tau=tau)
    check_problem(model, controls, dt, iterations)
    if running_cost is None and final_cost is None:
        raise ValueError("there is no cost: give running_cost, final_cost or both")
    programs, h = _Programs(running_cost, final_cost, columns, config), jnp.asarray(dt, model.dtype)
    plan, cost = programs.start(model, state, controls, h)
    if not bool(jnp.isfinite(cost)):
        raise ValueError(f"the cost of the efforts where the search starts is {float(cost)}; start from something finite")
    tolerance = float(jnp.finfo(model.dtype).eps) ** 0.5 if tolerance is None else tolerance
    history, rho, converged = [cost], regularization, False
    gains = jnp.zeros((tau.shape[0], columns.shape[0], 12 * model.layout.nb), model.dtype)
    while len(history) <= iterations and not converged and rho <= 1e10:
        sweep = programs.direction(model, plan, jnp.asarray(rho, model.dtype), h)
        plan, cost, better = programs.search(model, plan, cost, sweep, h)
        history.append(cost)
        if report is not None:
            report(len(history) - 1, float(cost))
        gains, promised = sweep.K, -float(sweep.slope + 0.5 * sweep.bend)
        # a large ρ promises little wherever it stands
        converged = rho <= regularization and promised <= tolerance * (1 + abs(float(cost)))
        rho = max(0.1 * rho, regularization) if better else 10 * rho
    return ILQRSolution(plan.controls.tau, plan, gains, columns, cost, jnp.stack(history), len(history) - 1, converged)
