"""The PADMM backend on hand-made problems with known solutions, in all its forms."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from duals import DTYPE, KNOWN, dual
from support import X64, rollout, start, step, tight, wheel

import kamino_jax as kj
from kamino_jax.delassus import DenseDelassus, Dual
from kamino_jax.layout import Rows
from kamino_jax.solvers import cones, padmm
from kamino_jax.solvers.backend import Guess
from kamino_jax.solvers.metrics import natural_map

# Unit-size problems: float32 residuals stall near 1e-6. Errors are the tolerance times the condition of these problems, at most 1e2.
SMALL = 1e-11 if X64 else 5e-6
ATOL = 1e-8 if X64 else 1e-4


def exact(**groups):
    """Settings as tight as the precision allows on problems of unit size."""
    tolerances = dict(primal_tolerance=SMALL, dual_tolerance=SMALL, compl_tolerance=SMALL)
    return tight(**groups | dict(padmm=tolerances | groups.get("padmm", {})))


FORMS = {
    "accelerated": {},
    "plain": dict(use_acceleration=False),
    "balanced": dict(penalty_update_method="balanced"),
    "balanced plain": dict(penalty_update_method="balanced", use_acceleration=False),
    "small penalty": dict(rho_0=0.05),  # in float32 its residuals stall: rounding of z grows as 1/rho
}


@functools.partial(jax.jit, static_argnames="config")
def solve(problem, lam, v_aug, config):
    return padmm.solve(problem, Guess(lam, v_aug), config)


def cold(problem, config):
    zero = jnp.zeros_like(problem.v_f)
    return solve(problem, zero, zero, config)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("case", KNOWN)
def test_a_known_problem_is_solved_in_every_form(case, form):
    problem, expected = KNOWN[case]
    end = cold(problem, exact(padmm=FORMS[form]))
    lam, v_plus = end.lam, end.v_plus
    np.testing.assert_allclose(lam, expected, atol=ATOL)
    np.testing.assert_allclose(v_plus, problem.D.mv(lam) + problem.v_f, atol=10 * ATOL)
    assert end.converged or (not X64 and form == "small penalty")


def test_matrix_free_dynamics_and_no_preconditioning_solve_the_same_problem():
    problem, expected = KNOWN["couples two contacts"]
    for config in (exact(sparse_dynamics=True), exact(dynamics=dict(preconditioning=False))):
        np.testing.assert_allclose(cold(problem, config).lam, expected, atol=10 * ATOL)


def test_body_space_and_row_space_agree():
    rng = np.random.default_rng(0)
    B, n = rng.normal(size=(12, 6)), 12  # more rows than columns: body space; as a square matrix: row space
    v_f = jnp.asarray(B @ rng.normal(size=6), DTYPE)  # what six velocities can produce
    ones, none = jnp.ones(n, bool), jnp.zeros(0, DTYPE)
    wide = Dual(Rows(njk=n), DenseDelassus(jnp.asarray(B, DTYPE), jnp.zeros(n, DTYPE)), v_f, none, none, none, ones)
    square = np.concatenate([B, np.zeros((12, 6))], axis=1)
    tall = Dual(Rows(njk=n), DenseDelassus(jnp.asarray(square, DTYPE), jnp.zeros(n, DTYPE)), v_f, none, none, none, ones)
    config = exact(padmm=dict(rho_0=0.1))
    a, b = cold(wide, config).lam, cold(tall, config).lam
    np.testing.assert_allclose(a, b, atol=1e-7 if X64 else 1e-3)
    np.testing.assert_allclose(wide.D.mv(a) + v_f, np.zeros(n), atol=1e-9 if X64 else 1e-4)


def test_a_warm_start_at_the_solution_needs_two_iterations():
    problem, expected = KNOWN["couples two contacts"]
    lam = jnp.asarray(expected, DTYPE)
    v = problem.D.mv(lam) + problem.v_f
    v_aug = v + cones.de_saxce(problem.rows, v, problem.mu)
    config = exact(padmm=dict(warmstart_scale=1.0, primal_tolerance=1e-5, dual_tolerance=1e-5, compl_tolerance=1e-5))
    assert int(solve(problem, lam, v_aug, config).iterations) == 2


def test_redundant_rows_share_the_load_from_cold_and_keep_their_difference_from_warm():
    B = jnp.ones((2, 1), DTYPE)
    zero, none = jnp.zeros(2, DTYPE), jnp.zeros(0, DTYPE)
    twice = Dual(Rows(njk=2), DenseDelassus(B, zero), zero - 1, none, none, none, jnp.ones(2, bool))
    np.testing.assert_allclose(cold(twice, exact()).lam, (0.5, 0.5), atol=10 * ATOL)
    warm = solve(twice, jnp.asarray([0.2, 0.0], DTYPE), zero, exact(padmm=dict(warmstart_scale=1.0))).lam
    np.testing.assert_allclose(warm, (0.6, 0.4), atol=1e-4)  # η = 1e-5 lets the difference decay a little


def test_a_sequence_of_restarts_goes_back_to_the_previous_pair():
    problem = dual(np.diag([1.0, 30.0, 500.0]), (-1, 2, 3), njk=3)
    config = exact(padmm=dict(restart_tolerance=1e-6, max_iterations=6))
    end = cold(problem, config)
    assert int(end.backend.num_restarts) == 3 and bool(end.backend.restart) and not bool(end.converged)


def test_the_history_ends_where_the_solve_ends():
    problem, _ = KNOWN["couples two contacts"]
    plain, recorded = (exact(padmm=dict(max_iterations=300, history=h)) for h in (False, True))
    end, again = cold(problem, plain), cold(problem, recorded)
    history = again.history
    np.testing.assert_array_equal(end.lam, again.lam)
    assert int(end.iterations) == int(again.iterations)
    assert history.r_d.shape == (300,)
    np.testing.assert_array_equal(history.r_d[int(end.iterations) - 1 :], np.full(301 - int(end.iterations), end.r_d))


@pytest.mark.skipif(not X64, reason="float32 residuals of a small problem reach exactly zero")
def test_zero_tolerance_runs_to_the_budget():
    config = exact(padmm=dict(primal_tolerance=0.0, dual_tolerance=0.0, compl_tolerance=0.0, max_iterations=37))
    end = cold(dual(np.diag([1.0, 30.0, 500.0]), (-1, 2, 3), njk=3), config)
    assert int(end.iterations) == 37 and not bool(end.converged)


def test_nan_stops_the_solve_and_is_never_converged():
    problem, _ = KNOWN["sticks"]
    broken = kj.replace(problem, v_f=problem.v_f * jnp.nan)
    end = cold(broken, exact())
    assert int(end.iterations) == 1 and not bool(end.converged)


def test_the_natural_map_vanishes_only_at_the_solution():
    problem, expected = KNOWN["couples two contacts"]
    lam = jnp.asarray(expected, DTYPE)
    residual = lambda lam: float(jnp.max(jnp.abs(natural_map(problem, lam, problem.D.mv(lam) + problem.v_f))))
    assert residual(lam) < ATOL
    assert residual(lam * 1.01) > 1e-3


CONES = {  # x, μ, projection on K_μ, projection on its dual
    "inside": ((0.1, 0, 1), 0.5, (0.1, 0, 1), (0.1, 0, 1)),
    "polar of both": ((0.1, 0, -1), 0.5, (0, 0, 0), (0, 0, 0)),
    "tangent": ((1, 0, 0), 0.5, (0.2, 0, 0.4), (0.8, 0, 0.4)),
    "frictionless up": ((1, 0, 1), 0.0, (0, 0, 1), (1, 0, 1)),
    "frictionless down": ((0, 0, -1), 0.0, (0, 0, 0), (0, 0, 0)),
    "frictionless oblique": ((1, 0, -1), 0.0, (0, 0, 0), (1, 0, 0)),
}


@pytest.mark.parametrize("case", CONES)
def test_cone_projections(case):
    x, mu, primal, dual_ = CONES[case]
    x, mu = jnp.asarray(x, DTYPE), jnp.asarray(mu, DTYPE)
    np.testing.assert_allclose(cones.project_cone(x, mu), primal, atol=1e-6)
    np.testing.assert_allclose(cones.project_dual_cone(x, mu), dual_, atol=1e-6)


def test_projections_are_idempotent_and_split_every_vector():
    x = jnp.asarray(np.random.default_rng(1).normal(size=(500, 3)), DTYPE)
    mu = jnp.asarray(np.random.default_rng(2).uniform(0, 2, 500), DTYPE)
    p = cones.project_cone(x, mu)
    np.testing.assert_allclose(cones.project_cone(p, mu), p, atol=1e-6)
    # Moreau: x = Proj_K(x) - Proj_K*(-x), orthogonal
    q = cones.project_dual_cone(-x, mu)
    np.testing.assert_allclose(p - q, x, atol=1e-6)
    np.testing.assert_allclose(jnp.sum(p * q, axis=1), np.zeros(500), atol=1e-6)


def box(push=0.0, dt=1e-3):
    builder = kj.ModelBuilder()
    builder.add_plane(None, mu=0.5)
    builder.add_body("box", mass=1.0, inertia=(1 / 6,) * 3, position=(0, 0, 0.5))
    builder.add_box("box", (0.5,) * 3, mu=0.5)
    model, state, control = start(builder)
    return model, state, kj.replace(control, w_ext=control.w_ext.at[0, 0].set(push)), dt


def test_a_resting_box_stands_evenly_on_its_corners():
    model, state, control, dt = box()
    info = step(model, state, control, dt=dt, config=tight())[1]
    lam = np.asarray(info.lam).reshape(-1, 3)
    np.testing.assert_allclose(lam[:, 2], np.full(4, 9.81e-3 / 4), rtol=1e-5)
    np.testing.assert_allclose(lam[:, :2], np.zeros((4, 2)), atol=1e-6)


def test_a_pushed_box_holds_with_symmetric_friction():
    model, state, control, dt = box(push=2.0, dt=2.5e-3)
    info = step(model, state, control, dt=dt, config=tight())[1]
    tangent = np.asarray(info.lam).reshape(-1, 3)[:, 0]
    np.testing.assert_allclose(tangent.sum(), -2.0 * dt, atol=1e-6)
    x = np.asarray(info.contacts.point_b)[:, 0]
    assert abs(tangent[x > 0].sum() - tangent[x < 0].sum()) < 5e-4


def test_a_stack_of_five_carries_its_weight():
    builder = kj.ModelBuilder()
    builder.add_plane(None, mu=0.5)
    for i in range(5):
        builder.add_body(
            f"box_{i}", mass=1.0, inertia=(1 / 150,) * 3, position=(0, 0, 0.1 + 0.2 * i - 1e-7 * (i + 1))
        )  # within the dead zone, so that no contact is lost to rounding
        builder.add_box(f"box_{i}", (0.1,) * 3, mu=0.5)
    for i in range(5):
        for j in range(i):
            if i - j > 1:
                builder.ignore_collisions(f"box_{i}", f"box_{j}")
    for i in range(1, 5):
        builder.ignore_collisions(f"box_{i}", "shape_0")
    model, state, _ = start(builder)
    info = step(model, state, dt=1e-3, config=tight(padmm=dict(rho_0=0.1)))[1]
    normal, ground = np.asarray(info.lam).reshape(-1, 3)[:, 2], np.asarray(info.contacts.body_a) == -1
    np.testing.assert_allclose(normal[ground].sum(), 5 * 9.81e-3, rtol=1e-3)
    np.testing.assert_allclose(normal.sum(), 15 * 9.81e-3, rtol=1e-3)


def test_a_drive_and_its_friction_share_a_hinge():
    """A saturated drive against dry friction accelerates with what is left."""
    model, state, control = start(wheel(1.0, drive="position", kp=1e4, effort_max=3.0, friction=1.0, target=1.0))
    last, _ = rollout(model, state, control, dt=0.01, steps=10, config=tight())
    np.testing.assert_allclose(last.u[0, 4], 2.0 * 0.1, rtol=1e-6)


def plate_on_light_links(mass):
    """A plate of 1 kg on four parallel links of a mass, at rest under its weight."""
    builder = kj.ModelBuilder()
    builder.add_body("plate", mass=1.0, inertia=(0.1,) * 3, position=(0.5, 0, -0.1))
    for i in range(4):
        builder.add_body(f"link_{i}", mass=mass, inertia=(1e-4 * mass,) * 3, position=(i / 3, 0, -0.05))
        builder.add_revolute(None, f"link_{i}", name=f"top_{i}", at=(i / 3, 0, 0), axis="y")
        builder.add_revolute(f"link_{i}", "plate", name=f"bottom_{i}", at=(i / 3, 0, -0.1), axis="y")
    return builder


@pytest.mark.parametrize("mass", [1e-2, 1e-4, 1e-5])
def test_links_however_light_carry_a_plate_in_single_precision(mass):
    """Mass ratios up to 1e5 may cost iterations, never the state: within a budget of 500 the plate holds still to 1 cm/s."""
    model, state, _ = start(plate_on_light_links(mass), dtype=jnp.float32)
    config = tight(
        padmm=dict(rho_0=0.1, max_iterations=500) | dict.fromkeys(("primal_tolerance", "dual_tolerance", "compl_tolerance"), 1e-4)
    )
    last, _ = rollout(model, state, dt=1e-3, steps=100, config=config)
    assert float(jnp.max(jnp.abs(last.u))) < 1e-2
