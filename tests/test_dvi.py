"""The DVI backend on problems with known solutions, and against Newton's and the reference's single solves."""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from duals import DTYPE, KNOWN, dual
from support import X64, step
from test_problems import load, problem

import kamino_jax as kj
from kamino_jax.delassus import dual_form
from kamino_jax.problem import twist_after
from kamino_jax.pytree import replace
from kamino_jax.solvers import dvi, pgs
from kamino_jax.solvers.backend import Guess
from kamino_jax.solvers.coloring import colors

ATOL = 1e-9 if X64 else 1e-5
FIXED = dict(fixed_schedule=True)


def config(**settings):
    """DVI with the given settings."""
    return kj.Config(dynamics_solver="dvi", dvi=kj.DVIConfig(**settings))


@functools.partial(jax.jit, static_argnames="config")
def solve(problem, config, lam=None):
    lam = jnp.zeros_like(problem.v_f) if lam is None else lam
    return dvi.solve(problem, Guess(lam, jnp.zeros_like(lam)), config)


LONG = dict(max_alternating_iterations=400, regularization=1e-12)
DESCENT = dict(unilateral_solver="apgd", apgd=kj.DVIAPGDConfig(1000, max_nonlinear_corrections=200, tolerance=1e-11 if X64 else 1e-7))
WAYS = {"sweeps": LONG, "sweeps, fixed": LONG | FIXED, "descent": DESCENT}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", KNOWN)
def test_a_known_solution_is_found(name, way):
    known, expected = KNOWN[name]
    settings = WAYS[way] | dict(tolerance=1e-11 if X64 else 1e-7)
    np.testing.assert_allclose(solve(known, config(**settings)).lam, expected, atol=10 * ATOL)


@pytest.mark.parametrize("schur", [False, True])
def test_alternation_and_elimination_solve_the_same_problem(schur):
    """Redundant joint rows, a box, a limit and a contact: velocities and unilateral impulses agree with a plain long alternation."""
    rng = np.random.default_rng(5)
    J = rng.normal(size=(9, 12))
    D = J @ J.T + np.diag([0, 0, 0, 1, 0, 0, 0, 0, 0.0])
    mixed = dual(D, J @ rng.normal(size=12), mu=[0.6], lower=[-0.1], upper=[0.1], njd=1, njk=3, nf=1, nl=1, nc=1)
    settings = dict(LONG, max_alternating_iterations=20000, use_schur_complement=schur, tolerance=1e-7)
    end = solve(mixed, config(**settings))
    assert float(end.r_d) < 1e-5  # the floor of the bilateral block
    other = solve(mixed, config(**settings | dict(use_schur_complement=True, **FIXED, max_alternating_iterations=3000)))
    np.testing.assert_allclose(end.lam, other.lam, atol=1e-5 if X64 else 1e-3)


@pytest.mark.parametrize(("bias", "load"), [(-2.0, 2.5), (2.0, 3.0), (-20.0, 0.0)])
def test_recovery_takes_no_part_in_the_friction_load(bias, load):
    """λ_n 3, D_nn 2, half of the bias (a row scaling of 0.5)."""
    assert float(pgs.friction_load(jnp.asarray(3.0), jnp.asarray(0.5), jnp.asarray(0.5 * bias))) == load


def test_one_correction_stops_short_of_sliding_and_more_do_not():
    """Golden values of the Coulomb point D = 1, v_f = (10, 0, -1), μ = 0.5."""
    point, expected = KNOWN["slides along x"]
    once = solve(point, config(unilateral_solver="apgd"))
    np.testing.assert_allclose(once.lam, (-0.4, 0, 0.8), atol=1e-6)
    assert abs(float(once.backend.apgd_residual) - 0.16) < 1e-6 and int(once.backend.apgd_corrections) == 1
    warm = solve(point, config(unilateral_solver="apgd", tangential_warmstart_scale=1.0), jnp.asarray(expected, DTYPE))
    np.testing.assert_allclose(warm.lam[2], 1, atol=1e-6)


def test_a_line_search_that_fails_says_so_and_moves_nothing():
    stiff = dual(np.diag([1, 1, 1000.0]), (0, 0, -1), mu=[0.5], nc=1)
    end = solve(stiff, config(unilateral_solver="apgd", apgd=kj.DVIAPGDConfig(max_backtracks=1)))
    assert bool(end.backend.apgd_line_search_failed) and not bool(end.converged)
    assert np.isinf(end.backend.apgd_residual) and not np.any(end.lam)


SOLVES = load(pathlib.Path(__file__).parent / "data" / "dvi.npz")


@functools.cache
def recorded(name):
    """(problem, its dual form with the recorded recovery)."""
    r = SOLVES[name]
    p = problem(r | dict(v_f=v_f(r)))
    return p, replace(dual_form(p), recovery=jnp.asarray(r["bias_friction"][p.rows.nj + 2 :: 3], float))


def v_f(r):
    J = r["J"].astype(float)
    return J @ r["free_twist"].astype(float).ravel() + r["bias"] + r["restitution"] * (J @ r["twist"].astype(float).ravel())


@pytest.mark.skipif(not X64, reason="the reference is float64")
@pytest.mark.parametrize("name", SOLVES)
def test_a_recorded_solve_ends_where_the_reference_and_newton_end(name):
    r, (p, dual) = SOLVES[name], recorded(name)
    settings = dict(FIXED, use_schur_complement=bool(r["schur"]), tangential_warmstart_scale=1.0)
    if "apgd" in name:
        settings |= dict(unilateral_solver="apgd", apgd=kj.DVIAPGDConfig(max_nonlinear_corrections=20 if "20" in name else 1))
    lam = solve(dual, config(**settings), jnp.asarray(r["warm_start_lam"], float)).lam
    u = slice(p.rows.bilateral.stop, None)
    np.testing.assert_allclose(lam[u], r["lam"][u], atol=1e-8)
    after = lambda lam: twist_after(p, jnp.asarray(lam, float))
    np.testing.assert_allclose(after(lam), after(r["lam"]), atol=1e-7)
    np.testing.assert_allclose(after(lam), after(r["newton_lam"]), atol=1e-4)  # single precision on redundant loops


@pytest.mark.skipif(not X64, reason="needs the rows of the recorded problems only")
@pytest.mark.parametrize("name", [n for n in SOLVES if "colour_of_entity" in SOLVES[n]])
def test_colours_are_those_of_newton(name):
    p, dual = recorded(name)
    color, count = colors(p.rows, dual.D)
    first = p.rows.nj - p.rows.bilateral.stop
    entity = np.concatenate([color[:first], color[first::3]])
    np.testing.assert_array_equal(entity, SOLVES[name]["colour_of_entity"])
    assert int(count) == entity.max() + 1


MECHANISMS = {
    "chain": lambda: kj.scenes.pendulum_chain(6, angle=0.3),
    "four-bar": lambda: kj.scenes.boxes_fourbar(),
    "redundant": lambda: kj.scenes.parallelogram(3),
    "platform": kj.scenes.stewart_platform,
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_order_of_elimination_does_not_change_the_step(name):
    """Rows in a fill-reducing order, alone and padded beside a larger mechanism."""
    model, state, control = MECHANISMS[name]()
    ends = []
    for kind in ("LLTB", "LLTBRCM"):
        last, info = step(model, state, control, dt=2e-3, config=config(bilateral_solver_type=kind))
        assert float(info.status.backend.r_b) < 1e-4
        ends.append(last.u)
    large = kj.common_layout([model, MECHANISMS["platform"]()[0], MECHANISMS["chain"]()[0]])
    padded = kj.pad_to(model, large)
    last, _ = step(padded, kj.initial_state(padded), dt=2e-3, config=config(bilateral_solver_type="LLTBRCM"))
    ends.append(last.u[: model.layout.nb])
    for u in ends[1:]:
        np.testing.assert_allclose(u, ends[0], atol=1e-7 if X64 else 2e-4)
