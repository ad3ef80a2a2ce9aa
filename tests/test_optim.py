"""Optimisation through the simulation against closed forms: least squares, Riccati, known parameters, known linkages."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from support import X64, cube, start, tight

import kamino_jax as kj
from kamino_jax import optim
from kamino_jax.__main__ import main
from kamino_jax.optim import examples, four_bar, linkage
from kamino_jax.optim.descent import descend
from kamino_jax.optim.identify import Recording, _uncertainty
from kamino_jax.optim.least_squares import Normal

pytestmark = pytest.mark.skipif(not X64, reason="compares with closed forms in double precision")

DT, G = 0.02, 9.81
SMOOTH = tight(constraints=dict(gamma=0.0))


def slider(mass=2.0, friction=0.0, velocity=0.0):
    """A body on a rail along x without gravity."""
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("cart", mass=mass, inertia=(1, 1, 1), velocity=(velocity, 0, 0))
    options = dict(friction=friction) if friction else {}
    builder.add_prismatic(None, "cart", name="rail", at=(0, 0, 0), axis="x", **options)
    return start(builder)


def sliding_block(mu=0.3, velocity=2.0, mass=1.5):
    builder = kj.ModelBuilder()
    cube(builder, "block", 0.2, mass, (0, 0, 0.1 - 1e-4), mu=mu, velocity=(velocity, 0, 0))
    builder.add_plane(name="ground", mu=mu)
    return start(builder, max_contacts=4)


def positions(forces, mass, velocity=0.0):
    """The matrix and offset of x_T = offset + b·F of semi-implicit Euler steps."""
    left = len(forces) - np.arange(len(forces))
    return DT**2 * left / mass, DT * len(forces) * velocity


# --- controls ---


def test_push_on_a_sliding_block_is_the_closed_form_optimum():
    mu, v, m, T, goal, weight = 0.3, 2.0, 1.5, 20, 0.9, 40.0
    model, state, control = sliding_block(mu, v, m)
    b, free = positions(np.zeros(T), m, v)
    coast = free - m * mu * G * b.sum()  # friction is a constant force while the block slides
    best = -weight * b * (coast - goal) / (1 + weight * b @ b)
    found = optim.optimize_controls(
        model,
        state,
        lambda s, c: 0.5 * c.w_ext[0, 0] ** 2,
        lambda s: 0.5 * weight * (s.q[0, 0] - goal) ** 2,
        optim.hold(control, T),
        dt=DT,
        fields=("w_ext",),
        bounds={"w_ext": (-np.eye(6)[:1] * 50, np.eye(6)[:1] * 50)},  # along x only
        optimizer=optax.sgd(2 / (2 + weight * b @ b)),
        tolerance=1e-9,
        config=SMOOTH,
    )
    assert found.converged and bool(found.trajectory.status.converged.all())
    np.testing.assert_allclose(found.controls.w_ext[:, 0, 0], best, atol=1e-7)
    assert found.cost == pytest.approx(0.5 * best @ best + 0.5 * weight * (coast + b @ best - goal) ** 2, abs=1e-9)


def quadratic_slider(T=12, mass=2.0, goal=0.4, weight=300.0):
    """(arguments, Hessian without smoothness, gradient at zero) of pushing a slider towards a goal."""
    model, state, control = slider(mass)
    b, _ = positions(np.zeros(T), mass)
    final = lambda s: 0.5 * weight * (s.joint_q[0] - goal) ** 2
    arguments = (model, state, lambda s, c: 0.5 * c.tau[0] ** 2, final, optim.hold(control, T))
    return arguments, np.eye(T) + weight * np.outer(b, b), -weight * b * goal


def test_smoothness_bounds_and_one_trace():
    arguments, H, g = quadratic_slider()
    rough = np.diff(np.eye(len(g)), axis=0)
    H = H + 2 * 0.7 * rough.T @ rough
    high = 0.9 * np.linalg.solve(H, -g).max()
    seen, traces = [], []

    def final(state):
        traces.append(1)
        return arguments[3](state)

    options = dict(dt=DT, smoothness=0.7, bounds={"tau": (-1.0, high)}, optimizer=optax.sgd(1.8 / np.linalg.eigvalsh(H)[-1]))
    options |= dict(config=SMOOTH, tolerance=1e-9, iterations=500, report=lambda k, c: seen.append((k, c)))
    found = optim.optimize_controls(*arguments[:3], final, arguments[4], **options)
    tau = np.asarray(found.controls.tau[:, 0])
    at, slope = tau >= high - 1e-12, H @ tau + g
    assert found.converged and tau.max() <= high and 0 < at.sum() < len(tau)
    assert np.all(slope[at] < 0) and np.abs(slope[~at]).max() < 1e-7
    assert len(seen) == found.iterations + 1 == len(found.history)
    assert len(traces) == 1  # one program, whatever the number of updates


def test_best_iterate_is_kept_when_the_optimiser_leaps():
    square = jax.value_and_grad(lambda x, data: (jnp.sum(data * x**2), 2 * x), has_aux=True)
    found = descend(square, jnp.ones(2), jnp.array([1.0, 3.0]), optimizer=optax.sgd(0.4), iterations=4, tolerance=1e-9)
    assert found.history[-1] > found.cost == found.history.min() and not found.converged
    assert float(jnp.sum(jnp.array([1.0, 3.0]) * found.x**2)) == found.cost
    np.testing.assert_array_equal(found.aux, 2 * found.x)


def test_descent_stops_at_what_is_not_finite():
    root = jax.value_and_grad(lambda x, _: (-jnp.sqrt(x), None), has_aux=True)
    found = descend(root, jnp.array(1.0), None, optimizer=optax.sgd(-4.0), iterations=9, tolerance=0.0)
    assert found.x == 1.0 and found.cost == -1.0 and found.iterations == 1 and not found.converged


def test_smoothed_gradient_moves_a_resting_block():
    """With the exact gradient nothing happens: no small push moves the block."""
    found = optim.optimize_controls(**examples.block_push_problem(), iterations=60)
    last = jax.tree.map(lambda x: x[-1], found.trajectory.states)
    assert abs(last.q[0, 0] - 0.3) < 0.01 and abs(last.u[0, 0]) < 0.02
    assert found.history[0] == pytest.approx(4.5) and found.cost < 0.05
    assert float(jnp.abs(found.controls.w_ext[:, 0, 0]).max()) <= 15.0
    assert float(jnp.abs(found.controls.w_ext[:, 0, 1:]).max()) == 0.0


# --- iterative LQR ---


def riccati(T, mass, q, r, q_end):
    """(gains (T, 2), value matrix at 0) of the double integrator of semi-implicit Euler."""
    A, B = np.array([[1, DT], [0, 1]]), np.array([[DT**2 / mass], [DT / mass]])
    P, gains = q_end, []
    for _ in range(T):
        K = -np.linalg.solve(r + B.T @ P @ B, B.T @ P @ A)
        P = q + A.T @ P @ A + A.T @ P @ B @ K
        gains.append(K[0])
    return np.array(gains[::-1]), P


def test_ilqr_is_lqr_on_a_double_integrator():
    T, mass, q, r, q_end = 30, 2.0, np.diag([1.0, 0.1]), 0.05, np.diag([50.0, 5.0])
    model, state, _ = slider(mass, velocity=1.0)
    x = lambda s: jnp.stack([s.joint_q[0], s.u[0, 0]])
    found = optim.ilqr(
        model,
        state,
        lambda s, c: 0.5 * (x(s) @ jnp.asarray(q) @ x(s) + r * c.tau[0] ** 2),
        lambda s: 0.5 * x(s) @ jnp.asarray(q_end) @ x(s),
        jnp.zeros((T, 1)),
        dt=DT,
        regularization=1e-12,
        config=SMOOTH,
    )
    gains, P = riccati(T, mass, q, r, q_end)
    assert found.converged and found.iterations <= 3
    assert found.cost == pytest.approx(0.5 * P[1, 1], rel=1e-8) and found.cost < 0.7 * found.history[0]
    np.testing.assert_allclose(found.gains[:, 0, [0, 6]], gains, rtol=1e-6)
    assert float(jnp.abs(found.gains[:, 0, 1:6]).max()) < 1e-9 * np.abs(gains).max()
    # the policy leads a disturbed start to the optimum from there: the problem is linear
    moved = kj.replace(state, u=state.u.at[0, 0].set(0.5))
    last, _ = jax.jit(lambda s: kj.rollout(model, s, found.policy, dt=DT, steps=T, config=SMOOTH, record=()))(moved)
    planned = jax.tree.map(lambda s: s[-1], found.trajectory.states)
    np.testing.assert_allclose(x(last), 0.5 * x(planned), atol=1e-9)


def test_ilqr_swings_a_pole_up():
    setup = examples.cartpole_problem()
    found = optim.ilqr(**setup, iterations=60)
    states, status = found.trajectory.states, found.trajectory.status
    assert found.cost < 3 < found.history[0] and bool(jnp.all(jnp.diff(found.history) <= 0))
    assert examples.uprightness(states.q)[0] == -1 and examples.uprightness(states.q)[-1] > 0.999
    assert abs(states.u[-1, 1, 3]) < 0.2 and bool(status.converged.all())
    assert float(jnp.abs(found.tau[:, 1]).max()) == 0  # nothing turns the hinge


# --- identification ---


def block_with(model, p):
    mass = jnp.broadcast_to(p["mass"], model.bodies.mass.shape)
    bodies = kj.replace(model.bodies, mass=mass, inertia=model.bodies.inertia * p["mass"] / model.bodies.mass[0])
    return kj.replace(model, bodies=bodies, geoms=kj.replace(model.geoms, mu=jnp.full_like(model.geoms.mu, 1) * p["mu"]))


def test_identify_mass_and_contact_friction():
    model, state, control = sliding_block()
    true = dict(mass=2.0, mu=0.4)
    controls = optim.hold(control, 40)
    controls = kj.replace(controls, w_ext=controls.w_ext.at[:, 0, 0].set(12 + 4 * np.sin(np.arange(40) / 3)))
    recording = optim.record(block_with(model, jax.tree.map(jnp.asarray, true)), state, controls, dt=DT, config=SMOOTH)
    found = optim.identify(
        model, block_with, dict(mass=1.0, mu=0.2), recording, dt=DT, segment=10, positive=True, tolerance=1e-12, config=SMOOTH
    )
    assert found.converged and found.rms < 1e-9 and found.condition < 1e3
    assert {k: float(v) for k, v in found.parameters.items()} == pytest.approx(true, rel=1e-6)


def rail_with(model, p):
    bodies = kj.replace(model.bodies, mass=jnp.broadcast_to(p[0], model.bodies.mass.shape))
    return kj.replace(model, bodies=bodies, joints=kj.replace(model.joints, friction=jnp.broadcast_to(p[1], model.joints.friction.shape)))


TRUE = np.array([1.3, 0.7])  # mass [kg], joint friction [N]


def rail_recordings(count, noise=0.0, T=40):
    """Recorded speeds of a slider with friction under different pushes, kept sliding."""
    model, state, control = slider(2.0, friction=0.1, velocity=1.0)
    rng, hold = np.random.default_rng(0), optim.hold(control, T)
    tau = 1.5 + np.sin(np.arange(T) / 4 + np.arange(count)[:, None])[..., None]
    truth = rail_with(model, jnp.asarray(TRUE))
    one = lambda t: optim.record(truth, state, kj.replace(hold, tau=t), dt=DT, config=SMOOTH)
    full = jax.jit(jax.vmap(one))(jnp.asarray(tau))
    speed = full.states.u[:, 1:, 0, :1] + noise * rng.standard_normal((count, T, 1))
    return model, Recording(jax.tree.map(lambda x: x[:, :1], full.states), full.controls, speed)


def fit_rail(model, recordings, **options):
    measure = lambda state: state.u[0, :1]
    return optim.identify(model, rail_with, jnp.array([2.0, 0.2]), recordings, dt=DT, measure=measure, config=SMOOTH, **options)


def test_identify_mass_and_joint_friction_from_speeds():
    found = fit_rail(*rail_recordings(2), tolerance=1e-13)
    np.testing.assert_allclose(found.parameters, TRUE, rtol=1e-6)
    assert float(found.standard_errors.max()) < 1e-6


def test_standard_errors_are_honest_and_shrink_with_data():
    few, many = (fit_rail(*rail_recordings(n, noise=0.01), scale=0.01) for n in (2, 8))
    ratio = np.asarray(many.standard_errors / few.standard_errors)
    assert np.all((ratio > 0.3) & (ratio < 0.7))  # about one half, for fourfold data
    assert np.all(np.abs(many.parameters - TRUE) < 4 * many.standard_errors)
    assert many.rms == pytest.approx(1, abs=0.2)  # in units of the noise


def test_identify_says_what_the_data_leave_open():
    J = np.random.default_rng(0).standard_normal((30, 2)) @ np.array([[1.0, 0, 0], [0, 1, 1]])  # only the sum of two matters
    normal = Normal(jnp.array(0.5 * 27 * 0.1**2), jnp.zeros(3), jnp.asarray(J.T @ J))
    covariance, condition = _uncertainty(normal, 30, jnp.array([1.0, 1.0, 2.0]))
    assert condition > 1e12 and covariance[1, 1] > 1e8 * covariance[0, 0]
    assert covariance[0, 0] == pytest.approx(0.1**2 * np.linalg.pinv(J.T @ J)[0, 0], rel=1e-3)


def test_identify_by_optax():
    found = fit_rail(*rail_recordings(2), optimizer=optax.adam(0.05), iterations=120, positive=True)
    assert found.history.min() < 1e-2 * found.history[0] and len(found.history) == 121
    np.testing.assert_allclose(found.parameters, TRUE, rtol=0.2)


# --- linkages ---

ANGLES = jnp.linspace(0, 2 * np.pi, 24, endpoint=False)
BAR = optim.FourBar(jnp.array([0.3, 1.0, 0.8, 1.0]), jnp.array([0.5, 0.4]), jnp.array([0.1, 0.2]), jnp.array(0.3), jnp.array(0.7))


def test_loops_close_as_in_the_closed_form():
    placed = four_bar.place(four_bar.four_bar_model(), BAR, ANGLES)
    closure = jax.jit(optim.close_loops)(placed.model, placed.values)
    path, closes = optim.four_bar_path(BAR, ANGLES)
    assert float(closure.gap.max()) < 1e-12 and bool(closes.all())
    np.testing.assert_allclose(linkage.trace(placed.model, closure.q, 1, placed.point)[:, ::2], path, atol=1e-12)


def test_a_four_bar_is_recovered_from_its_coupler_curve():
    targets, _ = optim.four_bar_path(BAR, ANGLES)
    found = optim.design_four_bar(targets, ANGLES, key=jax.random.key(0))  # no hint of the answer
    assert found.closes and found.converged and found.rms < 1e-9
    for value, truth in zip(*map(jax.tree.leaves, (found.parameters, BAR)), strict=True):
        np.testing.assert_allclose(value, truth, atol=1e-7)


def test_a_four_bar_that_cannot_close_is_flagged():
    bar = kj.replace(BAR, lengths=jnp.array([0.3, 0.5, 0.4, 1.5]))
    targets, closes = optim.four_bar_path(bar, ANGLES)
    found = optim.design_four_bar(targets, ANGLES, start=bar, iterations=0)
    assert not bool(closes.any()) and not found.closes and not found.converged
    assert float(found.gap.min()) > 0.1 and bool(jnp.isfinite(found.q).all())


def test_start_of_the_synthesis_is_a_crank_rocker_that_closes():
    targets, angles = examples.ellipse()
    bar = optim.four_bar_start(targets, angles, key=jax.random.key(1), candidates=500)
    path, closes = optim.four_bar_path(bar, angles)
    assert bool(optim.grashof(bar.lengths, 0.099)) and bool(closes.all())
    assert float(jnp.sqrt(jnp.mean(jnp.sum((path - targets) ** 2, 1)))) < 0.05
    rules = {(0.3, 1.0, 0.8, 1.0): True, (1.0, 0.8, 1.0, 0.3): True, (1.0, 0.3, 0.8, 1.0): False, (0.5, 1.0, 0.5, 1.2): False}
    assert [bool(optim.grashof(jnp.array(lengths))) for lengths in rules] == list(rules.values())


def test_any_mechanism_can_be_designed():
    """A crank whose tip must follow a circle: the radius is found in the joint's frame."""
    builder = kj.ModelBuilder()
    builder.add_body("crank", mass=1.0, inertia=(1, 1, 1))
    builder.add_revolute(None, "crank", name="pin", axis="z", parent_position=(0, 0, 0))
    model, angles, zero = builder.finalize(), ANGLES[:6], jnp.zeros(())

    def build(p):
        X_B = model.joints.X_B.at[0, :2].set(p["centre"])
        return optim.Linkage(kj.replace(model, joints=kj.replace(model.joints, X_B=X_B)), angles, jnp.stack([p["radius"], zero, zero]))

    targets = np.stack([1 + 0.7 * np.cos(angles), -2 + 0.7 * np.sin(angles), 0 * angles], 1)
    begin, positive = dict(centre=jnp.zeros(2), radius=0.2), dict(centre=False, radius=True)
    found = optim.design_linkage(build, begin, targets, body="crank", driven="pin", positive=positive)
    assert found.closes and found.rms < 1e-9
    np.testing.assert_allclose(found.parameters["centre"], [1, -2], atol=1e-9)
    assert found.parameters["radius"] == pytest.approx(0.7, abs=1e-9)


# --- refusals ---


def refuse_controls(**changes):
    arguments, _, _ = quadratic_slider(T=3)
    model, state, running, final, controls = arguments
    given = dict(running_cost=running, final_cost=final, controls=controls, dt=DT) | changes
    return lambda: optim.optimize_controls(model, state, **given)


def refuse_ilqr(**changes):
    arguments, _, _ = quadratic_slider(T=3)
    given = dict(running_cost=arguments[2], final_cost=arguments[3], tau=jnp.zeros((3, 1)), dt=DT) | changes
    return lambda: optim.ilqr(*arguments[:2], **given)


def refuse_fit(states=4, tau_steps=3, parameters=(2.0, 0.2), **changes):
    model, state, control = slider()
    grow = lambda x, n: jax.tree.map(lambda a: jnp.stack([a] * n), x)
    recording = optim.Recording(grow(state, states), grow(control, tau_steps), changes.pop("measured", None))
    return lambda: optim.identify(model, rail_with, jnp.array(parameters), recording, **dict(dt=DT) | changes)


def refuse_linkage(targets=(6, 3), **changes):
    bars = four_bar.four_bar_model()
    build = lambda bar: four_bar.place(bars, bar, ANGLES[:6])
    return lambda: optim.design_linkage(build, BAR, jnp.zeros(targets), **dict(body="coupler", driven="ground_crank") | changes)


REFUSED = {
    "time step": (refuse_controls(dt=-0.1), "a time step must be positive"),
    "no cost": (refuse_controls(running_cost=None, final_cost=None), "there is no cost"),
    "field": (refuse_controls(fields=("torque",)), "must name some of tau"),
    "bounds of another field": (refuse_controls(bounds={"w_ext": (0, 1)}), "not optimised"),
    "bounds the wrong way": (refuse_controls(bounds={"tau": (1.0, -1.0)}), "lies above"),
    "smoothness": (refuse_controls(smoothness=-1.0), "smoothness"),
    "no time axis": (refuse_controls(controls=slider()[2]), "same steps in all"),
    "iterations": (refuse_controls(iterations=-1), "iterations is -1"),
    "cost not finite": (
        lambda: descend(lambda x, _: ((x / 0, None), x), jnp.zeros(()), None, optimizer=optax.sgd(1.0), iterations=1, tolerance=0.0),
        "start from something finite",
    ),
    "dofs": (refuse_ilqr(dofs=(1,)), "different DoFs between 0 and 0"),
    "efforts": (refuse_ilqr(tau=jnp.zeros(3)), "controls.tau has shape"),
    "no iLQR cost": (refuse_ilqr(running_cost=None, final_cost=None), "there is no cost"),
    "segment": (refuse_fit(segment=2), "must divide the 3 steps"),
    "states": (refuse_fit(states=3), "3 states for 3 steps"),
    "measured": (refuse_fit(measured=jnp.zeros((3, 1))), "no measure"),
    "scale": (refuse_fit(scale=0.0), "scale must be positive"),
    "positive": (refuse_fit(parameters=(-1.0, 0.2), positive=True), "at or below zero"),
    "no parameters": (refuse_fit(parameters=()), "nothing to fit"),
    "body": (refuse_linkage(body="leg"), "no bodie named 'leg'"),
    "driven": (refuse_linkage(driven="leg"), "named 'leg'"),
    "targets": (refuse_linkage(targets=(5, 3)), "must be (T, 3)"),
    "structure": (refuse_linkage(positive=[True]), "be built like parameters"),
    "no start": (lambda: optim.design_four_bar(jnp.zeros((6, 2)), ANGLES[:6]), "a FourBar, or key"),
    "two targets": (lambda: optim.four_bar_start(jnp.zeros((2, 2)), ANGLES[:2], key=jax.random.key(0)), "at least 3"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_arguments_are_refused(case):
    call, message = REFUSED[case]
    with pytest.raises(ValueError) as error:
        call()
    assert message in str(error.value)


# --- command line ---


def test_optimize_reports_and_draws(capsys, tmp_path):
    picture = tmp_path / "four_bar.png"
    assert main(["optimize", "four_bar", "--iterations", "20", "--json", "--plot", str(picture)]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["example"] == "four_bar" and figures["closes"] and figures["grashof"] and figures["rms_m"] < 0.02
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["optimize", "four_bar", "--iterations", "0"]) == 2
    assert "--iterations must be at least 1" in capsys.readouterr().err


def test_public_names_are_documented():
    assert all(getattr(optim, name).__doc__ for name in vars(optim) if not name.startswith("_"))
