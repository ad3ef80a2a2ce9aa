"""Armature, damping, drives, effort limits, dry friction, limits and efforts on every DoF of every joint type.

A body of unit mass and inertia, jointed to the world at its centre of mass with aligned frames, without gravity: every DoF is a scalar
unit mass, so that each law has a closed form.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import EXACT, X64, start, tight

import kamino_jax as kj
from kamino_jax.joints.kinds import KINDS

H, KP, KD = 0.01, 100.0, 2.0
KINDS_WITH_DOFS = [k for k in KINDS if KINDS[k].dofs and k != "free"]
ATOL = 1e-8 if X64 else 5e-6  # solver tolerance 1e-11 (1e-7) on rows of inertia up to 2


def senses(kind):
    """World sense of each DoF at zero coordinates: the third axis of a left-handed gimbal points backwards."""
    return np.array([1, 1, -1.0]) if kind == "gimbal_left_handed" else np.ones(len(KINDS[kind].dofs))


def jointed(kind, velocity=None, **dof):
    """The body on its joint, moving along its DoFs at given rates."""
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    u = np.zeros(6)
    u[list(KINDS[kind].dofs)] = 0.0 if velocity is None else velocity * senses(kind)
    builder.add_body("body", mass=1.0, inertia=(1, 1, 1), velocity=u[:3], angular_velocity=u[3:])
    axes = {"revolute": dict(axis="x"), "prismatic": dict(axis="x"), "cylindrical": dict(axis="x")}.get(kind, {})
    builder.add_joint(kind, None, "body", at=(0, 0, 0), **axes, **dof)
    return start(builder)


@functools.cache
def stepper(config):
    return jax.jit(lambda m, s, c: kj.step(m, s, c, dt=H, config=config))


def rates_after(kind, scene, config=None):
    """DoF rates along the axes as they stood at the start of the step, and info."""
    after, info = stepper(config or tight())(*scene)
    assert info.status.converged
    return np.asarray(after.u)[0, list(KINDS[kind].dofs)] * senses(kind), info


def target(model, kind, value):
    """Drive targets: `value` on every DoF (a rotation vector for the ball)."""
    n = len(KINDS[kind].dofs)
    if kind == "spherical":
        v = np.full(3, value)
        angle = np.linalg.norm(v)
        return np.r_[v / angle * np.sin(angle / 2), np.cos(angle / 2)]
    return np.full(n, value)


@pytest.mark.parametrize("kind", KINDS_WITH_DOFS)
def test_a_drive_acts_on_every_dof(kind):
    model, state, control = jointed(kind, drive="position", kp=KP, kd=KD, armature=0.5, damping=0.3)
    control = kj.replace(control, q_ref=jnp.asarray(target(model, kind, 0.2), control.q_ref.dtype))
    rates, _ = rates_after(kind, (model, state, control))
    expected = H * KP * 0.2 / (1 + 0.5 + H * (KD + 0.3) + H * H * KP)
    np.testing.assert_allclose(rates, np.full(len(rates), expected), atol=ATOL)


@pytest.mark.parametrize("kind", KINDS_WITH_DOFS)
def test_limited_drives_friction_and_efforts_share_every_dof(kind):
    model, state, control = jointed(kind, drive="velocity", kd=1e3, effort_max=4.0, friction=0.5)
    n = model.layout.nv
    control = kj.replace(control, u_ref=control.u_ref + 5.0)
    rates, info = rates_after(kind, (model, state, control))
    np.testing.assert_allclose(rates, np.full(n, H * 3.5), atol=ATOL)
    rows = model.layout.rows
    np.testing.assert_allclose(info.lam[rows.effort], np.full(n, H * 4.0), rtol=1e-6)
    np.testing.assert_allclose(info.lam[rows.friction], np.full(n, -H * 0.5), rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS_WITH_DOFS)
def test_friction_stops_every_dof_exactly(kind):
    n = len(KINDS[kind].dofs)
    model, state, control = jointed(kind, velocity=0.004, friction=0.5)
    rates, _ = rates_after(kind, (model, state, control))
    np.testing.assert_allclose(rates, np.zeros(n), atol=EXACT)


@pytest.mark.parametrize("kind", KINDS_WITH_DOFS)
def test_explicit_efforts_are_clamped_on_every_dof(kind):
    model, state, control = jointed(kind, effort_max=2.0)
    rates, _ = rates_after(kind, (model, state, kj.replace(control, tau=control.tau + 3.0)))
    np.testing.assert_allclose(rates, np.full(model.layout.nv, H * 2.0), atol=ATOL)


@pytest.mark.parametrize("kind", KINDS_WITH_DOFS)
def test_a_limit_stops_every_dof(kind):
    n = len(KINDS[kind].dofs)
    model, state, control = jointed(kind, velocity=-1.0, limits=(0.0, 1.0))
    # start beyond the lower limit by a hair, so that the row is there
    config = tight(constraints=dict(limit_recovery_speed=0.0))
    model = kj.replace(model, joints=kj.replace(model.joints, q_min=model.joints.q_min + 1e-3))
    rates, info = rates_after(kind, (model, state, control), config)
    np.testing.assert_allclose(rates, np.zeros(n), atol=ATOL)
    np.testing.assert_allclose(info.lam[model.layout.rows.limit], np.ones(n), rtol=1e-6)


def test_compliance_and_recovery_follow_their_closed_forms():
    """A unit point on the ground: v+ = (v + h g - h k φ)/(1 + h (k f h + c)), φ at the evaluation pose; hard: v+ = (|φ| - δ)/(h + T)."""
    k, c, v, g, pen, h = 500.0, 20.0, -0.3, -9.81, -0.02, H
    builder = kj.ModelBuilder(gravity=(0, 0, g))
    builder.add_plane(stiffness=k, damping=c, mu=0.0)
    builder.add_body("ball", mass=1.0, inertia=(0.004,) * 3, position=(0, 0, 0.1 + pen), velocity=(0, 0, v))
    builder.add_sphere("ball", 0.1, stiffness=k, damping=c, mu=0.0, restitution=0.7)
    model, state, control = start(builder)
    soft = dict(contact_compliance=True, delta=0.0)
    for integrator, f in (("euler", 1.0), ("moreau", 0.5)):
        after, _ = stepper(tight(integrator=integrator, constraints=soft))(model, state, control)
        phi = pen + (1 - f) * h * v
        np.testing.assert_allclose(after.u[0, 2], (v + h * g - h * k * phi) / (1 + h * (k * f * h + c)), rtol=1e-5)
    timed = dict(contact_recovery_time=0.03, delta=0.0)
    still = kj.replace(model, geoms=kj.replace(model.geoms, restitution=model.geoms.restitution * 0))
    after, _ = stepper(tight(constraints=timed))(still, state, control)
    np.testing.assert_allclose(after.u[0, 2], -pen / (h + 0.03), rtol=1e-5)
    capped = dict(contact_recovery_speed=0.01)
    after, _ = stepper(tight(constraints=capped))(still, state, control)
    np.testing.assert_allclose(after.u[0, 2], 0.01, rtol=1e-4)
