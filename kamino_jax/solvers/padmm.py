"""Proximal ADMM, accelerated with restart.

On the preconditioned problem D̂ = P D P, v̂_f = P v_f (P one positive number per row, one per contact), with extrapolated slack ŷ and dual ẑ:

    x  = (D̂ + (η + ρ) 1)⁻¹ (-v̂_f - Γ(ẑ) + η x₋ + ρ ŷ + ẑ)
    y  = Proj_C(x - ẑ/ρ)
    z  = ẑ + ρ (y - x)
    r_p = |P (x - y)|,  r_d = |(η (x - x₋) + ρ (y - ŷ))/P|,  r_c = complementarity of (x, z)
    r_a = ρ |P (y - ŷ)|² + |(z - ẑ)/P|²/ρ
    accepted (r_a < w r_a₋):  a = (1 + √(1 + 4 a₋²))/2,  (ŷ, ẑ) = (y, z) + (a₋ - 1)/a ((y, z) - (y₋, z₋))
    restarted otherwise:      a = a_0,  (ŷ, ẑ) = (y₋, z₋),  r_a = r_a₋/w

Then λ = P y and v⁺ = z/P - Γ(z/P). Sources: Tsounis, Grandia, Bächer 2025 (arXiv 2504.19771); restart: Goldstein et al. 2014; details as
Newton's `SolverKamino`.
"""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from ..config import Config, PADMMConfig
from ..delassus import Dual
from ..linear import conjugate_residuals, spd_inverse
from ..pytree import pytree
from . import cones
from .backend import Guess, Outcome
from .driver import Progress, iterate_recording, iterate_until
from .scaling import EPS, Scaled, precondition

CR_RTOL = 1e-8  # Kamino's default


@pytree
class PADMMStatus:
    """What only this backend reports."""

    r_dx: Array  # |P (x - x₋)|₂
    r_dy: Array  # |P (y - ŷ)|₂
    r_dz: Array  # |(z - ẑ)/P|₂
    r_a: Array  # combined residual
    r_a_p: Array  # before this iteration
    r_a_pp: Array  # before the one before
    restart: Array  # bool: the last iteration restarted
    num_restarts: Array  # int32
    rho: Array  # penalty at the end


@pytree
class Iterate:
    """Carried from one iteration to the next, preconditioned units."""

    x: Array  # (nd,) primal
    y: Array  # (nd,) slack, in C
    z: Array  # (nd,) dual
    y_hat: Array  # (nd,) extrapolated slack
    z_hat: Array  # (nd,) extrapolated dual
    a: Array  # momentum
    k: Array  # int32
    converged: Array  # bool
    r_p: Array
    r_d: Array
    r_c: Array
    stats: PADMMStatus


# Ways to solve (D̂ + σ 1) x = r. Each returns solve(r, σ, x0, atol).


def _dense_solve(D, sigma) -> Callable:
    """Explicit inverse in row space."""
    B = D.dense_rows()
    A = jnp.matmul(B, B.T, precision="highest") + jnp.diag(D.E + sigma)
    inverse = spd_inverse(A)
    return lambda r, *_: inverse @ r


def _body_solve(D, sigma) -> Callable:
    """Explicit inverse in body space: W = E + σ, (W + B Bᵀ)⁻¹ = W⁻¹ - W⁻¹ B (1 + Bᵀ W⁻¹ B)⁻¹ Bᵀ W⁻¹; 6 nb instead of nd."""
    B, inv_W = D.dense_rows(), 1 / (D.E + sigma)
    inverse = spd_inverse(jnp.eye(B.shape[1], dtype=B.dtype) + jnp.matmul(B.T * inv_W, B, precision="highest"))

    def solve(r, *_):
        x = inv_W * r
        return x - inv_W * (B @ (inverse @ (x @ B)))

    return solve


def _eigen_solve(D, _) -> Callable:
    """Eigenvectors once: any σ is free afterwards."""
    B = D.dense_rows()
    values, vectors = jnp.linalg.eigh(jnp.matmul(B, B.T, precision="highest") + jnp.diag(D.E))
    return lambda r, sigma, *_: vectors @ ((r @ vectors) / (values + sigma))


def _cr_solve(D, config: Config) -> Callable:
    """Matrix-free conjugate residuals from the previous x."""
    maxiter = config.dynamics.linear_solver_maxiter or D.E.shape[0]

    def solve(r, sigma, x0, atol):
        return conjugate_residuals(lambda x: D.mv(x) + sigma * x, r, x0, atol=atol, rtol=CR_RTOL, maxiter=maxiter)

    return solve


def linear_solver(scaled: Scaled, config: Config) -> Callable:
    """The cheapest way to apply (D̂ + σ 1)⁻¹ again and again."""
    D, sigma = scaled.operator, config.padmm.eta + config.padmm.rho_0
    if config.sparse_dynamics:
        return _cr_solve(D, config)
    if config.padmm.penalty_update_method == "balanced":
        return _eigen_solve(D, sigma)
    return _body_solve(D, sigma) if D.E.shape[0] > D.width else _dense_solve(D, sigma)


def start(scaled: Scaled, guess: Guess, settings: PADMMConfig) -> Iterate:
    """First iterate from a warm start; with acceleration the guess enters through the extrapolated pair."""
    zero = jnp.zeros_like(scaled.v_f)
    scalar = jnp.zeros((), zero.dtype)
    x, z = settings.warmstart_scale * guess.lam / scaled.P, guess.v_aug * scaled.P
    y_p, z_p = (zero, zero) if settings.use_acceleration else (x, z)
    largest = scalar + jnp.finfo(zero.dtype).max
    off, none = jnp.zeros((), bool), jnp.zeros((), jnp.int32)
    stats = PADMMStatus(scalar, scalar, scalar, largest, largest, largest, off, none, scalar + settings.rho_0)
    return Iterate(x, y_p, z_p, x, z, scalar + settings.a_0, none, off, scalar, scalar, scalar, stats)


def _largest(a: Array) -> Array:
    return jnp.max(jnp.abs(a), initial=0)


def _extrapolate(it: Iterate, y: Array, z: Array, r_a: Array, settings: PADMMConfig) -> tuple[Array, Array, Array, Array, Array]:
    """(ŷ, ẑ, a, r_a kept for the next test, restarted)."""
    if not settings.use_acceleration:
        return y, z, it.a, r_a, jnp.zeros((), bool)
    w = settings.restart_tolerance
    accept = r_a < w * it.stats.r_a
    a = (1 + jnp.sqrt(1 + 4 * it.a * it.a)) / 2
    f = (it.a - 1) / a
    y_hat = jnp.where(accept, y + f * (y - it.y), it.y)
    z_hat = jnp.where(accept, z + f * (z - it.z), it.z)
    # after a restart the bar rises by 1/w, so that a sequence of restarts ends
    kept = jnp.where(accept, r_a, it.stats.r_a / w if w > 0 else jnp.inf)
    return y_hat, z_hat, jnp.where(accept, a, settings.a_0), kept, ~accept


def _balanced(rho: Array, r_p: Array, r_d: Array, k: Array, settings: PADMMConfig) -> Array:
    """Penalty for the next iteration: raised where the primal residual dominates, lowered where the dual one does."""
    if settings.penalty_update_method == "fixed" or settings.penalty_update_freq == 0:
        return rho
    up = jnp.where(r_p > settings.alpha * r_d, rho * settings.tau, rho)
    moved = jnp.where(r_d > settings.alpha * r_p, jnp.maximum(rho / settings.tau, settings.rho_min), up)
    return jnp.where(k % settings.penalty_update_freq == 0, moved, rho)


def step(scaled: Scaled, solve: Callable, settings: PADMMConfig, it: Iterate) -> Iterate:
    """One iteration, as in the module's equations."""
    rows, P, rho, eta = scaled.rows, scaled.P, it.stats.rho, settings.eta
    rhs = -scaled.v_f - cones.de_saxce(rows, it.z_hat, scaled.mu) + eta * it.x + rho * it.y_hat + it.z_hat
    x = solve(rhs, eta + rho, it.x, inner_tolerance(it, settings))
    y = cones.project(rows, x - it.z_hat / rho, scaled.bounds, scaled.mu)
    z = it.z_hat + rho * (y - x)

    r_p = _largest(P * (x - y))
    r_d = _largest((eta * (x - it.x) + rho * (y - it.y_hat)) / P)
    r_c = _largest(cones.complementarity(rows, x, z, scaled.lower, scaled.upper))
    dx, dy, dz = (jnp.sum(d * d) for d in (P * (x - it.x), P * (y - it.y_hat), (z - it.z_hat) / P))
    r_a = rho * dy + dz / rho
    k = it.k + 1
    small = (r_p <= settings.primal_tolerance) & (r_d <= settings.dual_tolerance) & (r_c <= settings.compl_tolerance)
    converged = small & (k > 1)

    y_hat, z_hat, a, r_a_kept, restarted = _extrapolate(it, y, z, r_a, settings)
    restarted &= ~converged
    stats = PADMMStatus(
        r_dx=jnp.sqrt(dx),
        r_dy=jnp.sqrt(dy),
        r_dz=jnp.sqrt(dz),
        r_a=r_a_kept,
        r_a_p=it.stats.r_a,
        r_a_pp=it.stats.r_a_p,
        restart=restarted,
        num_restarts=it.stats.num_restarts + restarted.astype(jnp.int32),
        rho=_balanced(rho, r_p, r_d, k, settings),
    )
    return Iterate(x, y, z, y_hat, z_hat, a, k, converged, r_p, r_d, r_c, stats)


def inner_tolerance(it: Iterate, settings: PADMMConfig) -> Array:
    """Absolute tolerance of a matrix-free inner solve: the setting, or a ratio of the last primal residual."""
    fixed = settings.linear_solver_tolerance or EPS
    if settings.linear_solver_tolerance_ratio == 0:
        return jnp.asarray(fixed, it.r_p.dtype)
    return jnp.where(it.k > 0, jnp.maximum(settings.linear_solver_tolerance_ratio * it.r_p, EPS), fixed)


def progress(it: Iterate) -> Progress:
    """Residuals propagate NaN, so they tell whether everything is finite."""
    return Progress(it.converged, jnp.isfinite(it.r_p + it.r_d + it.r_c))


@pytree
class History:
    """Residuals of every iteration, (max_iterations,); entries after the last iteration repeat it."""

    r_p: Array
    r_d: Array
    r_c: Array
    r_a: Array
    restart: Array


def _record(it: Iterate) -> History:
    return History(it.r_p, it.r_d, it.r_c, it.stats.r_a, it.stats.restart)


def solve(dual: Dual, guess: Guess, config: Config) -> Outcome:
    """Impulses of one world; the outcome's history holds the residuals of every iteration, if asked for."""
    settings = config.padmm
    with jax.named_scope("padmm_prepare"):
        scaled = precondition(dual, config.dynamics.preconditioning is not False)
        advance = functools.partial(step, scaled, linear_solver(scaled, config), settings)
    first, history = start(scaled, guess, settings), None
    with jax.named_scope("padmm_iterate"):
        if settings.history:
            it, _, history = iterate_recording(advance, progress, first, settings.max_iterations, _record)
        else:
            it, _ = iterate_until(advance, progress, first, settings.max_iterations)
    v_aug = it.z / scaled.P
    v_plus = v_aug - cones.de_saxce(dual.rows, v_aug, dual.mu)
    return Outcome(scaled.P * it.y, v_plus, it.converged, it.k, it.r_p, it.r_d, it.r_c, it.stats, history)
