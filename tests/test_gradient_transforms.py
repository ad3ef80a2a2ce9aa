"""Derivatives as functions: both modes, second order, batches; what they do not depend on; and that they are finite everywhere."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import X64, axis_angle, ball, cube, start, wheel

import kamino_jax as kj
from kamino_jax import scenes

H = 2e-3
SMALL = dict.fromkeys(("primal_tolerance", "dual_tolerance", "compl_tolerance"), 1e-9 if X64 else 1e-6)
doubles = pytest.mark.skipif(not X64, reason="agreement to rounding of double precision")


def capped(iterations=1000, **kwargs):
    return kj.Config(padmm=kj.PADMMConfig(**SMALL, max_iterations=iterations), **kwargs)


def thrown_ball():
    """A23: a ball of 0.15 m and 1 kg that falls onto the ground within ten steps."""
    builder = kj.ModelBuilder()
    builder.add_plane(mu=0.5)
    ball(builder, "ball", 0.15, 1.0, (0, 0, 0.16), velocity=(0.5, 0, -1.0), mu=0.5)
    return start(builder)


def sliding_block():
    builder = kj.ModelBuilder()
    builder.add_plane(mu=0.3)
    cube(builder, "block", 0.2, 1.0, (0, 0, 0.1 - 1e-5), velocity=(1, 0.3, 0), mu=0.3)
    return start(builder)


SCENES = {
    "pendulum": lambda: scenes.pendulum_chain(1, angle=0.3),
    "block": sliding_block,
    "fourbar": lambda: scenes.boxes_fourbar(fixed=True, ground=False, limits=False),
    "ball": thrown_ball,
}


@functools.cache
def scene(name):
    return SCENES[name]()


def end(name, steps=10, config=capped(), dt=H):
    """Poses and twists at the end of a rollout, as a function of x = (twists, masses, loads)."""
    model, state, control = scene(name)

    def f(x):
        u, mass, load = x
        heavy = kj.replace(model, bodies=kj.replace(model.bodies, mass=mass))
        loaded = kj.replace(control, w_ext=load)
        last, _ = kj.rollout(heavy, kj.replace(state, u=u), lambda *_: loaded, dt=dt, steps=steps, config=config, record=())
        return jnp.concatenate([last.q.reshape(-1), last.u.reshape(-1)])

    return f, (state.u, model.bodies.mass, control.w_ext)


def random_like(rng, tree):
    return jax.tree.map(lambda x: jnp.asarray(rng.standard_normal(x.shape), x.dtype), tree)


def dot(a, b):
    return sum(float(jnp.sum(x * y)) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@doubles
@pytest.mark.parametrize("name", SCENES)
def test_forward_and_reverse_mode_are_transposes(name):
    """W · (J t) = (Jᵀ w) · t on random vectors."""
    f, x = end(name)
    rng = np.random.default_rng(1)
    t = random_like(rng, x)
    value, moved = jax.jit(lambda x, t: jax.jvp(f, (x,), (t,)))(x, t)
    w = random_like(rng, value)
    (back,) = jax.jit(lambda x, w: jax.vjp(f, x)[1](w))(x, w)
    np.testing.assert_allclose(dot(w, moved), dot(back, t), rtol=1e-10, atol=1e-10)


@doubles
@pytest.mark.parametrize("name", ["pendulum", "block", "fourbar"])
def test_second_derivatives_are_the_differences_of_first_ones(name):
    """Hessian times a vector, forward over reverse."""
    f, x = end(name)
    t = jax.tree.map(lambda v: 0.1 * v, random_like(np.random.default_rng(2), x))
    gradient = jax.grad(lambda x: jnp.sum(f(x) ** 2))
    program = jax.jit(lambda x: jax.jvp(gradient, (x,), (t,)))
    h = 1e-4
    at = lambda k: program(jax.tree.map(lambda v, e: v + k * h * e, x, t))
    difference = jax.tree.map(lambda a, b: (a - b) / (2 * h), at(1)[0], at(-1)[0])
    for a, b in zip(jax.tree.leaves(at(0)[1]), jax.tree.leaves(difference), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5 * max(1e-3, np.abs(b).max()))


@functools.cache
def aimed(iterations):
    """A23: a program for the gradients of the squared distance to a target by twists (worlds, 1, 6), at an iteration cap."""
    f, x = end("ball", config=capped(iterations), dt=1e-2)
    loss = lambda u: jnp.sum((f((u, *x[1:]))[:3] - jnp.array([0.3, 0, 0.15])) ** 2)
    return jax.jit(jax.vmap(jax.value_and_grad(loss)))


TWISTS = jnp.array([[[0.5, 0, -1.0, 0, 0, 0]], [[0, 0, -1.0, 0, 0, 0.0]], [[3.0, 0.2, -1.0, 0, 0, 0]]])  # sticks, sticks, slides


def test_gradients_through_the_solver_exist_at_any_iteration_cap():
    """A23, mujoco#2259, mujoco#1182: finite at 1 and 10; 100 and 200 iterations agree."""
    slopes = {cap: np.asarray(aimed(cap)(TWISTS)[1]) for cap in (1, 10, 100, 200)}
    assert all(np.all(np.isfinite(slope)) for slope in slopes.values())
    np.testing.assert_allclose(slopes[100], slopes[200], atol=1e-9 if X64 else 1e-4)


@doubles
def test_gradients_through_an_impact_match_differences_in_stick_and_slip():
    """A23."""
    slope, h = np.asarray(aimed(200)(TWISTS)[1]), 1e-6
    moved = [aimed(200)(TWISTS + s * h * jnp.eye(6)[0])[0] for s in (1, -1)]
    np.testing.assert_allclose(slope[:, 0, 0], (moved[0] - moved[1]) / (2 * h), rtol=1e-3, atol=1e-6)


def test_memory_of_a_gradient_does_not_grow_with_the_iteration_cap():
    """A23: the iterations of the solver are not differentiated."""
    sizes = []
    for cap in (50, 500):
        f, x = end("ball", steps=20, config=capped(cap))
        lowered = jax.jit(jax.grad(lambda x, f=f: jnp.sum(f(x) ** 2))).lower(x)
        sizes.append(lowered.compile().memory_analysis().temp_size_in_bytes)
    assert sizes[1] == sizes[0]


def touching(shape):
    """Ground and a body with one shape that may be anywhere near it."""
    builder = kj.ModelBuilder()
    builder.add_plane(mu=0.5, restitution=0.2)
    builder.add_body("body", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(0, 0, 0.1))
    getattr(builder, f"add_{shape[0]}")("body", *shape[1:], mu=0.5, restitution=0.2)
    return builder


def two_capsules(_=None):
    """Aligned, floating."""
    builder = kj.ModelBuilder()
    for i in range(2):
        builder.add_body(f"capsule_{i}", mass=1.0, inertia=(0.01, 0.01, 0.01), position=(0.2 * i, 0, 0))
        builder.add_capsule(f"capsule_{i}", 0.1, 0.2)
    return builder


def driven():
    """A hinge with everything: drive at its effort limit, friction, limits that coincide with the start."""
    return wheel(drive="position", kp=100.0, kd=1.0, effort_max=0.1, friction=0.1, limits=(0.0, 0.5), armature=0.1)


def coincident():
    """A ball joint and a slider whose anchors lie on the centres of mass, which coincide."""
    builder = kj.ModelBuilder()
    for name in ("a", "b"):
        builder.add_body(name, mass=1.0, inertia=(0.01, 0.01, 0.01))
    builder.add_spherical(None, "a", at=(0, 0, 0), drive="position", kp=1.0)
    builder.add_prismatic("a", "b", at=(0, 0, 0), axis="x", limits=(0, 0))
    return builder


FUZZED = {
    "box": lambda: touching(("box", (0.1, 0.1, 0.1))),
    "sphere": lambda: touching(("sphere", 0.1)),
    "capsule": lambda: touching(("capsule", 0.1, 0.2)),
    "capsules": two_capsules,
    "driven": driven,
    "coincident": coincident,
}
COUNT = 5000  # states of each scene, mode and precision: 120,000 gradients
POSES = ("random", "aligned", "touching", "deep", "coincident")


def fuzz(rng, state):
    """Random states, many of them exactly aligned, exactly touching, deep inside each other, at rest."""
    nb = state.q.shape[0]
    q = np.broadcast_to(np.asarray(state.q, float), (COUNT, nb, 7)).copy()
    u = rng.standard_normal((COUNT, nb, 6)) * rng.choice([0, 1e-12, 1, 100], (COUNT, 1, 1))
    kind = rng.integers(5, size=COUNT)
    turn = np.array([axis_angle(rng.standard_normal(3), a) for a in rng.uniform(0, np.pi, COUNT)])
    q[kind == 0, :, 3:] = turn[kind == 0, None]
    q[kind == 0, :, :3] += 0.1 * rng.standard_normal((np.sum(kind == 0), nb, 3))
    q[kind == 3, :, 2] -= 0.15  # deep
    q[kind == 4, :, :3] = 0  # coincident
    return jnp.asarray(q, state.q.dtype), jnp.asarray(u, state.q.dtype)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64] if X64 else [jnp.float32])
@pytest.mark.parametrize("name", FUZZED)
def test_gradients_are_finite_in_every_state(name, dtype):
    """Exact and smoothed, by state, masses, friction and control."""
    model, state, control = start(FUZZED[name](), dtype=dtype)
    q, u = fuzz(np.random.default_rng(5), state)
    for mode in ("exact", "smoothed"):
        config = dataclasses.replace(kj.Config(), gradient=kj.GradientConfig(mode=mode), padmm=kj.PADMMConfig(max_iterations=50))

        def loss(q, u, mass, mu, control, config=config):
            m = kj.replace(model, bodies=kj.replace(model.bodies, mass=mass), geoms=kj.replace(model.geoms, mu=mu))
            after, _ = kj.step(m, kj.replace(state, q=q, u=u), control, dt=H, config=config)
            return jnp.sum(after.q**2) + jnp.sum(after.u * after.u)

        slope = jax.jit(jax.vmap(jax.grad(loss, (0, 1, 2, 3, 4)), in_axes=(0, 0, None, None, None)))
        for leaf in jax.tree.leaves(slope(q, u, model.bodies.mass, model.geoms.mu, control)):
            assert np.all(np.isfinite(leaf)), mode
