"""Joint problems that users of other simulators have reported, with the right answers.

Each docstring names the public report; expected numbers are closed forms or an independent RK4 integration.
"""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import EXACT, X64, axis_angle, batched_rollout, rollout, tight, wheel, with_tau, worlds

import kamino_jax as kj

FIRST_ORDER = 0.01  # relative error of semi-implicit Euler at the steps used here
RESIDUALS = ("primal_tolerance", "dual_tolerance", "compl_tolerance")
# Float32 residuals stall between 1e-7 and 1e-6
SOLVER = dict.fromkeys(RESIDUALS, 1e-11) | dict(max_iterations=5000) if X64 else dict.fromkeys(RESIDUALS, 1e-6) | dict(max_iterations=200)
# A redundant loop stalls near 1e-5 m/s in float32; alpha: share of a joint's position error removed per step
LOOPS = tight(
    constraints=dict(alpha=0.1),
    padmm=dict.fromkeys(RESIDUALS, 1e-6 if X64 else 1e-5) | dict(max_iterations=1000 if X64 else 200),
)


@functools.partial(jax.jit, static_argnames=("steps", "config", "record"))
def run_each(models, states, controls, dts, *, steps, config, record):
    """Stacked worlds, each with its own time step."""
    one = lambda m, s, c, dt: kj.rollout(m, s, lambda *_: c, dt=dt, steps=steps, config=config, record=record)
    return jax.vmap(one)(models, states, controls, dts)


def at_rate(states, rates):
    """Stacked states of hinges about y through the centre of mass, turning at these rates (worlds, bodies)."""
    return kj.replace(states, u=states.u.at[..., 4].set(jnp.asarray(rates, states.u.dtype)))


# ---- rotations in NumPy, independent of the package ------------------------------------------------------------------


def multiply(a, b):
    av, aw, bv, bw = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    return np.concatenate([aw * bv + bw * av + np.cross(av, bv), aw * bw - (av * bv).sum(-1, keepdims=True)], -1)


def conjugate(q):
    return q * (-1, -1, -1, 1)


def rotate(q, v):
    twice = 2 * np.cross(q[..., :3], v)
    return v + q[..., 3:] * twice + np.cross(q[..., :3], twice)


def with_ground(model, q, u):
    """Poses, twists and centres of mass with one more body, the resting world, so that index -1 finds it."""
    ground = np.broadcast_to([0.0, 0, 0, 0, 0, 0, 1], (*q.shape[:-2], 1, 7))
    still = np.zeros((*u.shape[:-2], 1, 6))
    return np.concatenate([q, ground], -2), np.concatenate([u, still], -2), np.vstack([model.bodies.com, np.zeros(3)])


def pin_gaps(model, q):
    """Distance between the two anchors of every joint, (steps, joints) [m]."""
    q, _, com = with_ground(model, np.asarray(q, float), np.zeros((*q.shape[:-1], 6)))
    ends = []
    for body, X in ((model.topology.base, model.joints.X_B), (model.topology.follower, model.joints.X_F)):
        body, X = np.asarray(body), np.asarray(X, float)
        ends.append(q[:, body, :3] + rotate(q[:, body, 3:], X[:, :3] - com[body]))
    return np.linalg.norm(ends[1] - ends[0], axis=-1)


def hinges(model, q, u):
    """Angles (within half a turn) and rates of a mechanism of hinges, from poses and twists, (steps, joints) each."""
    q, u, _ = with_ground(model, np.asarray(q, float), np.asarray(u, float))
    base, follower = np.asarray(model.topology.base), np.asarray(model.topology.follower)
    turned = [multiply(q[:, i, 3:], np.asarray(X, float)[:, 3:]) for i, X in ((base, model.joints.X_B), (follower, model.joints.X_F))]
    relative = multiply(conjugate(turned[0]), turned[1])
    axis = rotate(turned[0], np.array([1.0, 0, 0]))
    angle = 2 * np.arctan2(relative[..., 0], relative[..., 3])
    return wrapped(angle), (axis * (u[:, follower, 3:] - u[:, base, 3:])).sum(-1)


def wrapped(angle):
    """The same angle within half a turn."""
    return (angle + np.pi) % (2 * np.pi) - np.pi


def energy(model, q, u):
    """Kinetic plus potential energy at every step [J]."""
    q, u, bodies = np.asarray(q, float), np.asarray(u, float), model.bodies
    spin = rotate(conjugate(q[..., 3:]), u[..., 3:])
    kinetic = 0.5 * (bodies.mass * (u[..., :3] ** 2).sum(-1)).sum(-1) + 0.5 * np.einsum("tbi,bij,tbj->t", spin, bodies.inertia, spin)
    return kinetic - (bodies.mass * (q[..., :3] @ np.asarray(model.gravity))).sum(-1)


def crossings(times, values):
    """Times at which a record changes sign, by linear interpolation."""
    i = np.nonzero(np.sign(values[:-1]) * np.sign(values[1:]) < 0)[0]
    return times[i] + (times[i + 1] - times[i]) * values[i] / (values[i] - values[i + 1])


# ---- closed loops ----------------------------------------------------------------------------------------------------


PERIODS = {3: 1.7988, 2: 1.8359}  # [s] of the swing by number of cranks, amplitude 0.2 rad


@pytest.mark.parametrize("mode", ["containers", "none"], ids=["warm", "cold"])
def test_redundant_cranks_swing_at_the_period_of_the_mechanism(mode):
    """jgerstmayr/EXUDYN#39, OpenModelica/OpenModelica#8365: a rank-deficient spatial loop stops the solver or turns soft."""
    bare = [kj.scenes.parallelogram(cranks)[0] for cranks in PERIODS]
    common = kj.common_layout(bare)
    models = kj.stack([kj.pad_to(model, common) for model in bare])
    config = kj.replace(LOOPS, padmm=kj.replace(LOOPS.padmm, warmstart_mode=mode))
    dt, steps = 1e-3, 5_000 if mode == "containers" else 2_000
    states, controls = kj.initial_state(models), kj.zero_control(models)
    _, seen = batched_rollout(models, states, controls, dt, steps, config, ("q", "lam", "status"))
    assert np.all(np.isfinite(seen["lam"]))
    if X64:
        assert np.all(seen["status"].converged)
    for model, q, period in zip(bare, np.asarray(seen["q"]), PERIODS.values(), strict=True):
        q = q[:, : model.layout.nb]
        half_periods = np.diff(crossings(dt * np.arange(1, steps + 1), q[:, 0, 0] - 0.5))
        assert 2 * half_periods.mean() == pytest.approx(period, rel=FIRST_ORDER)
        assert pin_gaps(model, q).max() < 1e-4
        assert np.abs(q[..., 1]).max() < 1e-6  # out of the plane


@functools.cache
def long_crank_rocker():
    """10 s of the falling crank-rocker: model, times, record."""
    model, state, _ = kj.scenes.crank_rocker()
    dt, steps = 5e-4, 20_000
    _, seen = rollout(model, state, dt=dt, steps=steps, config=LOOPS, record=("q", "u", "joint_q", "status"))
    return model, dt * np.arange(1, steps + 1), seen


def test_a_crank_rocker_falls_as_an_independent_integration_says():
    """JuliaRobotics/RigidBodyDynamics.jl#480. RK4 reference; the crank angle is counted from x towards z, the hinge about y."""
    model, times, seen = long_crank_rocker()
    angle = np.interp((0.25, 0.5, 0.75, 1.0), times, np.pi / 2 - seen["joint_q"][:, 0])
    np.testing.assert_allclose(angle, (1.6928, 2.2475, 4.6471, 6.4981), atol=0.02)


def test_a_closed_loop_does_not_drift_open():
    """JuliaRobotics/RigidBodyDynamics.jl#480: closed at velocity level only, the gap grows without bound and ends in NaN."""
    model, times, seen = long_crank_rocker()
    gap, total = pin_gaps(model, seen["q"]).max(1), energy(model, seen["q"], seen["u"])
    assert gap.max() < 1e-4
    assert gap[times > 8].max() <= 2 * gap[times <= 2].max()
    before = energy(model, np.asarray(model.start.q)[None], np.asarray(model.start.u)[None])[0]
    assert before == pytest.approx(8.88502, abs=1e-5)
    assert total.max() < 1.01 * before


PINS = {"A": (0.0, 0.0), "B": (0.0, 0.3), "C": (0.8719034, 0.7896780), "D": (1.0, 0.0)}
ENDS = {"A": (None, "crank"), "B": ("crank", "coupler"), "C": ("coupler", "rocker"), "D": (None, "rocker")}
ORDERS = ("ABDC", "ABCD", "ADCB", "DCBA")  # in which the joints are added; the last one closes the loop
SWAPS = ("C", "CB")  # joints that run from child to parent, each with the last order


def four_bar(order, flipped):
    """The crank-rocker without gravity; hinges count from x towards z. Joint C has a motor's inertia and a limit."""
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    for name, (a, b) in {"crank": "AB", "coupler": "BC", "rocker": "DC"}.items():
        (x, z), (x_end, z_end) = PINS[a], PINS[b]
        length = np.hypot(x_end - x, z_end - z)
        across = length**3 / 12  # 1 kg/m
        middle, turn = ((x + x_end) / 2, 0, (z + z_end) / 2), axis_angle((0, -1, 0), np.arctan2(z_end - z, x_end - x))
        builder.add_body(name, mass=length, inertia=(2e-4, across, across), position=middle, rotation=turn)
    for joint in order:
        ends = ENDS[joint][::-1] if joint in flipped else ENDS[joint]
        knee = dict(limits=(-0.3, 0.3), armature=0.01) if joint == "C" else {}
        axis = (0, 1, 0) if joint in flipped else (0, -1, 0)
        builder.add_revolute(*ends, name=joint, at=(PINS[joint][0], 0, PINS[joint][1]), axis=axis, **knee)
    return builder


@functools.cache
def driven_loops():
    """1 s of all variants with 2 N m on joint C: (models, number of joint C in each), record (worlds, steps, ...)."""
    variants = [(order, "") for order in ORDERS] + [(ORDERS[-1], swapped) for swapped in SWAPS]
    models, states, controls = worlds(variants, lambda variant: four_bar(*variant))
    knees = [order.index("C") for order, _ in variants]
    efforts = 2.0 * np.eye(4)[knees]
    small = dict.fromkeys(RESIDUALS, 1e-9 if X64 else 1e-6)
    config = tight(constraints=dict(alpha=0.1), padmm=small | dict(max_iterations=1000))
    record = ("q", "u", "joint_q", "joint_qd")
    _, seen = batched_rollout(models, states, with_tau(controls, efforts), 1e-3, 1000, config, record)
    return kj.unstack(models), knees, {name: np.asarray(x) for name, x in seen.items()}


def test_a_loop_moves_the_same_whichever_joint_closes_it():
    """newton-physics/newton#2428: tree formulations turn the last joint into bare point constraints."""
    _, _, seen = driven_loops()
    q, u = (seen[name][: len(ORDERS)] for name in "qu")
    assert np.ptp(q, axis=0).max() < (1e-12 if X64 else 1e-5)
    assert np.ptp(u, axis=0).max() < (1e-10 if X64 else 1e-3)


def test_parent_and_child_of_a_loop_joint_may_swap():
    """newton-physics/newton#2428. A hinge acts at the parent's anchor, so the two forms differ by the gap, and no more."""
    models, _, seen = driven_loops()
    q, u = (seen[name][len(ORDERS) - 1 :] for name in "qu")
    gap = pin_gaps(models[0], seen["q"][0]).max()
    assert np.ptp(q, axis=0).max() < max(gap, 1e-5 if not X64 else 0)
    assert np.ptp(u, axis=0).max() < 1e-3


def test_every_joint_of_a_loop_is_read_from_its_bodies():
    """newton-physics/newton#2428: the state of the loop-closing joint was dropped, later joints shifted."""
    models, _, seen = driven_loops()
    for w, model in enumerate(models):
        angle, rate = hinges(model, seen["q"][w], seen["u"][w])
        np.testing.assert_allclose(wrapped(seen["joint_q"][w] - angle), 0, atol=1e-12 if X64 else 1e-5)
        np.testing.assert_allclose(seen["joint_qd"][w], rate, atol=1e-11 if X64 else 1e-4)


def test_a_limit_holds_on_the_joint_that_closes_the_loop():
    """newton-physics/newton#2428. A limit acts once violated: one step of overshoot, then recovery."""
    _, knees, seen = driven_loops()
    for w, knee in enumerate(knees):
        angle, rate = seen["joint_q"][w, :, knee], seen["joint_qd"][w, :, knee]
        assert 0.3 < angle.max() <= 0.3 + rate.max() * 1e-3
        assert angle[-1] == pytest.approx(0.3, abs=1e-3)


# ---- hinge angles and limits -----------------------------------------------------------------------------------------


LOW, HIGH = np.radians((-200.0, 45.0))
INERTIAS = (1e-4, 1e-2, 1.0)


@functools.cache
def at_limits(speed):
    """Hinges at their limits with this recovery speed: angles and rates (world, 2000 steps), twice.

    World 0, range -200 to 45 degrees, steps of 1 ms: pushed down from rest, then up. The others, one per inertia, steps of 2 ms: they
    run into 0.5 rad at 10 rad/s.
    """
    hinges = [wheel(0.05, limits=(LOW, HIGH)), *(wheel(inertia, limits=(-1.0, 0.5)) for inertia in INERTIAS)]
    models, states, controls = worlds(hinges, lambda hinge: hinge)
    states, seen = at_rate(states, [[0.0], [10.0], [10.0], [10.0]]), []
    config, dts = tight(padmm=SOLVER, constraints=dict(limit_recovery_speed=speed)), jnp.asarray([1e-3, 2e-3, 2e-3, 2e-3], models.dtype)
    for effort in (-0.5, 0.5):
        pushed = with_tau(controls, [effort, 0, 0, 0])
        states, record = run_each(models, states, pushed, dts, steps=2000, config=config, record=("joint_q", "joint_qd"))
        seen.append(tuple(np.asarray(record[name])[..., 0] for name in ("joint_q", "joint_qd")))
    return seen


def wide_hinge():
    """Angle and rate (steps,) of the wide hinge by the limit that it is pushed to."""
    return {limit: (angle[0], rate[0]) for limit, (angle, rate) in zip((LOW, HIGH), at_limits(np.inf), strict=True)}


def test_a_hinge_turns_continuously_past_half_a_turn():
    """NVIDIA/warp#182: an angle rebuilt from poses jumps at half a turn. 10 rad/s² for 200 degrees: 0.8355 s, 8.355 rad/s."""
    record = wide_hinge()
    for angle, rate in record.values():
        assert np.abs(np.diff(angle)).max() <= np.abs(rate).max() * 1e-3 + EXACT
    angle, rate = record[LOW]
    reached = crossings(1e-3 * np.arange(1, 2001), angle - LOW)[0]
    assert reached == pytest.approx(0.8355, abs=1e-3)  # a step
    assert rate.min() == pytest.approx(-8.355, abs=0.01)  # a step of 10 rad/s²


def test_limits_beyond_half_a_turn_hold():
    """NVIDIA/warp#182: the range -200 to 45 degrees worked at 45 and broke near -180."""
    for limit, (angle, rate) in wide_hinge().items():
        beyond = (angle - limit) * np.sign(limit)
        assert 0 < beyond.max() <= np.abs(rate).max() * 1e-3
        assert np.degrees(angle[-1]) == pytest.approx(np.degrees(limit), abs=0.1)


X, Y, Z = np.eye(3)
# options, and per coordinate: (axis, moves along it rather than about it)
JOINTS = {
    "revolute": (dict(axis="z"), [(Z, False)]),
    "prismatic": (dict(axis="z"), [(Z, True)]),
    "cylindrical": (dict(axis="z"), [(Z, True), (Z, False)]),
    "universal": ({}, [(X, False), (Y, False)]),
    "gimbal": ({}, [(X, False), (Y, False), (Z, False)]),
    "spherical": ({}, [(X, False), (Y, False), (Z, False)]),
}
SMALL_AND_LARGE = (1e-4, -1e-4, 5e-4, -5e-4, 4.0, -4.0)
READING = {"float32": 2e-6, "float64": 1e-12}  # [rad, m] rounding of unit quaternions at an angle of 4 rad
read_joints = jax.jit(jax.vmap(kj.joint_state, (None, 0)))


def displaced(kind, axis, along, value):
    """Pose of the joint's body, and the coordinates, after moving one coordinate to a value."""
    _, moves = JOINTS[kind]
    pose = np.r_[value * axis, 0, 0, 0, 1] if along else np.r_[0, 0, 0, axis_angle(axis, value)]
    if kind == "spherical":
        return pose, pose[3:]
    return pose, np.array([value if a is axis and b == along else 0.0 for a, b in moves])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", JOINTS)
def test_tiny_and_large_joint_angles_are_read_back(kind, dtype):
    """newton-physics/newton#3706: an arc cosine reads 0 for ±1e-4 rad in float32. The last coordinate was 5 % smaller."""
    if dtype == "float64" and not X64:
        pytest.skip("JAX runs in single precision")
    options, moves = JOINTS[kind]
    builder = kj.ModelBuilder()
    builder.add_body("body", mass=1.0, inertia=(1, 1, 1))
    builder.add_joint(kind, None, "body", at=(0, 0, 0), **options)
    model = builder.finalize(dtype=np.dtype(dtype))
    variants = [(axis, along, value) for (axis, along), value in itertools.product(moves, SMALL_AND_LARGE)]
    poses, expected = zip(*(displaced(kind, *variant) for variant in variants), strict=True)
    _, before = zip(*(displaced(kind, axis, along, 0.95 * value) for axis, along, value in variants), strict=True)
    states = kj.stack([kj.initial_state(model)] * len(variants))
    states = kj.replace(states, q=jnp.asarray(poses, dtype)[:, None], joint_q=jnp.asarray(before, dtype))
    seen, _ = read_joints(model, states)
    assert seen.dtype == dtype
    small = np.abs([value for _, _, value in variants]) < 1
    np.testing.assert_allclose(seen[~small], np.array(expected)[~small], atol=READING[dtype])
    np.testing.assert_allclose(seen[small], np.array(expected)[small], atol=READING[dtype] / 2)


@pytest.mark.parametrize("speed", [np.inf, 0.01])
def test_a_limit_stops_light_and_heavy_hinges_alike(speed):
    """newton-physics/newton#4099: a limit modelled as a spring scaled by inertia was under-damped and blew up.

    10 rad/s into a hard limit: one step of overshoot, left at beta times the rate or at the recovery speed, then force-free.
    """
    angle, rate = (x[1:, :500] for x in at_limits(speed)[0])  # 1 s
    assert np.all((angle.max(1) > 0.5) & (angle.max(1) <= 0.5 + 10 * 2e-3 + EXACT))
    after = angle.argmax(1).max() + 1
    left_at = min(0.01 * 10, speed)
    rounding = EXACT if X64 else 1e-5  # of 10 rad/s
    assert np.all((rate[:, after:] >= -left_at - rounding) & (rate[:, after:] <= rounding))
    free = angle[:, after:-1] < 0.5
    assert np.all(np.abs(np.diff(rate[:, after:]))[free] <= rounding)
    assert np.ptp(angle, axis=0).max() < 1e-4


# ---- drives and friction ---------------------------------------------------------------------------------------------


DRIVE = dict(drive="position", kp=1000.0, kd=10.0, effort_max=5.0)
STIFF = dict(drive="position", kp=2000.0, kd=0.0, target=0.02)
ARMATURE = dict(friction=0.5, armature=0.01)  # together with 0.01 kg m² of the wheel as heavy as the others


def arm(**dof):
    """2 kg at 0.5 m, inertia 1 kg m² about the hinge, horizontal: the weight turns it with 9.81 N m."""
    builder = kj.ModelBuilder()
    builder.add_body("arm", mass=2.0, inertia=(0.5,) * 3, com=(0.5, 0, 0))
    builder.add_revolute(None, "arm", at=(0, 0, 0), axis="y", **dof)
    return builder


def wheel_and_other():
    """Two hinges that have nothing to do with each other; the second one has limits."""
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    for name, limits in (("wheel", None), ("other", (-0.5, 0.5))):
        builder.add_body(name, mass=0.5, inertia=(0.02,) * 3)
        builder.add_revolute(None, name, at=(0, 0, 0), axis="y", limits=limits)
    return builder


COARSE, FINE = 1e-2, 1e-3
# builder, time step [s], rates at the start [rad/s], effort [N m]
MECHANISMS = {
    "other at rest": (wheel_and_other(), 2e-3, (100.0, 0.0), 0.0),
    "other at its limit": (wheel_and_other(), 2e-3, (100.0, 3.0), 0.0),
    "saturated": (wheel(0.1, target=1.0, **DRIVE), FINE, (0.0,), 0.0),
    "limit 30": (wheel(0.1, effort_max=30.0, **STIFF), COARSE, (5.0,), 0.0),
    "limit 15": (wheel(0.1, effort_max=15.0, **STIFF), COARSE, (5.0,), 0.0),
    "loaded": (arm(**DRIVE), FINE, (0.0,), 0.0),
}
for dt in (COARSE, FINE):
    MECHANISMS |= {
        ("stuck", dt): (wheel(0.02, friction=0.5), dt, (0.0,), 0.4),
        ("stuck, armature", dt): (wheel(0.01, **ARMATURE), dt, (0.0,), 0.4),
        ("stuck, drive", dt): (wheel(0.02, friction=0.5, drive="position", kp=1.0, target=0.4), dt, (0.0,), 0.0),
        ("slips", dt): (wheel(0.02, friction=0.5), dt, (0.0,), 0.7),
        ("slips, armature", dt): (wheel(0.01, **ARMATURE), dt, (0.0,), 0.7),
        ("coasts", dt): (wheel(0.02, friction=0.5), dt, (10.0,), 0.0),
        ("coasts, armature", dt): (wheel(0.01, **ARMATURE), dt, (10.0,), 0.0),
    }


@functools.cache
def mechanisms():
    """Angles, rates (1024 steps, joints) and drive efforts (1024 steps) of every mechanism by name."""
    builders, dts, rates, efforts = zip(*MECHANISMS.values(), strict=True)
    bare = [builder.finalize() for builder in builders]
    common = kj.common_layout(bare)
    models = kj.stack([kj.pad_to(model, common) for model in bare])
    states = at_rate(kj.initial_state(models), [np.pad(r, (0, 2 - len(r))) for r in rates])
    controls = with_tau(kj.zero_control(models), [(effort, 0.0) for effort in efforts])
    config = tight(padmm=SOLVER, rotation_correction="continuous", constraints=dict(alpha=0.1, limit_recovery_speed=0.0))
    record = ("joint_q", "joint_qd", "lam")
    _, seen = run_each(models, states, controls, jnp.asarray(dts, models.dtype), steps=1024, config=config, record=record)
    angle, rate, lam = (np.asarray(seen[name]) for name in record)
    effort = lam[..., common.rows.effort.start] / np.array(dts)[:, None]
    return {name: (angle[i], rate[i], effort[i]) for i, name in enumerate(MECHANISMS)}


def test_a_limit_does_not_touch_another_mechanism():
    """google-deepmind/mujoco#1130: a wheel at 100 rad/s slowed down because of another hinge's limit."""
    (calm, rate, _), (hit, _, _) = mechanisms()["other at rest"], mechanisms()["other at its limit"]
    single_sum = 5e-6  # relative rounding of 1024 float32 sums
    np.testing.assert_allclose(calm[-1, 0], 204.8, rtol=1e-6 if X64 else single_sum)
    np.testing.assert_allclose(rate[-1, 0], 100.0, rtol=1e-9 if X64 else single_sum)
    assert np.abs(calm[:, 1]).max() <= EXACT
    assert 0.5 < hit[-1, 1] <= 0.5 + 3 * 2e-3
    np.testing.assert_allclose(calm[:, 0], hit[:, 0], atol=1e-9 if X64 else 2e-4)


def test_a_limited_drive_never_exceeds_its_effort():
    """newton-physics/newton#3936: kp 1000 over 1 rad would give 1000 N m; 5 N m on 0.1 kg m² are 50 rad/s²."""
    _, rate, effort = mechanisms()["saturated"]
    acceleration = np.diff(rate[:, 0], prepend=0) / FINE
    assert acceleration[0] == pytest.approx(50.0, rel=EXACT)
    assert np.abs(effort).max() <= 5 + EXACT
    np.testing.assert_allclose(effort, 0.1 * acceleration, atol=1e-6 if X64 else 5e-3)  # rounding of the rate / dt
    assert effort.min() < -4  # it also brakes


@pytest.mark.parametrize("name, rate, effort", [("limit 30", 3.0, -20.0), ("limit 15", 3.5, -15.0)])
def test_a_drive_saturates_on_the_implicit_effort_not_on_the_explicit_estimate(name, rate, effort):
    """newton-physics/newton#3936, newton#3990: clamping the explicit 40 N m first gives 8.0 and 6.5 rad/s."""
    _, rates, efforts = mechanisms()[name]
    assert rates[0, 0] == pytest.approx(rate, abs=10 * EXACT)
    assert efforts[0] == pytest.approx(effort, rel=10 * EXACT)


def test_a_saturated_drive_lets_the_load_fall():
    """newton-physics/newton#3990: 9.81 N m of weight against 5 N m, from 0.05 to 0.1 s."""
    _, rate, _ = mechanisms()["loaded"]
    assert (rate[99, 0] - rate[49, 0]) / 0.05 == pytest.approx(4.81, rel=0.005)


def rubbing(what):
    """(name, dt, angle, rate) of all wheels with 0.5 N m of dry friction that do this."""
    for name, (angle, rate, _) in mechanisms().items():
        if isinstance(name, tuple) and name[0].startswith(what):
            yield str(name), name[1], angle[:, 0], rate[:, 0]


def test_dry_friction_holds_a_joint_for_good():
    """RobotLocomotion/drake#2537, newton-physics/newton#3966: a smoothed law creeps. 0.4 of 0.5 N m."""
    for name, dt, angle, _ in rubbing("stuck"):
        solver = 1e-6 * 1024 * dt  # float32: the residual [rad/s] that was asked for, over the whole run
        assert np.abs(angle).max() < (1e-9 if X64 else solver), name


def test_dry_friction_takes_its_torque_and_no_more():
    """newton-physics/newton#3966: (0.7 - 0.5) N m on 0.02 kg m²."""
    for name, dt, _, rate in rubbing("slips"):
        np.testing.assert_allclose(rate, 10 * dt * np.arange(1, 1025), rtol=1e-8 if X64 else 1e-4, err_msg=name)


def test_dry_friction_brakes_linearly_and_then_holds():
    """dartsim/dart#311: friction treated as an impulse depends on the step. 10 rad/s at 25 rad/s²: 0.4 s, 2 rad."""
    for name, dt, angle, rate in rubbing("coasts"):
        stop = round(0.4 / dt)
        np.testing.assert_allclose(rate[: stop - 1], 10 - 25 * dt * np.arange(1, stop), atol=1e-7 if X64 else 1e-4, err_msg=name)
        assert np.abs(rate[stop:]).max() <= (1e-9 if X64 else 1e-5), name
        assert angle[-1] == pytest.approx(2.0, abs=10 * dt), name
