"""DVI: bilateral rows solved directly, unilateral rows by projected iterations on what is left.

    alternation      λ_b solved, then M times: S sweeps on the unilateral rows with λ_b held, λ_b solved again
    elimination      the same sweeps with λ_b moving along (Schur complement)
    no bilateral     (S + 1) M sweeps, tangents in the last ⌊S M/2⌋ only

A world stops when the residuals of `cones.violations` are within the tolerance after a solve of λ_b, or when nothing moves any more.
Friction is Coulomb's law on the normal impulse without the share that removes penetration. Source: Newton `SolverKamino` (DVI), restated.
"""

import functools

import jax
import jax.numpy as jnp
from jax import Array

from ..config import Config, DVIConfig
from ..delassus import Dual
from ..pytree import pytree, replace
from . import apgd, cones
from .backend import Guess, Outcome
from .bilateral import eliminate
from .coloring import colors
from .ordered import eliminate_in_order
from .pgs import Sweeper, sweep, sweeper
from .reduced import Reduced, reduce


@pytree
class DVIStatus:
    """What only this backend reports."""

    r_b: Array  # [m/s] bilateral velocities
    apgd_corrections: Array  # int32
    apgd_backtracks: Array  # int32
    apgd_residual: Array  # inf if the line search failed
    apgd_line_search_failed: Array  # bool


@pytree
class Sweeping:
    """Carried from block to block."""

    lam: Array  # (nu,)
    solved: Array  # (nu,) where the bilateral rows were last solved
    sweeps: Array  # int32, in the schedule
    ran: Array  # int32, really
    done: Array  # bool


def eliminates(dual: Dual, settings: DVIConfig) -> bool:
    """Whether the bilateral rows move along with the unilateral ones: as asked for, or where effort-limited drives ask for it."""
    return dual.rows.ne > 0 if settings.use_schur_complement is None else settings.use_schur_complement


def _within(residuals: tuple[Array, Array, Array], settings: DVIConfig) -> Array:
    return jnp.max(jnp.stack(residuals)) <= settings.tolerance


def _idle(dtype) -> DVIStatus:
    """Status before anything has been measured."""
    zero, none = jnp.zeros((), dtype), jnp.zeros((), jnp.int32)
    return DVIStatus(zero, none, none, zero, jnp.zeros((), bool))


def _settled(problem: Reduced, settings: DVIConfig, lam: Array, change: Array) -> Array:
    """Whether impulses with the bilateral rows at rest are good enough, or will not get better."""
    residuals = problem.residuals(lam, problem.velocity(lam))
    still = jnp.max(jnp.abs(change)) <= 4 * jnp.finfo(lam.dtype).eps * jnp.max(jnp.abs(lam))
    return (_within(residuals, settings) | still | ~jnp.isfinite(residuals[1])) & (not settings.fixed_schedule)


def _block(problem: Reduced, sweeper: Sweeper, settings: DVIConfig, at: Sweeping) -> Sweeping:
    """S sweeps with the bilateral rows held (or moving along)."""
    due = (at.sweeps // settings.inequality_sweeps_per_iteration) % settings.bilateral_solve_interval == 0
    solved = jnp.where(due, at.lam, at.solved)
    lam, v = at.lam, problem.K @ at.lam + problem.free(solved)
    for _ in range(settings.inequality_sweeps_per_iteration):
        lam, v = sweep(sweeper, lam, v, at.sweeps % 2 == 1, jnp.asarray(True))
        at = replace(at, sweeps=at.sweeps + 1, ran=at.ran + 1)
    return replace(at, lam=lam, solved=solved, done=_settled(problem, settings, lam, lam - solved))


def _one_sweep(problem: Reduced, sweeper: Sweeper, settings: DVIConfig, first: int, at: Sweeping) -> Sweeping:
    """A sweep of the schedule without bilateral rows: normals only until `first` or until they are at rest."""
    v = problem.velocity(at.lam)
    tangents = at.sweeps >= first
    lam, _ = sweep(sweeper, at.lam, v, at.sweeps % 2 == 1, tangents)
    change = jnp.max(jnp.abs(jnp.diagonal(problem.K) * (lam - at.lam)), initial=0)
    resting = ~tangents & (change <= settings.tolerance) & (not settings.fixed_schedule)
    following = jnp.where(resting, jnp.maximum(first, at.sweeps + 1), at.sweeps + 1)
    done = tangents & _settled(problem, settings, lam, lam - at.lam)
    return Sweeping(lam, at.solved, following, at.ran + 1, done)


def _gauss_seidel(dual: Dual, problem: Reduced, lam: Array, settings: DVIConfig) -> tuple[Array, Array, DVIStatus]:
    M, S = settings.max_alternating_iterations, settings.inequality_sweeps_per_iteration
    total, first = M * S, (S + 1) * M - S * M // 2
    prepared = sweeper(problem, colors(dual.rows, dual.D), settings)
    advance = functools.partial(_block, problem, prepared, settings)
    if dual.rows.bilateral.stop == 0:
        total, advance = (S + 1) * M, functools.partial(_one_sweep, problem, prepared, settings, first)
    none = jnp.zeros((), jnp.int32)
    start = Sweeping(lam, lam, none, none, jnp.zeros((), bool))
    end = jax.lax.while_loop(lambda at: (at.sweeps < total) & ~at.done, advance, start)
    return end.lam, end.ran, _idle(lam.dtype)


def _gradient_descent(problem: Reduced, lam: Array, settings: DVIConfig) -> tuple[Array, Array, DVIStatus]:
    end = apgd.descend(problem, lam, settings)
    residual = jnp.where(end.failed, jnp.inf, end.residual)
    return end.x, end.iterations, DVIStatus(jnp.zeros_like(residual), end.corrections, end.backtracks, residual, end.failed)


def _start(dual: Dual, guess: Guess, settings: DVIConfig) -> Array:
    """Unilateral impulses to start from: remembered tangents a little reduced."""
    lam = guess.lam
    if settings.warmstart_mode == "containers" and dual.rows.nc:
        scale = jnp.tile(jnp.asarray([settings.tangential_warmstart_scale] * 2 + [1], lam.dtype), dual.rows.nc)
        lam = lam.at[dual.rows.contact].multiply(scale)
    return lam[dual.rows.bilateral.stop :]


def _measured(dual: Dual, lam: Array, iterations: Array, status: DVIStatus, settings: DVIConfig) -> Outcome:
    v = dual.D.mv(lam) + dual.v_f
    bounds = cones.joint_bounds(dual.rows, dual.lower, dual.upper)
    residuals = cones.violations(dual.rows, lam, v, bounds, dual.mu)
    r_b = jnp.max(jnp.abs(v[dual.rows.bilateral]), initial=0)
    converged = _within(residuals, settings) & ~status.apgd_line_search_failed
    return Outcome(lam, v, converged, jnp.maximum(iterations, 1), *residuals, replace(status, r_b=r_b))


def solve(dual: Dual, guess: Guess, config: Config) -> Outcome:
    """Impulses of one world."""
    settings, rows = config.dvi, dual.rows
    bilateral = None
    if rows.bilateral.stop:
        eliminate_rows = eliminate_in_order if settings.bilateral_solver_type == "LLTBRCM" else eliminate
        bilateral = eliminate_rows(dual, settings.failed_pivot_shift)
    lam = _start(dual, guess, settings)
    iterations, status = jnp.zeros((), jnp.int32), _idle(lam.dtype)
    if rows.nd > rows.bilateral.stop:
        with jax.named_scope("dvi_iterate"):
            problem = reduce(dual, bilateral, eliminates(dual, settings))
            if settings.unilateral_solver == "apgd":
                lam, iterations, status = _gradient_descent(problem, lam, settings)
            else:
                lam, iterations, status = _gauss_seidel(dual, problem, lam, settings)
    joints = bilateral.impulses(lam) if bilateral is not None else lam[:0]
    return _measured(dual, jnp.concatenate([joints, lam]), iterations, status, settings)
