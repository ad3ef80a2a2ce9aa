"""Derivatives with a closed form: blocks, balls, pendulums, boxes on four corners. G-numbers are those of the design note on gradients."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import X64, ball, cube, set_hinge, start, tight, wheel

import kamino_jax as kj
from kamino_jax import scenes

G, H = 9.81, 1e-3
EXACT = 1e-9 if X64 else 2e-4  # of derivatives of order 1; impulses of float32 stop at 1e-7 of velocities of order 1e-3
CONFIG = tight(constraints=dict(gamma=0.0))


def derivative(f, x):
    """df/dx of a function of a number or vector x, forward."""
    return np.asarray(jax.jit(jax.jacfwd(f))(jnp.asarray(x, float)))


def with_(model, family, **fields):
    """The model with fields of a family replaced."""
    return kj.replace(model, **{family: kj.replace(getattr(model, family), **fields)})


# ---- a block that is pushed ------------------------------------------------------------------------------------------


STEPS, DT = 320, 2e-3
# case: (v0, mu, mass, pull [N] at the ground)
BLOCKS = {"held": (0.0, 0.5, 1.0, 2.0), "pushed": (0.0, 0.5, 1.0, 8.0), "sliding": (1.0, 0.3, 1.0, 0.0), "stopping": (3.0, 0.5, 1.0, 0.0)}


def block_program():
    """(x, v, tangential impulse) of a cube of 0.2 m on the ground in every step, and derivatives by v0, mu, mass, pull."""
    builder = kj.ModelBuilder()
    builder.add_plane(mu=0.5)
    cube(builder, "block", 0.2, 1.0, (0, 0, 0.1 - 1e-5), mu=0.5)
    model, state, control = start(builder)
    look = lambda state, info: jnp.stack([state.q[0, 0], state.u[0, 0], jnp.linalg.norm(jnp.sum(info.lam.reshape(-1, 3)[:, :2], axis=0))])

    def slide(p):
        v0, mu, mass, pull = p
        moved = with_(with_(model, "geoms", mu=jnp.full(2, 1) * mu), "bodies", mass=mass[None])
        # with the torque it acts at the ground, so that the block does not tip
        pulled = kj.replace(control, w_ext=control.w_ext.at[0, 0].set(pull).at[0, 4].set(-0.1 * pull))
        there = kj.replace(state, u=state.u.at[0, 0].set(v0))
        return kj.rollout(moved, there, lambda *_: pulled, dt=DT, steps=STEPS, config=CONFIG, record=look)[1]

    return jax.jit(jax.vmap(lambda p: (slide(p), jax.jacfwd(slide)(p))))


@functools.cache
def blocks():
    """By case: values (steps, 3) and derivatives (steps, 3, 4)."""
    values, slopes = block_program()(jnp.array(list(BLOCKS.values())))
    return {name: (np.asarray(values[i]), np.asarray(slopes[i])) for i, name in enumerate(BLOCKS)}


def test_a_sticking_block_does_not_feel_the_pull():
    """G4, A24: no derivative by friction, mass or pull; friction takes the pull and the momentum: dλ_t/dF = h, dλ_t/dv0 = m."""
    _, slopes = blocks()["held"]
    np.testing.assert_allclose(slopes[:, :2, 1:], 0, atol=1e-6 if X64 else 1e-4)
    np.testing.assert_allclose(slopes[0, 2], (1, 0, 0, DT), atol=EXACT)


def test_a_sliding_block_feels_pull_friction_and_mass():
    """G5: dv⁺/dF = h/m, dv⁺/dμ = -h g, dv⁺/dm = -h F/m²."""
    _, slopes = blocks()["pushed"]
    np.testing.assert_allclose(slopes[0, 1, 1:], (-DT * G, -DT * 8, DT), atol=EXACT)


def test_a_sliding_block_is_slowed_by_friction_whatever_its_mass():
    """A24, google/brax#399. N steps: x = v0 N h - μ g h² N(N+1)/2, v = v0 - μ g N h."""
    values, slopes = (x[99] for x in blocks()["sliding"])
    np.testing.assert_allclose(values[:2], (0.1406, 0.4114), atol=2e-4)
    n, moved = 100, DT * DT * 100 * 101 / 2
    expected = [[n * DT, -G * moved, 0, moved], [1, -G * n * DT, 0, n * DT]]
    np.testing.assert_allclose(slopes[:2], expected, atol=1e-7 if X64 else 2e-3)


def test_a_stopping_distance_follows_speed_and_friction():
    """G6: v0²/(2 μ g). The step in which the block stops is one of 306, and makes an error of that share."""
    values, slopes = (x[-1] for x in blocks()["stopping"])
    v0, mu = 3.0, 0.5
    np.testing.assert_allclose(values[1], 0, atol=EXACT)
    np.testing.assert_allclose(slopes[0, :2], (v0 / (mu * G), -(v0**2) / (2 * mu**2 * G)), rtol=2 / 306)


# ---- a rolling ball --------------------------------------------------------------------------------------------------


def rolled(mu):
    """Speed of a ball of 0.2 m, thrown without spin at 1 m/s, after 0.1 s on ground of friction mu."""
    builder = kj.ModelBuilder()
    builder.add_plane(mu=1.0)
    ball(builder, "ball", 0.2, 1.0, (0, 0, 0.2 - 1e-5), velocity=(1, 0, 0), mu=1.0)
    model, state, _ = start(builder)
    model = with_(model, "geoms", mu=jnp.full(2, 1) * mu)
    last, _ = kj.rollout(model, state, dt=H, steps=100, config=CONFIG, record=())
    return last.u[0, 0]


def test_friction_slows_a_slipping_ball_and_not_a_rolling_one():
    """A24: dv/dμ = -g t = -0.981 while it slips (μ 0.05), 0 once it rolls (μ 2, v = 5/7)."""
    speed, slope = jax.jit(jax.vmap(jax.value_and_grad(rolled)))(jnp.array([0.05, 2.0]))
    np.testing.assert_allclose(speed[1], 5 / 7, atol=1e-6 if X64 else 1e-4)
    np.testing.assert_allclose(slope, (-0.981, 0), atol=1e-7 if X64 else 1e-3)


def loaded_box(p):
    """Acceleration of a box of 10 kg that carries 25 balls of 1 kg, sliding on the ground; p = (force, mu of the ground)."""
    builder = kj.ModelBuilder()
    n, radius = 5, 0.05
    builder.add_plane(mu=0.1)
    builder.add_body("box", mass=10.0, inertia=(1, 1, 1), position=(0, 0, 0.1 - 1e-6), velocity=(1, 0, 0))
    builder.add_box("box", (0.5, 0.5, 0.1), mu=0.1)
    for i in range(n * n):
        x, y = 0.15 * (i % n - 2), 0.15 * (i // n - 2)
        spin = (0, 0, 0)
        ball(builder, f"ball_{i}", radius, 1.0, (x, y, 0.2 + radius - 2e-6), velocity=(1, 0, 0), angular_velocity=spin, mu=1.9)
        for other in [None, *(f"ball_{j}" for j in range(i))]:
            builder.ignore_collisions(f"ball_{i}", other)
    model, state, control = start(builder, max_contacts=29)
    force, mu = p
    mixed = jnp.concatenate([jnp.stack([mu, mu]), 2 - jnp.full(25, 1) * mu])  # averages: mu at the ground, 1 at the balls
    model = with_(model, "geoms", mu=mixed)
    control = kj.replace(control, w_ext=control.w_ext.at[0, 0].set(force).at[0, 4].set(-0.1 * force))
    after, _ = kj.step(model, state, control, dt=H, config=CONFIG)
    return (after.u[0, 0] - 1) / H


@pytest.mark.skipif(not X64, reason="an acceleration from one step of velocities needs double precision")
def test_a_box_is_pushed_under_rolling_balls():
    """G10: each ball adds m/3.5 to the box: da/dF = 1/(M + n m/3.5) = 0.05833, da/dμ = -(M + n m) g × that = -20.03."""
    share = 1 / (10 + 25 / 3.5)
    slopes = jax.jit(jax.jacrev(loaded_box))(jnp.array([60.0, 0.1]))
    np.testing.assert_allclose(slopes, (share, -35 * G * share), rtol=1e-6)


# ---- a box on four corners -------------------------------------------------------------------------------------------


TWISTS = {"resting": (0, 0, 0, 0, 0, 0), "sliding": (2, 0.6, 0, 0, 0, 0), "spinning": (2, 0.6, 0, 0, 0, 0.5)}
SOFT = 1e5  # [N/m] of each corner


@functools.cache
def box_program():
    """A program: (twists after a step of 1 ms, their changes along e) of cubes of 1 m and 1 kg on four corners of stiffness k; mu 0.4."""
    builder = kj.ModelBuilder()
    builder.add_plane(mu=0.4)
    cube(builder, "box", 1.0, 1.0, (0, 0, 0.5 - 1e-7), mu=0.4)
    model, state, _ = start(builder)
    config = tight(constraints=dict(gamma=0.0, contact_compliance=True))

    def one(u, e, k):
        soft = with_(model, "geoms", stiffness=jnp.full(2, 1) * k)
        return jax.jvp(lambda u: kj.step(soft, kj.replace(state, u=u[None]), dt=H, config=config)[0].u[0], (u,), (e,))

    return jax.jit(jax.vmap(one))


def box(name, k, shift=0.0):
    """Twists after twists moved by `shift` along each of the axes, (6, 6), and du⁺/du⁻ (6, 6)."""
    e = jnp.eye(6)
    after, slopes = box_program()(jnp.array(TWISTS[name], float) + shift * e, e, jnp.full(6, k))
    return np.asarray(after), np.asarray(slopes).T


def test_a_resting_box_forgets_how_it_moved():
    """G13: du⁺/du⁻ = 0, 6 x 6, on four corners of rank 6 of 12."""
    np.testing.assert_allclose(box("resting", 0.0)[1], 0, atol=EXACT)


def test_a_sliding_box_keeps_its_slip_and_turns_its_direction():
    """G14: dv⁺/dv = 1 - μ g h/|v| (1 - t tᵀ), so 0.9998 and 0.9983 along the axes; it neither leaves the ground nor tips.

    Friction brakes a spin by the squares of the corners' places along the slip, 0.622 and 0.335 m; how the two diagonals share the load
    is not determined on hard ground.
    """
    slope, v = box("sliding", 0.0)[1], np.array([2, 0.6])
    speed = np.linalg.norm(v)
    brake = 0.4 * G * H / speed
    tolerance = 1e-8 if X64 else 1e-4
    np.testing.assert_allclose(slope[:2, :2], np.eye(2) - brake * (np.eye(2) - np.outer(v, v) / speed**2), atol=tolerance)
    np.testing.assert_allclose(slope[2:5], 0, atol=tolerance)
    assert 1 - brake * 6 * 0.623**2 < slope[5, 5] < 1 - brake * 6 * 0.334**2


@pytest.mark.skipif(not X64, reason="central differences need double precision")
def test_a_box_that_slides_and_spins_on_soft_ground_has_a_derivative():
    """G15: with compliance the corners share the load in one way only; on hard ground du⁺ depends on the start of the solver."""
    h = 1e-4
    difference = (box("spinning", SOFT, h)[0] - box("spinning", SOFT, -h)[0]).T / (2 * h)
    np.testing.assert_allclose(box("spinning", SOFT)[1], difference, atol=1e-8)


# ---- hinges ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", [1, -1])
def test_a_saturated_drive_feels_its_bound_and_not_its_target(side):
    """G11: du⁺/dq_ref = 0, du⁺/dτ_max = ± h/I."""
    model, state, control = start(wheel(inertia=2.0, drive="position", kp=100.0, kd=1.0, effort_max=3.0))

    def rate(p):
        moved = kj.replace(control, q_ref=p[:1])
        return kj.step(with_(model, "joints", effort_max=p[1:]), state, moved, dt=H, config=CONFIG)[0].u[0, 4]

    np.testing.assert_allclose(derivative(rate, [side * 1.0, 3.0]), (0, side * H / 2), atol=EXACT * H if X64 else 1e-7)


def test_a_pendulum_held_by_its_stop_does_not_feel_its_motor():
    """G12: pushed into the stop, dω⁺/dτ = 0; pulled away, h/I."""
    model, state, control = start(wheel(inertia=2.0, limits=(0.0, 1.0)))
    state = set_hinge(state, -1e-6)
    rate = lambda tau: kj.step(model, state, kj.replace(control, tau=tau[None]), dt=H, config=CONFIG)[0].u[0, 4]
    slopes = jax.jit(jax.vmap(jax.grad(rate)))(jnp.array([-1.0, 1.0]))
    np.testing.assert_allclose(slopes, (0, H / 2), atol=EXACT * H if X64 else 1e-7)


@pytest.mark.skipif(not X64, reason="a thousand steps of a small swing")
def test_a_period_grows_with_the_length_and_not_with_the_mass():
    """G8: T = 2π √(L/g): dT/dL = T/(2L), dT/dm = 0, from the moment at which a pendulum of a point mass passes the bottom."""
    length, mass, angle = 0.5, 2.0, 1e-3
    quarter = 0.5 * np.pi * np.sqrt(length / G)
    steps = 1000
    builder = kj.ModelBuilder()
    builder.add_body("bob", mass=mass, inertia=(1e-6,) * 3, position=(angle * length, 0, -length))
    builder.add_revolute(None, "bob", at=(0, 0, 0), axis="y")
    model, state, _ = start(builder)

    def swing(p):
        L, m = p
        X_F = model.joints.X_F.at[0, 0].set(-angle * L).at[0, 2].set(L)
        moved = with_(with_(model, "joints", X_F=X_F), "bodies", mass=m[None])
        there = kj.replace(state, q=state.q.at[0, 0].set(angle * L).at[0, 2].set(-L))
        last, _ = kj.rollout(moved, there, dt=quarter / steps, steps=steps, config=CONFIG, record=())
        return last.q[0, 0], last.u[0, 0]

    program = jax.jit(lambda p: (swing(p)[1], jax.jacfwd(lambda p: swing(p)[0])(p)))
    speed, slope = program(jnp.array([length, mass]))
    by_length, by_mass = -4 * np.asarray(slope) / float(speed)  # at the bottom x(T/4; p) = 0
    np.testing.assert_allclose(by_length, 4 * quarter / (2 * length), rtol=5e-3)
    np.testing.assert_allclose(by_mass, 0, atol=1e-6)


@pytest.mark.skipif(not X64, reason="a ratio of derivatives of one step")
def test_the_torque_that_holds_a_four_bar_is_that_of_virtual_work():
    """G9: τ = Σ m g dz/dφ; so dτ/dm = g dz/dφ of each link, from the speeds of the links when the crank turns."""
    model, state, control = scenes.crank_rocker(angle=1.0)

    def rate(p):
        moved = with_(model, "bodies", mass=p[1:])
        after, _ = kj.step(moved, state, kj.replace(control, tau=control.tau.at[0].set(p[0])), dt=H, config=tight())
        return after.u[0, 4], after.u[:, 2]

    masses = model.bodies.mass
    (turned, heights), (by_p, heights_by_p) = jax.jit(lambda p: (rate(p), jax.jacfwd(rate)(p)))(jnp.concatenate([jnp.zeros(1), masses]))
    rise = heights_by_p[:, 0] / by_p[0]  # dz/dφ: how the links move when the motor turns the crank
    torque = -turned / by_p[0]
    np.testing.assert_allclose(torque, G * jnp.sum(masses * rise), rtol=1e-6)
    # at the torque that holds it, a change of mass needs a change of torque that keeps the rate at zero
    held = jax.jit(jax.grad(lambda p: rate(p)[0]))(jnp.concatenate([torque[None], masses]))
    np.testing.assert_allclose(-held[1:] / held[0], G * rise, rtol=1e-5)
