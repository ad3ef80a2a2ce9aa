"""Joint geometry of every type: against an independent program's numbers, against derivatives, and its unwrapping of angles."""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import X64, axis_angle, matrix, rollout, start, tight, wheel

import kamino_jax as kj
from kamino_jax import spatial
from kamino_jax.joints.kinds import KINDS
from kamino_jax.joints.kinematics import coordinates, dof_rates, joint_kinematics

CASES = dict(np.load(pathlib.Path(__file__).parent / "data" / "joints.npz"))
NAMES = sorted({key.split("/")[0] for key in CASES})
ATOL = 1e-12 if X64 else 5e-6  # rounding of numbers of size 1 to 5


def case(name):
    return {key.split("/")[1]: value for key, value in CASES.items() if key.startswith(f"{name}/")}


def pair(name, c):
    """Two moving bodies and the joint between them, as recorded."""
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    for i in range(2):
        q, u = c["poses"][i], c["twists"][i]
        builder.add_body(
            f"b{i}", mass=1.0, inertia=(1, 1, 1), com=c["coms"][i], position=q[:3], rotation=q[3:], velocity=u[:3], angular_velocity=u[3:]
        )
    axes = dict(axes=c["axes"]) if len(c["axes"]) else {}
    X_p, X_c = c["X_p"], c["X_c"]
    frames = dict(parent_position=X_p[:3], parent_rotation=X_p[3:], child_position=X_c[:3], child_rotation=X_c[3:])
    builder.add_joint(name.replace("_left_handed", ""), "b0", "b1", **axes, **frames)
    return start(builder)


@functools.cache
def kinematics_of(correction):
    return jax.jit(lambda m, q, u, ref: joint_kinematics(m, q, u, ref, correction))


@pytest.mark.parametrize("name", NAMES)
def test_residual_coordinates_rates_and_rows_match_the_reference(name):
    c = case(name)
    model, state, _ = pair(name, c)
    k = kinematics_of("none")(model, state.q, state.u, state.joint_q)
    kind = KINDS[name]
    got = dict(
        residual=k.residual[0][np.array(kind.constrained, int)],
        coordinates=coordinates(model.topology, k),
        rates=dof_rates(model.topology, k),
        J=k.J[0][np.array(kind.constrained, int)].reshape(-1, 12),
        J_dof=k.J[0][np.array(kind.dofs, int)].reshape(-1, 12),
    )
    for quantity, value in got.items():
        np.testing.assert_allclose(value, c[quantity], atol=ATOL, err_msg=quantity)


@pytest.mark.skipif(not X64, reason="differences need float64")
@pytest.mark.parametrize("name", NAMES)
def test_on_the_joint_manifold_rows_are_derivatives_of_residual_and_coordinates(name):
    c = case(name)
    model, state, _ = pair(name, c | {"poses": c["closed_poses"]})
    top, rows = model.topology, model.layout.rows
    evaluate = lambda q, u: kinematics_of("none")(model, q, u, state.joint_q)
    k = evaluate(state.q, state.u)
    J = np.asarray(k.J[0])[np.array(KINDS[name].constrained, int)].reshape(-1, 12)
    u = ((np.eye(12) - np.linalg.pinv(J) @ J) @ np.asarray(state.u).ravel()).reshape(2, 6)  # admissible
    h = 1e-6
    ahead, back = (evaluate(spatial.advance(state.q, jnp.asarray(u), s), state.u) for s in (h, -h))
    constrained = np.asarray(top.row[rows.kinematic])
    slope = (np.asarray(ahead.residual - back.residual) / (2 * h)).ravel()[constrained]
    np.testing.assert_allclose(slope, np.zeros(len(constrained)), atol=1e-8)  # differences of 1e-6: error 1e-10 / 1e-6
    rates = dof_rates(top, evaluate(state.q, jnp.asarray(u)))
    np.testing.assert_allclose(rates, np.asarray(k.J[0])[np.array(KINDS[name].dofs, int)].reshape(-1, 12) @ u.ravel(), atol=1e-9)
    if name != "spherical":  # its coordinates are a quaternion
        moved = (coordinates(top, ahead) - coordinates(top, back)) / (2 * h)
        np.testing.assert_allclose(moved, rates, atol=1e-8)


def test_rates_are_relative_to_the_world_at_rest():
    model, state, _ = start(wheel(rate=3.0))
    _, rates = kj.joint_state(model, state)
    np.testing.assert_allclose(rates, [3.0], atol=ATOL)


SPIN = {  # 10 rad/s read every 0.1 s, from 5 rad on
    "twopi": lambda t: np.fmod(t, 2 * np.pi),
    "continuous": lambda t: t,
    "none": lambda t: (t + np.pi) % (2 * np.pi) - np.pi,
}


@pytest.mark.parametrize("correction", SPIN)
def test_a_spinning_hinge_counts_its_angle_as_configured(correction):
    model, state, _ = start(wheel(rate=10.0))
    _, seen = rollout(model, state, dt=0.1, steps=30, config=tight(rotation_correction=correction), record=("joint_q",))
    turned = 10.0 * 0.1 * np.arange(1, 31)
    np.testing.assert_allclose(seen["joint_q"][:, 0], SPIN[correction](turned), atol=1e-9 if X64 else 2e-5)


def test_a_gimbal_stays_on_its_branch_past_a_right_angle():
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("a", mass=1.0, inertia=(1, 1, 1), angular_velocity=(0, 2.0, 0))
    builder.add_gimbal(None, "a", at=(0, 0, 0))
    model, state, _ = start(builder)
    _, seen = rollout(model, state, dt=0.05, steps=24, config=tight(), record=("joint_q",))
    np.testing.assert_allclose(seen["joint_q"][:, 1], 0.1 * np.arange(1, 25), atol=1e-6 if X64 else 1e-4)
    np.testing.assert_allclose(seen["joint_q"][:, [0, 2]], np.zeros((24, 2)), atol=1e-6 if X64 else 1e-4)


def test_a_ball_keeps_the_sign_of_its_quaternion():
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    builder.add_body("a", mass=1.0, inertia=(1, 1, 1), angular_velocity=(4.0, 0, 0))
    builder.add_spherical(None, "a", at=(0, 0, 0))
    model, state, _ = start(builder)
    _, seen = rollout(model, state, dt=0.1, steps=25, config=tight(), record=("joint_q",))
    q = np.asarray(seen["joint_q"])
    half = 0.2 * np.arange(1, 26)
    np.testing.assert_allclose(q[:, [0, 3]], np.stack([np.sin(half), np.cos(half)], 1), atol=1e-9 if X64 else 1e-5)


QUATERNIONS = {"small": 1e-9, "moderate": 0.7, "near half a turn": 3.1415, "beyond": 4.0}


@pytest.mark.parametrize("size", QUATERNIONS)
def test_exp_and_log_are_inverse(size):
    angle = QUATERNIONS[size]
    v = jnp.asarray(np.array([0.6, -0.48, 0.64]) * angle, jnp.zeros(()).dtype)
    q = spatial.quat_exp(v)
    back = spatial.quat_log(q)
    shortest = v if angle < np.pi else v * (1 - 2 * np.pi / angle)
    np.testing.assert_allclose(back, shortest, atol=1e-12 if X64 else 2e-6, rtol=1e-6)
    np.testing.assert_allclose(spatial.quat_matrix(q), matrix(axis_angle((0.6, -0.48, 0.64), angle)), atol=ATOL)


def test_rotations_have_finite_derivatives_everywhere():
    dtype = jnp.zeros(()).dtype
    zero, half_turn = jnp.zeros(3, dtype), jnp.asarray([1, 0, 0, 0], dtype)
    for value in (
        jax.jacfwd(spatial.quat_exp)(zero),
        jax.jacrev(spatial.quat_log)(jnp.asarray([0, 0, 0, 1], dtype)),
        jax.jacrev(spatial.quat_log)(half_turn),
        jax.grad(spatial.norm)(zero),
        jax.jacrev(spatial.normalize)(zero),
        jax.grad(spatial.atan2)(zero[0], zero[0]),
        jax.jacfwd(spatial.cholesky3)(jnp.zeros((3, 3), dtype)),
    ):
        assert np.isfinite(np.asarray(value)).all()


def test_cholesky3_halves_every_semidefinite_matrix():
    rng = np.random.default_rng(0)
    for rank in range(4):
        B = rng.normal(size=(3, rank))
        A = jnp.asarray(B @ B.T, jnp.zeros(()).dtype)
        if rank == 3 or rank == 0:
            L = spatial.cholesky3(A)
            np.testing.assert_allclose(L @ L.T, A, atol=1e-6)
