"""Golden numbers: single steps whose result is known to six digits or more (Newton 1.8.0 and closed forms).

Tolerance 2e-6 relative unless named: the figures are float32 output rounded to seven digits.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from support import EXACT, KEPT, X64, ball, rollout, set_hinge, start, step, tight, wheel, with_tau, with_wrench

import kamino_jax as kj

PRINTED = dict(rtol=2e-6, atol=2e-6)

FREE_BODY = {
    "euler": (
        (1.05, 2, 2, 2.8132603, 8.1174130, 6.0630600),
        (0.105, 0.2, 0.2, 0.1342717, 0.3874290, 0.2893786, 0.8649451),
    ),
    "moreau": (
        (1.05, 2, 2, 2.1178680, 7.2956877, 7.2700815),
        (0.1025, 0.2, 0.25, 0.1744274, 0.3304765, 0.3260650, 0.8683560),
    ),
}


@pytest.mark.parametrize("integrator", FREE_BODY)
def test_a_free_spinning_body_follows_both_integrators(integrator):
    builder = kj.ModelBuilder(gravity=(0, 0, -10))
    builder.add_body("a", mass=2.0, inertia=(0.2, 0.3, 0.4), velocity=(1, 2, 3), angular_velocity=(5, 6, 7))
    model, state, control = start(builder)
    after, info = step(model, state, with_wrench(control, (1, 0, 0, 0, 0.1, 0)), dt=0.1, config=tight(integrator=integrator))
    u, q = FREE_BODY[integrator]
    np.testing.assert_allclose(after.u[0], u, **PRINTED)
    np.testing.assert_allclose(after.q[0], q, **PRINTED)
    assert info.status.converged


def pendulum(inertia=(0.1, 0.2, 0.3)):
    builder = kj.ModelBuilder()
    builder.add_body("rod", mass=2.0, inertia=inertia, com=(0.5, 0, 0))
    builder.add_revolute(None, "rod", at=(0, 0, 0), axis="y")
    return builder


def test_two_pendulum_steps_give_rates_and_hinge_forces():
    model, state, _ = start(pendulum())
    for rate, force in ((0.1401427, (0, 5.6057086, 0, 0, 0)), (0.2802852, (0, 5.605756, -0.0393747, 0, 0))):
        state, info = step(model, state, dt=0.01, config=tight())
        np.testing.assert_allclose(kj.joint_state(model, state)[1], [rate], **PRINTED)
        np.testing.assert_allclose(info.lam / 0.01, force, rtol=2e-6, atol=2e-5)


LONG_PENDULUM = {25: (0.4513741, 3.4198892), 50: (1.6009701, 5.1414976), 75: (2.693335, 3.1931207), 100: (3.063892, -0.146184)}


def test_a_pendulum_with_default_recovery_swings_and_drifts_as_recorded():
    model, state, _ = start(pendulum((0.1, 0.2, 0.25)))
    _, seen = rollout(model, state, dt=0.01, steps=100, config=tight(), record=("joint_q", "joint_qd"))
    for k, (angle, rate) in LONG_PENDULUM.items():
        # 100 float32 steps of the recording
        np.testing.assert_allclose((seen["joint_q"][k - 1, 0], seen["joint_qd"][k - 1, 0]), (angle, rate), atol=2e-4)


# Driven hinge: I = 1, m = 1, com (.5, 0, 0), q = .1, dq = .7, effort .3, targets .5 and .9, h = .01
PD = dict(kp=100.0, kd=3.0)
DRIVEN = {
    "plain": ({}, 0.7024),
    "armature": (dict(armature=0.4), 0.7018182),
    "damping": (dict(damping=2.0), 0.6913386),
    "position": (dict(drive="position", **PD), 0.9906976),
    "velocity": (dict(drive="velocity", kd=3.0), 0.7070312),
    "position and velocity": (dict(drive="position_velocity", **PD), 1.0116279),
    "effort, armature, effort limit": (dict(drive="effort", armature=0.4, effort_max=0.2), 0.7012121),
    "no drive, effort limit": (dict(effort_max=0.2), 0.7016),
    "saturated drive, armature, damping, friction": (
        dict(drive="position_velocity", **PD, effort_max=10.0, armature=0.4, damping=2.0, friction=0.25),
        0.75,
    ),
    "drive within its limit": (
        dict(drive="position_velocity", **PD, effort_max=1000.0, armature=0.4, damping=2.0, friction=0.25),
        0.9254386,
    ),
    "drive mass at the floor": (dict(drive="velocity", kd=1e-6), 0.6999995),
}


@pytest.mark.parametrize("case", DRIVEN)
def test_a_driven_hinge_reaches_the_closed_form_rate(case):
    dof, rate = DRIVEN[case]
    com = (0.5, 0, 0)
    model, state, control = start(wheel(1.0, com=com, rate=0.7, **dof))
    effort = 0.0 if "floor" in case else 0.3
    control = kj.replace(with_tau(control, [effort]), q_ref=control.q_ref + 0.5, u_ref=control.u_ref + 0.9)
    after, info = step(model, set_hinge(state, 0.1, com), control, dt=0.01, config=tight())
    np.testing.assert_allclose(kj.joint_state(model, after)[1], [rate], **PRINTED)
    assert info.status.converged


def test_joint_rows_share_the_load_as_recorded():
    dof = dict(drive="position_velocity", **PD, armature=0.4, damping=2.0, friction=0.25)
    for limit, forces in ((10.0, (-3.5, -0.25, 10.0)), (1000.0, (-10.868, -0.25, 39.298))):
        model, state, control = start(wheel(1.0, com=(0.5, 0, 0), rate=0.7, effort_max=limit, **dof))
        control = kj.replace(with_tau(control, [0.3]), q_ref=control.q_ref + 0.5, u_ref=control.u_ref + 0.9)
        _, info = step(model, set_hinge(state, 0.1, (0.5, 0, 0)), control, dt=0.01, config=tight())
        rows = model.layout.rows
        seen = [info.lam[family][0] / 0.01 for family in (rows.dynamic, rows.friction, rows.effort)]
        np.testing.assert_allclose(seen, forces, rtol=5e-5)  # printed to five digits


LIMITS = {
    "lower": (dict(limits=(0.2, 9)), -0.7, 0.1, 100.0),
    "upper": (dict(limits=(-9, 0.05)), 0.7, -0.05, 93.75),
    "both violated: the lower acts": (dict(limits=(0.2, 0.2)), 0.7, 0.7, 0.0),
}


@pytest.mark.parametrize("case", LIMITS)
def test_a_violated_limit_turns_the_hinge_back(case):
    dof, rate, after_rate, force = LIMITS[case]
    com = (0.5, 0, 0)
    model, state, _ = start(wheel(1.0, com=com, rate=rate, **dof))
    if "both" in case:
        model = kj.replace(model, joints=kj.replace(model.joints, q_max=model.joints.q_max * 0 + 0.05))
    after, info = step(model, set_hinge(state, 0.1, com), dt=0.01, config=tight())
    np.testing.assert_allclose(kj.joint_state(model, after)[1], [after_rate], **PRINTED)
    np.testing.assert_allclose(info.lam[model.layout.rows.limit] / 0.01, [force], rtol=2e-5, atol=1e-4)


def test_a_compliant_limit_pushes_back_like_a_spring():
    dof = dict(limits=(-9, 0.05), limit_stiffness=500.0, limit_damping=20.0)
    model, state, _ = start(wheel(1.0, com=(0.5, 0, 0), rate=0.7, **dof))
    config = tight(constraints=dict(limit_compliance=True))
    after, info = step(model, set_hinge(state, 0.1, (0.5, 0, 0)), dt=0.01, config=config)
    np.testing.assert_allclose(kj.joint_state(model, after)[1], [0.4166667], **PRINTED)
    np.testing.assert_allclose(info.lam[-1] / 0.01, 35.417, rtol=2e-5)


def ball_joint(**dof):
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("ball", mass=1.0, inertia=(1, 1, 1))
    builder.add_spherical(None, "ball", at=(0, 0, 0), **dof)
    return start(builder)


def quaternion(v):
    angle = np.linalg.norm(v)
    return np.r_[np.asarray(v) / angle * np.sin(angle / 2), np.cos(angle / 2)]


def test_a_ball_drive_turns_along_the_rotation_vector_of_its_error():
    model, state, control = ball_joint(drive="position", kp=100.0, kd=2.0)
    target = quaternion((0.3, -0.5, 0.1))
    control = kj.replace(control, q_ref=jnp.asarray(target, control.q_ref.dtype))
    after, _ = step(model, state, control, dt=0.01, config=tight())
    np.testing.assert_allclose(after.u[0, 3:], (0.2912621, -0.4854367, 0.0970874), **PRINTED)


def test_ball_limits_act_on_the_rotation_vector():
    model, state, _ = ball_joint(limits=(-0.2, 0.2))
    q = jnp.asarray(np.r_[0, 0, 0, quaternion((0.3, -0.5, 0.1))][None], state.q.dtype)
    after, info = step(model, kj.replace(state, q=q), dt=0.01, config=tight())
    np.testing.assert_allclose(after.u[0, 3:], (-0.1, 0.3, 0), **PRINTED)
    assert np.count_nonzero(np.asarray(info.lam[model.layout.rows.limit])) == 2


def ball_on_plane(position=(0, 0, 0.1), velocity=(0, 0, 0), gravity=(0, 0, -10), **material):
    builder = kj.ModelBuilder(gravity=gravity)
    builder.add_plane(None, **material)
    ball(builder, "ball", 0.1, 1.0, position, velocity=velocity, **material)
    return start(builder)


# z of the centre, velocity, material, gravity -> velocity after one step of 0.01 s
IMPACTS = {
    "slides": ((0.1, (5, 0, 0), dict(mu=0.3), -10), {0: 4.97}),
    "impact adds to friction": ((0.1, (5, 0, -1), dict(mu=0.3), -10), {0: 4.67}),
    "penetration recovery adds to friction": ((0.09, (5, 0, 0), dict(mu=0.3), -10), {0: 4.967}),
    "bounce adds to friction": ((0.1, (5, 0, -1), dict(mu=0.3, restitution=0.5), -10), {0: 4.52, 2: 0.5}),
    "bounces": ((0.1, (0, 0, -1), dict(mu=0.0, restitution=0.5), -10), {2: 0.5}),
    "restitution also pulls a separating contact back": ((0.1, (0, 0, 1), dict(mu=0.0, restitution=0.5), -200), {2: -0.5}),
    "elastic contacts are not pushed out": ((0.09, (0, 0, -1), dict(mu=0.0, restitution=1.0), -10), {2: 1.0}),
    "a kept gap cancels a bounce": ((0.105, (0, 0, -1), dict(mu=0.0, restitution=0.5, gap=0.01), 0), {2: 0.0001}),
    "an elastic contact bounces at a distance": ((0.105, (0, 0, -0.2), dict(mu=0.0, restitution=1.0, gap=0.01), 0), {2: 0.2}),
    "penetration is left at gamma": ((0.095, (0, 0, -0.2), dict(mu=0.0), 0), {2: 0.0049989}),
}


@pytest.mark.parametrize("case", IMPACTS)
def test_a_ball_leaves_the_plane_as_computed(case):
    (z, velocity, material, g), expected = IMPACTS[case]
    model, state, _ = ball_on_plane((0, 0, z), velocity, (0, 0, g), **material)
    after, info = step(model, state, dt=0.01, config=tight(dynamics=KEPT))
    for axis, value in expected.items():
        # float32: a spin of 10 rad/s leaves 5e-6 of rounding
        np.testing.assert_allclose(after.u[0, axis], value, rtol=3e-5, atol=3e-6 if X64 else 2e-5)
    assert info.status.converged or not X64  # float32 residuals of a 1 m/s impact stall above 1e-7


def test_a_culled_gap_does_not_brake():
    model, state, _ = ball_on_plane((0, 0, 0.105), (0, 0, -1), (0, 0, 0), mu=0.0, restitution=0.5, gap=0.01)
    after, info = step(model, state, dt=0.01, config=tight())
    assert float(after.u[0, 2]) == -1.0
    assert not bool(info.contacts.active.any())


def test_margins_shift_the_distance_and_a_rolling_contact_sticks():
    material = dict(mu=0.5, margin=0.003)
    model, state, _ = ball_on_plane((0, 0, 0.104), (1, 0, -0.5), **material)
    after, info = step(model, state, dt=0.01, config=tight())
    contact = info.contacts
    np.testing.assert_allclose(contact.distance, [-0.002], atol=EXACT)
    np.testing.assert_allclose(contact.point_a, [[0, 0, 0]], atol=EXACT)
    np.testing.assert_allclose(contact.point_b, [[0, 0, 0.004]], atol=EXACT)
    np.testing.assert_allclose(after.u[0, [0, 2, 4]], (0.7142857, 0.0019995, 7.142856), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(info.lam / 0.01, (-28.5714, 0, 60.19995), rtol=1e-5, atol=2e-4)
    np.testing.assert_allclose(info.v_plus, np.zeros(3), atol=2e-6)


BOUNCE_AND_SLIDE = {
    10: dict(x=0.2, z=0.245, v_z=-1.0),
    20: dict(x=0.4, z=0.09, v_z=-2.0),
    30: dict(x=0.5428573, z=0.146, v_x=1.4285715, v_z=0.11, w_y=14.285712),
    40: dict(x=0.6857147, z=0.102, v_z=-0.89),
    50: dict(x=0.8285717, z=0.1013609, v_z=-0.2971),
    60: dict(x=0.9714285, z=0.099786, v_z=0.0033483),
}


def test_a_thrown_ball_bounces_and_rolls_as_recorded():
    model, state, _ = ball_on_plane((0, 0, 0.3), (2, 0, 0), mu=0.3, restitution=0.5, gap=0.01)
    _, seen = rollout(model, state, dt=0.01, steps=60, config=tight())
    for k, expected in BOUNCE_AND_SLIDE.items():
        q, u = seen["q"][k - 1, 0], seen["u"][k - 1, 0]
        now = dict(x=q[0], z=q[2], v_x=u[0], v_z=u[2], w_y=u[4])
        for name, value in expected.items():
            np.testing.assert_allclose(now[name], value, atol=2e-5, err_msg=f"{name} after {k} steps")


def two_balls():
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    for sign, name in ((-1, "left"), (1, "right")):
        builder.add_body(
            name, mass=1.0, inertia=(0.004,) * 3, com=(0, 0, 0.02), position=(0.095 * sign, 0, 0), velocity=(-sign, 0, -0.3 * sign)
        )
        builder.add_sphere(name, 0.1, mu=0.5)
    return start(builder)


def test_two_balls_with_offset_centres_exchange_the_recorded_impulse():
    model, state, _ = two_balls()
    after, info = step(model, state, dt=0.01, config=tight())
    contact = info.contacts
    assert contact.body_a[0] == 0 and contact.body_b[0] == 1
    np.testing.assert_allclose(contact.point_a[0], (0.005, 0, 0), atol=EXACT)
    np.testing.assert_allclose(contact.point_b[0], (-0.005, 0, 0), atol=EXACT)
    np.testing.assert_allclose(info.lam / 0.01, (0, 8.57143, 91.36359), rtol=1e-5, atol=1e-4)
    np.testing.assert_allclose(after.u[0], (0.0863642, 0, 0.2142857, 0, 6.7110367, 0), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(after.u[1], (-0.0863642, 0, -0.2142857, 0, -2.4253213, 0), rtol=1e-5, atol=1e-5)


def test_effort_on_a_free_joint_is_a_world_wrench_about_the_centre_of_mass():
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("a", mass=2.0, inertia=(1, 1, 1), com=(0.5, 0, 0))
    builder.add_free(None, "a", parent_rotation=(0, 0, np.sqrt(0.5), np.sqrt(0.5)))
    model, state, control = start(builder)
    after, _ = step(model, state, with_tau(control, (1, 2, 3, 0.1, 0.2, 0.3)), dt=0.01, config=tight())
    np.testing.assert_allclose(after.u[0], np.array([0.5, 1, 1.5, 0.1, 0.2, 0.3]) * 0.01, atol=EXACT)
