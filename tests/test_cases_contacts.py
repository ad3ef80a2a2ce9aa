"""Contact problems that users of other simulators have reported, with the right answers.

Each docstring names the public report; expected numbers are closed forms. Speculative contacts ("kept") brake the approach within the
gap; culled ones, the default, let an impact penetrate by up to |v| dt and push it out at up to gamma |v|.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import KEPT, X64, axis_angle, ball, batched_rollout, cube, matrix, tight, with_wrench, worlds

import kamino_jax as kj

G = 9.81
SMALL = dict.fromkeys(("primal_tolerance", "dual_tolerance", "compl_tolerance"), 1e-9 if X64 else 1e-6)
EXACT = 1e-7 if X64 else 1e-4  # [m, m/s, rad/s] errors of the solves above, summed over a run of a second or two
DTYPES = ["float32", "float64"] if X64 else ["float32"]


def settings(cap=1000, **groups):
    """Solver settings; see `support.tight`."""
    return tight(padmm=SMALL | dict(max_iterations=cap), **groups)


def forces(state, info):
    """Contact forces on body B in world axes, (slots, 3) [N]."""
    frame = state.reactions.frame
    return jnp.einsum("cij,ci->cj", frame, state.reactions.force[-3 * len(frame) :].reshape(-1, 3))


def seen(state, info):
    """What is recorded: poses, twists, contact forces, who touches, how the solve ended."""
    return dict(q=state.q, u=state.u, force=forces(state, info), contacts=info.contacts, status=info.status)


def run(models, states, controls, dt, steps, config):
    """Record of stacked worlds as NumPy arrays (worlds, steps, ...)."""
    _, record = batched_rollout(models, states, controls, dt, steps, config, seen)
    return jax.tree.map(np.asarray, record)


def on_ground(record, body=0):
    """Sum of the contact forces on a body from the world, (worlds, steps, 3) [N]."""
    contacts = record["contacts"]
    mine = (contacts.body_a == -1) & (contacts.body_b == body)
    return (record["force"] * mine[..., None]).sum(-2)


# ---- friction --------------------------------------------------------------------------------------------------------


def test_a_cube_pressed_on_a_wall_stays_or_slides_by_coulombs_law():
    """Genesis-Embodied-AI/genesis-world#2872: friction as a function of slip speed creeps at 4.5 mm/s. 1 kg held with 20 N."""

    def build(mu):
        builder = kj.ModelBuilder()
        builder.add_plane(normal=(1, 0, 0), mu=mu, gap=0.01)
        cube(builder, "cube", 0.1, 1.0, (0.05, 0, 0), mu=mu, gap=0.01)
        return builder

    models, states, controls = worlds((1.0, 0.4), build)
    record = run(models, states, with_wrench(controls, (-20, 0, 0, 0, 0, 0)), 0.01, 200, settings(dynamics=KEPT))
    held, sliding = on_ground(record)[..., 2]
    assert np.abs(record["q"][0, :, 0, 2]).max() < 1e-5
    np.testing.assert_allclose(held, 9.81, atol=1e-4 if X64 else 0.01)
    np.testing.assert_allclose(sliding, 0.4 * 20, rtol=1e-5 if X64 else 0.01)
    np.testing.assert_allclose(record["u"][1, -1, 0, 2] / 2, -1.81, rtol=0.01)


@functools.cache
def slides():
    """A cube thrown at 2 m/s along each heading in each yaw: (headings (15, 2), record over 0.45 s)."""
    variants = list(itertools.product(np.radians((0, 15, 22.5, 30, 45)), np.radians((0, 20, 45))))

    def build(variant):
        heading, yaw = variant
        builder = kj.ModelBuilder()
        builder.add_plane(mu=0.5, gap=0.005)
        velocity = (2 * np.cos(heading), 2 * np.sin(heading), 0)
        cube(builder, "cube", 0.1, 1.0, (0, 0, 0.05), rotation=axis_angle((0, 0, 1), yaw), velocity=velocity, mu=0.5, gap=0.005)
        return builder

    headings = np.array([(np.cos(heading), np.sin(heading)) for heading, _ in variants])
    return headings, run(*worlds(variants, build), 1e-3, 450, settings(dynamics=KEPT))


def test_a_box_slides_equally_far_in_every_direction():
    """genesis-world#907, bulletphysics/bullet3#2590, dimforge/rapier#137: friction limited per axis gives 0.288 m at 45 degrees.

    v²/(2 mu g) = 0.40775 m, v/(mu g) = 0.4077 s.
    """
    headings, record = slides()
    place, speed = record["q"][:, :, 0, :2], np.linalg.norm(record["u"][:, :, 0, :2], axis=-1)
    along = (place[:, -1] * headings).sum(-1)
    np.testing.assert_allclose(along, 0.40775, rtol=0.01)
    np.testing.assert_allclose((speed > 1e-3).sum(1) * 1e-3, 0.4077, rtol=0.01)
    assert np.ptp(along) / along.mean() < 0.005


def test_a_sliding_box_neither_veers_nor_yaws():
    """bulletphysics/bullet3#2590: the yaw response of a sliding box repeats every 45 degrees."""
    headings, record = slides()
    place, quat = record["q"][:, :, 0, :2], record["q"][:, :, 0, 3:]
    assert np.abs(place[..., 0] * headings[:, None, 1] - place[..., 1] * headings[:, None, 0]).max() < 1e-3
    yaw = 2 * np.arctan2(quat[..., 2], quat[..., 3])
    assert np.abs(yaw - yaw[:, :1]).max() < 1e-3


@functools.cache
def rolls():
    """A ball thrown at 1 m/s on the flat, and one released on a slope of 10 degrees: twists (2, steps, 6) of 5 s, mu 0.3."""

    def build(tilt):
        normal = np.array([np.sin(tilt), 0, np.cos(tilt)])
        builder = kj.ModelBuilder()
        builder.add_plane(normal=normal, mu=0.3, gap=0.005)
        ball(builder, "ball", 0.1, 1.0, 0.1 * normal, velocity=(0 if tilt else 1, 0, 0), mu=0.3, gap=0.005)
        return builder

    return run(*worlds(np.radians((0.0, 10.0)), build), 1e-3, 5000, settings(dynamics=KEPT))["u"][:, :, 0]


def test_a_sliding_ball_ends_up_rolling_at_five_sevenths_of_its_speed():
    """schteppe/cannon.js#345, DanielChappuis/reactphysics3d#13: an odd constant spin. Rolls from 2 v/(7 mu g) = 0.0971 s on."""
    flat = rolls()[0]
    times = 1e-3 * np.arange(1, len(flat) + 1)
    slip = np.abs(flat[:, 0] - 0.1 * flat[:, 4])
    assert times[slip < 1e-3][0] == pytest.approx(0.0971, abs=2e-3)  # two steps
    rolling = flat[times > 0.1]
    np.testing.assert_allclose(rolling[:, 0], 5 / 7, rtol=1e-3)
    np.testing.assert_allclose(rolling[:, 4], 50 / 7, rtol=1e-3)


def test_friction_never_feeds_a_rolling_ball():
    """erincatto/box2d#617: suspected gain of energy."""
    flat = rolls()[0]
    kinetic = 0.5 * (flat[:, :3] ** 2).sum(1) + 0.5 * 0.004 * (flat[:, 3:] ** 2).sum(1)
    assert np.diff(kinetic).max() < (1e-9 if X64 else 1e-6)


def test_a_ball_rolls_down_a_slope_at_five_sevenths_of_a_sliding_one():
    """DanielChappuis/reactphysics3d#13. 5/7 g sin(10 degrees) = 1.2168 m/s²."""
    slope = rolls()[1]
    assert np.hypot(slope[-1, 0], slope[-1, 2]) / 5 == pytest.approx(1.2168, rel=0.01)


# ---- impacts ---------------------------------------------------------------------------------------------------------


@functools.cache
def impacts(kept):
    """A cube falls 0.5 m on an equal cube; weightless, a cube hits an equal one at 1 m/s with restitution 0 and 1. 0.6 s."""

    def build(variant):
        falls, restitution = variant
        gap = 0.02 if kept else 0.0
        builder = kj.ModelBuilder() if falls else kj.ModelBuilder(gravity=(0, 0, 0))
        builder.add_plane(offset=0 if falls else -10, gap=gap)
        places = ((0, 0, 0.1), (0, 0, 0.8)) if falls else ((0, 0, 0), (0.301, 0, 0))
        speeds = ((0, 0, 0), (0, 0, 0) if falls else (-1, 0, 0))
        for name, place, speed in zip(("resting", "moving"), places, speeds, strict=True):
            cube(builder, name, 0.2, 1.0, place, velocity=speed, restitution=restitution, gap=gap)
        return builder

    config = settings(dynamics=KEPT if kept else {})
    return run(*worlds(((True, 0.0), (False, 0.0), (False, 1.0)), build), 2e-3, 300, config)


# how fast an impact is left: not at all, or gamma of its speed by the push against penetration
IMPACTS = pytest.mark.parametrize("kept, gamma", [(True, 0.0), (False, 0.01)], ids=["kept", "culled"])


@IMPACTS
def test_a_falling_cube_does_not_bounce_off_another_one(kept, gamma):
    """newton-physics/newton#1137, newton#1289: pairs of moving bodies bounced, static ones did not. Impact at 3.132 m/s."""
    record = impacts(kept)
    speed, height = record["u"][0, :, 1, 2], record["q"][0, :, 1, 2]
    hit = np.argmax(np.diff(speed) > 1.0)
    assert speed[hit] == pytest.approx(-3.132, abs=1.5 * G * 2e-3)  # a step and a half
    assert speed[hit + 1 :].max() <= 1e-3 + gamma * 3.132
    assert height[-1] == pytest.approx(0.3, abs=1e-3 + gamma * 3.132 * 0.28)  # at that speed from 0.32 s on


@IMPACTS
@pytest.mark.parametrize("restitution, speeds, share", [(0.0, (-0.5, -0.5), 0.5), (1.0, (-1.0, 0.0), 0.0)])
def test_equal_cubes_share_or_swap_their_speeds(kept, gamma, restitution, speeds, share):
    """newton-physics/newton#1289: the same normal sign on both bodies makes an inelastic impact bounce."""
    record = impacts(kept)
    np.testing.assert_allclose(record["u"][1 + int(restitution), -1, :, 0], speeds, atol=1e-3 + share * gamma)


def bouncer(shape):
    """A body of 1 kg whose lowest point is 0.5 m above a plane, restitution 0.8."""
    builder = kj.ModelBuilder()
    builder.add_plane(restitution=0.8)
    builder.add_body("body", mass=1.0, inertia=(0.004,) * 3, position=(0, 0, 0.6))
    sizes = {"sphere": (0.1,), "box": ((0.1, 0.1, 0.1),), "capsule": (0.05, 0.05)}
    getattr(builder, f"add_{shape}")("body", *sizes[shape], restitution=0.8)
    return builder.finalize()


@functools.cache
def bouncers():
    """Stacked sphere, box and capsule, their shapes padded to one layout."""
    bare = [bouncer(shape) for shape in ("sphere", "box", "capsule")]
    common = kj.common_layout(bare)
    return kj.stack([kj.pad_to(model, common) for model in bare])


IMPACT = np.sqrt(2 * G * 0.5)  # [m/s]


@functools.cache
def rebound(dt, gamma):
    """(speeds, heights the lowest points would reach) of the three shapes after the impact."""
    models = bouncers()
    states = kj.initial_state(models)
    fallen = int(0.3193 / dt) - 4  # steps before which nothing happens; semi-implicit Euler has this closed form
    z, v = 0.6 - G * dt**2 * fallen * (fallen + 1) / 2, -G * dt * fallen
    states = kj.replace(states, q=states.q.at[:, 0, 2].set(z), u=states.u.at[:, 0, 2].set(v))
    config = settings(constraints=dict(gamma=gamma))
    record = run(models, states, kj.zero_control(models), dt, 16, config)
    z, v = record["q"][:, :, 0, 2], record["u"][:, :, 0, 2]
    return v.max(1), z[:, -1] - 0.1 + v[:, -1] ** 2 / (2 * G)


@pytest.mark.parametrize("dt", [1e-2, 2e-3, 2e-4])
def test_a_bounce_depends_neither_on_the_time_step_nor_on_the_shape(dt):
    """bulletphysics/bullet3#4341: a hull stops bouncing at 0.2 ms while a box still does. 3.132 m/s, restitution 0.8."""
    speed, height = rebound(dt, 0.0)
    np.testing.assert_allclose(speed, 0.8 * IMPACT, atol=0.8 * G * dt, rtol=0.005)
    np.testing.assert_allclose(height, 0.32, atol=1.5 * IMPACT * dt, rtol=0.005)
    assert np.ptp(speed) < 1e-3 and np.ptp(height) < 1e-3


def test_a_smaller_time_step_bounces_more_precisely():
    """bulletphysics/bullet3#4341."""
    error = [np.abs(rebound(dt, 0.0)[0] - 0.8 * IMPACT).max() for dt in (2e-4, 1e-2)]
    assert error[0] < error[1]


def test_the_push_against_penetration_adds_at_most_its_share_to_a_bounce():
    """bulletphysics/bullet3#4341. The default gamma of 0.01 adds up to 0.031 m/s, the time step 0.016 m/s."""
    speed, _ = rebound(2e-3, 0.01)
    np.testing.assert_allclose(speed, 0.8 * IMPACT, atol=0.8 * G * 2e-3 + 0.01 * IMPACT, rtol=0.005)


# ---- loads -----------------------------------------------------------------------------------------------------------


RATIOS = (100.0, 1000.0)


@functools.cache
def heavy_on_light(cap):
    """A cube of 1 kg under one of 100 and of 1000 kg, up to `cap` iterations to the default tolerances: record over 3 s."""

    def build(mass):
        builder = kj.ModelBuilder()
        builder.add_plane(gap=0.005)
        cube(builder, "light", 0.2, 1.0, (0, 0, 0.1), gap=0.005)
        cube(builder, "heavy", 0.2, mass, (0, 0, 0.3), gap=0.005)
        return builder

    config = kj.Config(dynamics=kj.DynamicsConfig(**KEPT), padmm=kj.PADMMConfig(max_iterations=cap), compute_solution_metrics=True)
    look = lambda state, info: seen(state, info) | dict(error=info.metrics.solution.natmap.value)
    _, record = batched_rollout(*worlds(RATIOS, build), 5e-3, 600, config, look)
    return jax.tree.map(np.asarray, record)


DEFAULT_CAP = kj.PADMMConfig().max_iterations


@pytest.mark.parametrize("cap", [DEFAULT_CAP, 1000])
def test_a_light_cube_carries_a_heavy_one(cap):
    """dartsim/dart#3442 (sinks by its height in a second at 100:1), jrouwe/JoltPhysics#1390, godot-jolt/godot-jolt#1041."""
    record = heavy_on_light(cap)
    np.testing.assert_allclose(record["q"][:, :, 1, 2], 0.3, atol=1e-3)
    ground = on_ground(record)[:, 300:, 2].mean(1)
    np.testing.assert_allclose(ground, (1 + np.array(RATIOS)) * G, rtol=0.005)


def test_the_status_says_whether_a_heavy_stack_was_solved():
    """dartsim/dart#3442: the stack sank silently. The natural map measures a solution on its own, whatever the solver says."""
    asked = kj.PADMMConfig().dual_tolerance
    for cap in (DEFAULT_CAP, 1000):
        record = heavy_on_light(cap)
        status, error = record["status"], record["error"]
        solved = np.maximum(np.maximum(status.r_p, status.r_d), status.r_c) <= asked
        np.testing.assert_array_equal(status.converged, solved)
        np.testing.assert_array_equal(status.code, np.where(solved, 0, 1))
        assert np.all(status.iterations[~solved] == cap)
        rounding = 0 if X64 else 3e-5  # [m/s] of 49 N s on 1 kg
        assert np.all(error[solved] <= 2 * asked + rounding)
    if X64:  # float32 stalls near these tolerances
        default, more = heavy_on_light(DEFAULT_CAP), heavy_on_light(1000)
        assert default["status"].converged[0].all() and more["status"].converged.all()
        assert not default["status"].converged[1].any() and np.all(default["error"][1] > asked)
        with pytest.raises(RuntimeError, match="not converged"):
            kj.raise_if_failed(default["status"])


@functools.cache
def landing(dt):
    """A cube of 10 kg falls from 10 m and rests: record over 1500 steps."""

    def build(_):
        builder = kj.ModelBuilder()
        builder.add_plane()
        cube(builder, "cube", 0.4, 10.0, (0, 0, 10.0))
        return builder

    return run(*worlds([None], build), dt, 1500, settings())


@pytest.mark.parametrize("dt", [2e-3, 1e-2])
def test_the_contact_force_is_the_weight(dt):
    """google-deepmind/mujoco#1823, newton-physics/newton#3095 (no 1/dt), newton#2405 (four contacts gave four times the force)."""
    force = on_ground(landing(dt))[0, : round(3 / dt)]
    rest = force[-round(0.2 / dt) :]
    np.testing.assert_allclose(rest, np.broadcast_to([0, 0, 98.1], rest.shape), atol=0.1)
    np.testing.assert_allclose(force.sum(0) * dt, (0, 0, 294.3), atol=2.943)


@pytest.mark.parametrize("dt", [2e-3, 1e-2])
def test_empty_contact_slots_carry_no_force(dt):
    """newton-physics/newton#2405: stale inactive slots."""
    record = landing(dt)
    idle = ~record["contacts"].active
    assert idle.any()
    assert np.all(record["force"][idle] == 0)


# ---- detection -------------------------------------------------------------------------------------------------------


find = jax.jit(jax.vmap(kj.collide, (0, 0, None)), static_argnums=2)
FOUND = kj.Config(dynamics=kj.DynamicsConfig(**KEPT))


def z_axis(q):
    """Third column: where the z axis points."""
    return matrix(q)[:, 2]


def product(a, b):
    """Quaternion a b."""
    return np.r_[a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3]), a[3] * b[3] - a[:3] @ b[:3]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_face_contacts_survive_rotation_noise(dtype):
    """newton-physics/newton#2438, newton#3776: noise near 1e-14 rad flips ties between equal corners and axes."""
    bases = (axis_angle((0, 0, 1), 0.0), axis_angle((0, 0, 1), np.radians(30)), axis_angle((1, 0, 0), np.radians(45)))
    variants = [(base, size, axis) for base in bases for size in (1e-14, 1e-9, 1e-7) for axis in np.eye(3)]

    def build(variant):
        base, size, axis = variant
        builder = kj.ModelBuilder()
        cube(builder, "lower", 1.0, 1.0, (0, 0, 0), rotation=base, gap=1e-3)
        cube(builder, "upper", 1.0, 1.0, z_axis(base), rotation=product(axis_angle(axis, size), base), gap=1e-3)
        return builder

    models, states, _ = worlds(variants, build, dtype=np.dtype(dtype))
    contacts = jax.tree.map(np.asarray, find(models, states, FOUND))
    np.testing.assert_array_equal(contacts.active.sum(1), 4)
    single = dtype == "float32"
    for (base, _, _), active, distance, normal, point in zip(
        variants, contacts.active, contacts.distance, contacts.normal, contacts.point_b, strict=True
    ):
        np.testing.assert_allclose(normal[active], np.tile(z_axis(base), (4, 1)), atol=1e-5 if single else 1e-6)
        assert np.abs(distance[active]).max() < 1e-6
        corners = point[active]
        assert np.min(np.linalg.norm(corners[:, None] - corners, axis=-1) + 9 * np.eye(4)) > 0.9


def test_a_stack_of_cubes_stands_still():
    """newton-physics/newton#3776: a stack that loses contacts of its faces drifts. Five cubes of 0.1 m, 5 s."""

    def build(_):
        builder = kj.ModelBuilder()
        builder.add_plane(gap=1e-3)
        for i in range(5):
            cube(builder, f"cube_{i}", 0.1, 1.0, (0, 0, 0.05 + 0.1 * i), gap=1e-3)
        return builder

    models, states, controls = worlds([None], build, max_contacts=24)
    config = tight(padmm=dict.fromkeys(SMALL, 1e-6) | dict(max_iterations=1000))
    record = run(models, states, controls, 5e-3, 1000 if X64 else 300, config)
    assert np.abs(record["q"][..., :2]).max() < 1e-3
    assert np.abs(record["u"][:, -1]).max() < 1e-3
    np.testing.assert_allclose(record["q"][0, -1, :, 2], 0.05 + 0.1 * np.arange(5), atol=1e-3)


@pytest.mark.parametrize("floor", ["box", "plane"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_ball_sinking_into_a_floor_is_pushed_up_at_its_depth(floor, dtype):
    """google-deepmind/mujoco#2206: the depth changes sign once the centre is inside. Its derivative is 1 all the way."""
    builder = kj.ModelBuilder()
    if floor == "box":
        builder.add_box(None, (0.5, 0.5, 0.25), position=(0, 0, -0.255), gap=1e-3)
    else:
        builder.add_plane(offset=-0.005, gap=1e-3)
    ball(builder, "ball", 0.005, 1.0, (0, 0, 0), gap=1e-3)
    model = builder.finalize(dtype=np.dtype(dtype))
    state = kj.initial_state(model)

    def contact(z):
        found = kj.collide(model, kj.replace(state, q=state.q.at[0, 2].set(z)), FOUND)
        return found.distance[0], found

    heights = jnp.asarray(np.r_[-np.linspace(1e-6, 0.0099, 200), -0.005], dtype)
    slope, found = jax.jit(jax.vmap(jax.grad(contact, has_aux=True)))(heights)
    assert np.all(found.active.sum(1) == 1)
    np.testing.assert_allclose(found.distance[:, 0], heights, atol=1e-7)
    np.testing.assert_allclose(found.normal[:, 0], np.tile([0, 0, 1], (201, 1)), atol=1e-6)
    np.testing.assert_allclose(slope, 1, atol=1e-6)


def test_a_capsule_far_above_a_box_is_found_at_its_distance():
    """google-deepmind/mujoco#1473: a distance of 1.0 was reported. Straight above, 0.6 m; else by brute force over the axis."""
    poses = (((0, 0, 1), 0.0), ((0.25, 0, 1), 0.0), ((0.25, 0, 1), np.radians(30)))

    def build(variant):
        position, tilt = variant
        builder = kj.ModelBuilder()
        cube(builder, "box", 0.2, 1.0, (0, 0, 0), gap=100.0)
        builder.add_body("body", mass=1.0, inertia=(1, 1, 1), position=position, rotation=axis_angle((0, 1, 0), tilt))
        builder.add_capsule("body", 0.15, 0.15, gap=100.0)
        return builder

    models, states, _ = worlds(poses, build)
    found = jax.tree.map(np.asarray, find(models, states, FOUND))
    for (position, tilt), active, distance in zip(poses, found.active, found.distance, strict=True):
        axis = position + np.linspace(-0.15, 0.15, 30_001)[:, None] * (np.sin(tilt), 0, np.cos(tilt))
        expected = np.linalg.norm(axis - np.clip(axis, -0.1, 0.1), axis=1).min() - 0.15
        assert distance[active].min() == pytest.approx(expected, abs=1e-6)
    above = found.active[0]
    np.testing.assert_allclose(found.distance[0][above], 0.6, atol=1e-6)
    np.testing.assert_allclose(0.5 * (found.point_a + found.point_b)[0][above][:, 2], 0.4, atol=1e-6)
    np.testing.assert_allclose(np.abs(found.normal[0][above][:, 2]), 1, atol=1e-6)
