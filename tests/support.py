"""Shared by the tests: tight solver settings, a jitted step, and small builders."""

import functools
import os

import jax
import jax.numpy as jnp
import numpy as np

import kamino_jax as kj

X64 = jnp.zeros(()).dtype == jnp.float64
BACKEND = os.environ.get("KAMINO_JAX_BACKEND", "padmm")  # of all tests that do not choose one themselves
EXACT = 1e-9 if X64 else 2e-6  # closed forms: solver tolerance 1e-10 in float64; rounding of unit-size numbers in float32


def tight(**kwargs) -> kj.Config:
    """Settings under which the solver's error does not show; groups as dicts, e.g. constraints=dict(gamma=0.0)."""
    small = 1e-11 if X64 else 1e-7
    kwargs = dict(dynamics_solver=BACKEND) | kwargs
    padmm = dict(primal_tolerance=small, dual_tolerance=small, compl_tolerance=small, max_iterations=5000) | kwargs.pop("padmm", {})
    dvi = dict(tolerance=10 * small, regularization=1e-12, max_alternating_iterations=5000, use_schur_complement=True)
    dvi |= kwargs.pop("dvi", {})
    groups = dict(constraints=kj.ConstraintsConfig, dynamics=kj.DynamicsConfig, collision=kj.CollisionConfig, materials=kj.MaterialsConfig)
    built = {name: groups[name](**value) if name in groups else value for name, value in kwargs.items()}
    return kj.Config(padmm=kj.PADMMConfig(**padmm), dvi=kj.DVIConfig(**dvi), **built)


KEPT = dict(cull_speculative_contacts=False)  # speculative contacts stay


@functools.partial(jax.jit, static_argnames="config")
def step(model, state, control=None, *, dt, config, contacts=None):
    return kj.step(model, state, control, dt=dt, config=config, contacts=contacts)


@functools.partial(jax.jit, static_argnames=("steps", "config", "record"))
def rollout(model, state, control=None, *, dt, steps, config, record=("q", "u", "joint_q", "status")):
    """Constant control."""
    policy = None if control is None else lambda *_: control
    return kj.rollout(model, state, policy, dt=dt, steps=steps, config=config, record=record)


batched_rollout = jax.jit(
    lambda model, state, control, dt, steps, config, record: jax.vmap(
        lambda m, s, c: kj.rollout(m, s, lambda *_: c, dt=dt, steps=steps, config=config, record=record)
    )(model, state, control),
    static_argnames=("steps", "config", "record"),
)


def start(builder, **kwargs):
    """(model, state, control) of a finished builder."""
    model = builder.finalize(**kwargs)
    return model, kj.initial_state(model), kj.zero_control(model)


def worlds(variants, build, **kwargs):
    """Stacked (model, state, control): one world per variant, made by build(variant) -> builder."""
    models = kj.stack([build(variant).finalize(**kwargs) for variant in variants])
    return models, kj.initial_state(models), kj.zero_control(models)


def wheel(inertia=1.0, mass=1.0, com=(0, 0, 0), rate=0.0, gravity=(0, 0, 0), **dof):
    """A body hinged to the world about y at the origin; `dof` configures the hinge."""
    builder = kj.ModelBuilder(gravity=gravity)
    velocity = np.cross((0, rate, 0), com)
    builder.add_body("wheel", mass=mass, inertia=(inertia,) * 3, com=com, velocity=velocity, angular_velocity=(0, rate, 0))
    builder.add_revolute(None, "wheel", name="hinge", at=(0, 0, 0), axis="y", **dof)
    return builder


def set_hinge(state, angle, com=(0, 0, 0)):
    """The state with the one hinge about y at an angle, twist kept in the turned frame."""
    q = np.array([0, np.sin(angle / 2), 0, np.cos(angle / 2)])
    turn = np.array([[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]])
    rate = float(state.u[0, 4])
    r = turn @ np.asarray(com, float)
    u = np.r_[np.cross((0, rate, 0), r), 0, rate, 0]
    dtype = state.q.dtype
    return kj.replace(state, q=jnp.asarray(np.r_[r, q][None], dtype), u=jnp.asarray(u[None], dtype), joint_q=jnp.asarray([angle], dtype))


def cube(builder, name, side, mass, position, **kwargs):
    """A solid cube with its box; material and state as keywords."""
    body = {k: kwargs.pop(k) for k in ("rotation", "velocity", "angular_velocity", "com", "kinematic") if k in kwargs}
    builder.add_body(name, mass=mass, inertia=(mass * side**2 / 6,) * 3, position=position, **body)
    builder.add_box(name, (side / 2,) * 3, **kwargs)


def ball(builder, name, radius, mass, position, **kwargs):
    """A solid sphere with its shape."""
    body = {k: kwargs.pop(k) for k in ("rotation", "velocity", "angular_velocity", "com") if k in kwargs}
    builder.add_body(name, mass=mass, inertia=(0.4 * mass * radius**2,) * 3, position=position, **body)
    builder.add_sphere(name, radius, **kwargs)


def axis_angle(axis, angle):
    """Quaternion (x, y, z, w)."""
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    return np.r_[axis * np.sin(angle / 2), np.cos(angle / 2)]


def matrix(q):
    """Rotation matrix of a quaternion, NumPy."""
    x, y, z, w = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def with_tau(control, tau):
    """The control with these joint efforts."""
    return kj.replace(control, tau=jnp.asarray(tau, control.tau.dtype).reshape(control.tau.shape))


def with_wrench(control, wrench):
    """The control with this external wrench on every body."""
    return kj.replace(control, w_ext=jnp.broadcast_to(jnp.asarray(wrench, control.w_ext.dtype), control.w_ext.shape))
