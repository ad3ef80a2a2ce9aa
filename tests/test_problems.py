"""Recorded problems: every stored float64 solution is found again (velocities always, impulses where they are unique)."""

import functools
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import X64, tight

from kamino_jax.delassus import DenseDelassus, Dual, dual_form
from kamino_jax.layout import Rows
from kamino_jax.problem import Problem, twist_after
from kamino_jax.solvers import padmm
from kamino_jax.solvers.backend import Guess
from kamino_jax.solvers.metrics import natural_map

HERE = pathlib.Path(__file__).parent / "data"
FOLDERS = [HERE, *(pathlib.Path(p) for p in [os.environ.get("KAMINO_JAX_RECORDINGS")] if p)]  # more problems, if at hand
pytestmark = pytest.mark.skipif(not X64, reason="the stored solutions are float64")


@functools.cache
def load(file):
    with np.load(file) as data:
        return {str(n): {k.split("/")[1]: data[k] for k in data.files if k.startswith(f"{n}/")} for n in data["names"]}


RECORDED = {name: folder / "problems.npz" for folder in FOLDERS for name in load(folder / "problems.npz")}


def blocks(J, nb):
    """Two-body blocks (n, 2, 6) and bodies (n, 2) of a dense Jacobian; body nb is the world."""
    J = J.reshape(len(J), nb, 6).astype(float)
    out, body = np.zeros((len(J), 2, 6)), np.full((len(J), 2), nb, np.int32)
    for i, row in enumerate(J):
        for side, b in enumerate(np.flatnonzero(np.abs(row).sum(1))):
            out[i, side], body[i, side] = row[b], b
    return jnp.asarray(out), jnp.asarray(body)


def problem(r) -> Problem:
    """A recorded problem; v_b such that v_f is the stored one, whose part that no motion can produce is removed."""
    count = {k: int(r[k]) for k in ("bilateral", "dynamic", "bounded", "friction", "limits", "contacts")}
    rows = Rows(
        count["dynamic"],
        count["bilateral"] - count["dynamic"],
        count["friction"],
        count["bounded"] - count["friction"],
        count["limits"],
        count["contacts"],
    )
    J, body = blocks(r["J"], len(r["inv_mass"]))
    with_world = lambda a: jnp.asarray(np.concatenate([a, np.zeros((1, *a.shape[1:]))]).astype(float))
    u, u_f = with_world(r["twist"]), with_world(r["free_twist"])
    eps = np.asarray(r["restitution"], float)
    moved = jnp.sum(J * u_f[body], axis=(1, 2)) + eps * jnp.sum(J * u[body], axis=(1, 2))
    f = lambda name: jnp.asarray(r[name].astype(float))
    I = r["inv_inertia"].astype(float)
    return Problem(
        rows=rows,
        J=J,
        body=body,
        inv_m=with_world(r["inv_mass"]),
        inv_I=with_world(0.5 * (I + np.swapaxes(I, 1, 2))),
        u=u,
        u_f=u_f,
        v_b=f("v_f") - moved,
        eps=jnp.asarray(eps[rows.nj + 2 :: 3]),
        E=f("compliance"),
        lower=f("lower"),
        upper=f("upper"),
        mu=f("mu"),
        active=jnp.ones(rows.nd, bool),
    )


@functools.partial(jax.jit, static_argnames="config")
def solve(dual, guess, config):
    lam = padmm.solve(dual, guess, config).lam
    return lam, jnp.max(jnp.abs(natural_map(dual, lam, dual.D.mv(lam) + dual.v_f)))


SMALL = dict(primal_tolerance=1e-10, dual_tolerance=1e-10, compl_tolerance=1e-10, max_iterations=100_000, warmstart_scale=1.0)
CONFIG = tight(padmm=SMALL)
# Bodies that slide and tip on redundant corners creep along D's smallest eigenvalue at the default penalty: a small one moves.
SOFT = {"compliant_80": dict(rho_0=0.01), "nunchaku_40": dict(rho_0=0.01, use_acceleration=False)}
# Velocity error against the stored truth [m/s, rad/s]. Default: what a dual residual of 1e-10 leaves along the softest directions of D.
TWIST = 1e-7
# slide_spin has many solutions; the other truths have a natural map of 2e-8 to 6e-8 themselves.
WIDER = {"slide_spin_5": 3e-3, "dr_legs_18": 1e-5, "dr_legs_5": 1e-5, "nunchaku_40": 1e-6}


@pytest.mark.parametrize("name", RECORDED)
def test_a_recorded_problem_is_solved_to_the_stored_truth(name):
    r = load(RECORDED[name])[name]
    p = problem(r)
    zero = jnp.zeros(p.rows.nd)
    config = tight(padmm=SMALL | SOFT[name]) if name in SOFT else CONFIG
    lam, residual = solve(dual_form(p), Guess(zero, zero), config)
    assert float(residual) < max(1e-8, 2 * float(r["natural_map"])), f"natural map {float(residual):.1e}"
    np.testing.assert_allclose(twist_after(p, lam)[:-1], r["twist_after"], atol=WIDER.get(name, TWIST))
    if int(r["rank"]) == p.rows.nd and name not in WIDER:
        np.testing.assert_allclose(lam, r["lam"], atol=1e-7)


SICONOS = load(HERE / "fc3d.npz")
GENTLE = tight(padmm=SMALL | dict(rho_0=0.03))  # condition numbers up to 1e8 want a small penalty


@pytest.mark.parametrize("name", sorted(SICONOS))
def test_a_real_contact_problem_reaches_the_natural_map_1e_8(name):
    r = SICONOS[name]
    values, vectors = np.linalg.eigh(0.5 * (r["D"] + r["D"].T))
    B, n = vectors * np.sqrt(np.maximum(values, 0)), len(values)
    none, zero = jnp.zeros(0), jnp.zeros(n)
    D = DenseDelassus(jnp.asarray(B), zero)
    dual = Dual(Rows(nc=n // 3), D, jnp.asarray(r["v_f"]), none, none, jnp.asarray(r["mu"]), jnp.ones(n, bool))
    _, residual = solve(dual, Guess(zero, zero), GENTLE)
    assert float(residual) <= 1e-8
