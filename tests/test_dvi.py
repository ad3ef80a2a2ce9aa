"""The DVI backend on problems with known solutions, and against Newton's and the reference's single solves."""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from duals import DTYPE, KNOWN, dual
from support import X64, cube, start, step, tight
from test_problems import load, problem

import kamino_jax as kj
from kamino_jax.builder.elimination import minimum_degree
from kamino_jax.delassus import dual_form
from kamino_jax.problem import twist_after
from kamino_jax.pytree import replace
from kamino_jax.solvers import dvi, pgs
from kamino_jax.solvers.backend import Guess
from kamino_jax.solvers.bilateral import retried
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


@pytest.mark.parametrize("kind", ["LLTB", "LLTBRCM"])
def test_many_worlds_step_as_each_alone(kind):
    """In a batch large enough for XLA to share it among threads."""
    model, state, _ = kj.scenes.boxes_fourbar()
    settings = config(bilateral_solver_type=kind, use_schur_complement=True)
    many = jax.jit(jax.vmap(lambda s: kj.rollout(model, s, dt=2e-3, steps=5, config=settings, record=())[0].u))
    alone, _ = jax.jit(lambda s: kj.rollout(model, s, dt=2e-3, steps=5, config=settings, record=()))(state)
    states = jax.tree.map(lambda x: jnp.broadcast_to(x, (256, *x.shape)), state)
    np.testing.assert_allclose(many(states), jnp.broadcast_to(alone.u, (256, *alone.u.shape)), atol=1e-7 if X64 else 1e-3)


def test_the_floor_of_the_bilateral_block_leaves_joints_moving_by_a_millionth():
    """Why nothing that DVI does with joints is better than about 1e-6 of what their impulses do to them."""
    D = np.diag([1.0, 4.0])
    end = solve(dual(D, (-1.0, 2.0), njk=2), config())
    np.testing.assert_allclose(end.lam, (1.0, -0.5), rtol=2e-6)
    assert 0 < float(end.backend.r_b) < 3e-6


def test_joints_whose_pivots_fail_are_solved_after_a_shift():
    """A NaN-free answer where single precision finds no positive pivot; the factor of a failed block is that of the shifted one."""
    bad = jnp.asarray([[1.0, 2.0], [2.0, 1.0]], DTYPE)
    factor = lambda shift: jnp.linalg.cholesky(bad + shift * jnp.eye(2, dtype=DTYPE), symmetrize_input=False)
    assert np.any(np.isnan(retried(factor, 0.1, DTYPE)))
    np.testing.assert_allclose(retried(factor, 2.0, DTYPE) @ retried(factor, 2.0, DTYPE).T, [[3, 2], [2, 3]], atol=1e-6)


@pytest.mark.parametrize("settings", [dict(dynamics=kj.DynamicsConfig(preconditioning=True)), dict(sparse_dynamics=True)])
def test_what_dvi_does_not_have_is_refused(settings):
    with pytest.raises(ValueError, match="padmm|PADMM"):
        kj.Config(dynamics_solver="dvi", **settings)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (dict(unilateral_solver="gauss"), ValueError),
        (dict(omega=0.0), ValueError),
        (dict(regularization=0.0), ValueError),
        (dict(max_alternating_iterations=0), ValueError),
        (dict(use_schur_complement=1), TypeError),
        (dict(apgd=3), TypeError),
        (dict(tolerance=float("nan")), ValueError),
    ],
)
def test_settings_out_of_range_are_refused(bad, error):
    with pytest.raises(error, match="DVIConfig"):
        kj.DVIConfig(**bad)


@pytest.mark.skipif(not X64, reason="differences need double precision")
def test_gradients_are_those_of_padmm():
    """One rule for both backends: the derivative of a slid distance by the push, at impulses that each found in its own way."""
    model, state, control = start(push_block())

    def slid(push, config):
        pushed = kj.replace(control, w_ext=control.w_ext.at[0, 0].set(push))
        return kj.rollout(model, state, lambda *_: pushed, dt=5e-3, steps=10, config=config, record=())[0].q[0, 0]

    slope = lambda c: jax.jit(jax.value_and_grad(lambda p: slid(p, c)))(8.0)
    (a, da), (b, db) = slope(tight(dynamics_solver="padmm")), slope(tight(dynamics_solver="dvi"))
    np.testing.assert_allclose((a, da), (b, db), atol=1e-8)
    assert da > 1e-4


def push_block():
    builder = kj.ModelBuilder()
    builder.add_plane(mu=0.3)
    cube(builder, "block", 0.2, 1.0, (0, 0, 0.1), mu=0.3)
    return builder


@pytest.mark.parametrize(("near", "fill"), [([{1}, {0, 2}, {1, 3}, {2}], 1), ([{1, 3}, {0, 2}, {1, 3}, {2, 0}], 2)], ids=["chain", "ring"])
def test_a_chain_fills_nothing_and_a_ring_one_block_a_joint(near, fill):
    order, later = minimum_degree(near)
    assert sorted(order) == [0, 1, 2, 3] and max(map(len, later)) == fill
