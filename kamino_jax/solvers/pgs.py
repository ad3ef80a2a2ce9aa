"""Projected Gauss-Seidel on unilateral rows with velocities v = A λ + b.

One sweep has a normal phase and a tangent phase; each goes through the colours and updates a colour at once, v always up to date:

    bounded rows             λ ← clip(λ - ω v/(A_ii + reg), lower, upper)
    limits, contact normals  λ ← max(0, λ - ω v/(A_ii + reg))
    tangents                 R = μ clip(λ_n + ω b_n/(A_nn + reg), 0, λ_n)
                             λ_t ← λ_t - ω (A_tt + reg)⁻¹ v_t, or if that leaves the disk |λ_t| <= R,
                             λ_t ← λ_t - ω v_t/(max A_tt + reg), scaled back to the disk

b_n is the penetration recovery of hard contacts, which takes no part in the friction load. Odd sweeps go through the colours of the
tangent phase backwards. Source: Newton `SolverKamino` (DVI).
"""

import jax
import jax.numpy as jnp
from jax import Array

from ..config import DVIConfig
from ..layout import Rows
from ..pytree import once, pytree, static
from ..spatial import norm
from .cones import contacts_of
from .reduced import Reduced
from .scaling import EPS


@pytree
class Sweeper:
    """What a sweep needs besides impulses and velocities."""

    rows: Rows = static()
    A: Array  # (nu, nu)
    mu: Array  # (nc,)
    recovery: Array  # (nc,) [m/s]
    lower: Array  # (nu,) of scalar updates; tangents are never updated by one
    upper: Array
    gain: Array  # (nu,) ω/(A_ii + reg), 0 where nothing moves
    tangent: Array  # (nc, 2, 2) ω (A_tt + reg)⁻¹
    isotropic: Array  # (nc,) ω/(max A_tt + reg)
    load_gain: Array  # (nc,) ω/(A_nn + reg)
    color: Array  # (nu,) int32
    colors: Array  # int32
    normal: Array  # (nu,) bool: rows of the normal phase


def _inverse2(A: Array, scalar: Array) -> Array:
    """A⁻¹ of symmetric 2 x 2 matrices (nc, 2, 2), or `scalar` (nc,) times identity where they are singular."""
    a, b, d = A[:, 0, 0], A[:, 0, 1], A[:, 1, 1]
    det = a * d - b * b
    regular = det > EPS * a * d
    inverse = jnp.stack([jnp.stack([d, -b], 1), jnp.stack([-b, a], 1)], 1) / jnp.where(regular, det, 1)[:, None, None]
    return jnp.where(regular[:, None, None], inverse, scalar[:, None, None] * jnp.eye(2, dtype=A.dtype))


def sweeper(problem: Reduced, coloring: tuple[Array, Array], settings: DVIConfig) -> Sweeper:
    """Prepares sweeps on the rows of a reduced problem; `coloring`: see there."""
    rows, A, omega, reg = problem.rows, problem.K, settings.omega, settings.regularization
    diagonal = jnp.diagonal(A)
    tt = jnp.einsum("iaib->iab", A[rows.contact, rows.contact].reshape(rows.nc, 3, rows.nc, 3))[:, :2, :2]
    stiffest = jnp.maximum(tt[:, 0, 0], tt[:, 1, 1])
    isotropic = jnp.where(stiffest > EPS, 1 / (stiffest + reg), 0)
    zero = jnp.zeros(rows.nl + 3 * rows.nc, A.dtype)
    return once(
        Sweeper(
            rows,
            A,
            problem.mu,
            problem.recovery,
            lower=jnp.concatenate([problem.lower, zero]),
            upper=jnp.concatenate([problem.upper, zero + jnp.inf]),
            gain=jnp.where(jnp.abs(diagonal) > EPS, omega / (diagonal + reg), 0),
            tangent=omega * _inverse2(tt + reg * jnp.eye(2, dtype=A.dtype), isotropic),
            isotropic=omega * isotropic,
            load_gain=omega / (contacts_of(rows, diagonal)[:, 2] + reg),
            color=coloring[0],
            colors=coloring[1],
            normal=jnp.concatenate([jnp.ones(rows.nj, bool), jnp.tile(jnp.asarray([False, False, True]), rows.nc)]),
        )
    )


def normal_update(s: Sweeper, lam: Array, v: Array) -> Array:
    """New impulses of all rows of the normal phase, (nu,)."""
    return jnp.where(s.normal, jnp.clip(lam - s.gain * v, s.lower, s.upper), lam)


def friction_load(normal: Array, gain: Array, recovery: Array) -> Array:
    """Normal impulse without the share of penetration recovery."""
    return jnp.clip(normal + gain * recovery, 0, normal)


def tangent_update(s: Sweeper, lam: Array, v: Array) -> Array:
    """New impulses with the tangents moved, (nu,)."""
    at, speed = contacts_of(s.rows, lam), contacts_of(s.rows, v)[:, :2]
    radius = s.mu * friction_load(at[:, 2], s.load_gain, s.recovery)
    trial = at[:, :2] - jnp.sum(s.tangent * speed[:, None, :], axis=-1)
    slid = at[:, :2] - s.isotropic[:, None] * speed
    trial = jnp.where((norm(trial) > radius)[:, None], slid, trial)
    length = norm(trial)
    outside = (length > radius) & (length > EPS)
    trial = trial * jnp.where(outside, radius / jnp.where(outside, length, 1), 1)[:, None]
    moved = jnp.concatenate([trial, at[:, 2:]], axis=1)
    return jnp.concatenate([lam[: s.rows.nj], moved.reshape(-1)])


def _phase(s: Sweeper, update, lam: Array, v: Array, backwards) -> tuple[Array, Array]:
    """One pass of an update over the colours."""

    def relax(k, carry):
        lam, v = carry
        color = jnp.where(backwards, s.colors - 1 - k, k)
        change = jnp.where(s.color == color, update(s, lam, v) - lam, 0)
        return lam + change, v + s.A @ change

    return jax.lax.fori_loop(0, s.colors, relax, (lam, v))


def sweep(s: Sweeper, lam: Array, v: Array, odd: Array, tangents: Array) -> tuple[Array, Array]:
    """(λ, v) after one sweep; `odd`: backwards in the tangent phase, `tangents`: whether there is one."""
    lam, v = _phase(s, normal_update, lam, v, False)
    if s.rows.nc == 0:  # static
        return lam, v
    return _phase(s, lambda *x: jnp.where(tangents, tangent_update(*x), x[1]), lam, v, odd)
