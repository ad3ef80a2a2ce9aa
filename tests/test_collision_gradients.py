"""Derivatives of the pair functions: finite differences, the envelope theorem, and no NaN anywhere."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from collision_reference import KINDS, random_pair, rotation, shape
from test_collision import X64, build, collider, config

from kamino_jax.collision.detect import PAIR_FUNCTIONS
from kamino_jax.pytree import replace
from kamino_jax.spatial import quat_exp, quat_matrix

FAR = 1e9


def nudged(s, twist):
    """Shape moved by a twist (6,): translation, then rotation vector about its position."""
    turn = quat_matrix(quat_exp(twist[3:]))
    return replace(s, p=s.p + twist[:3], R=jnp.sum(turn[:, :, None] * s.R[None], axis=1))


def deepest(kind):
    """Deepest distance, its normal and midpoint, as functions of twists (2, 6) of the two shapes."""

    def f(twists, a, b):
        d, n, m = PAIR_FUNCTIONS[kind](nudged(a, twists[0]), nudged(b, twists[1]))
        k = jnp.argmin(jax.lax.stop_gradient(d))
        return jnp.concatenate([d[k][None], n if n.ndim == 1 else n[k], m[k]])

    return f


@pytest.mark.skipif(not X64, reason="central differences need double precision")
@pytest.mark.parametrize("kind", KINDS)
def test_derivatives_against_central_differences(kind):
    """Distance to 1e-6, n and the midpoint to 1e-4, and d(distance) = (n, r x n) of the second shape, minus that of the first."""
    f = deepest(kind)
    value, jacobian = jax.jit(f), jax.jit(jax.jacrev(f))
    rng, eps, checked = np.random.default_rng(5), 1e-6, 0
    for _ in range(25):
        a, b = random_pair(rng)
        zero = np.zeros((2, 6))
        J = np.asarray(jacobian(zero, a, b))
        steps = [(eps * e).reshape(2, 6) for e in np.eye(12)]
        plus, minus = (np.stack([np.asarray(value(s * x, a, b)) for x in steps], -1) for s in (1, -1))
        v = np.asarray(value(zero, a, b))
        if np.abs(plus + minus - 2 * v[:, None]).max() > 1e-8:
            continue  # a step across a change of features
        difference = ((plus - minus) / (2 * eps)).reshape(7, 2, 6)
        np.testing.assert_allclose(J[0], difference[0], atol=1e-6)
        np.testing.assert_allclose(J[1:], difference[1:], atol=1e-4)
        n, surface = v[1:4], (v[4:] - 0.5 * v[0] * v[1:4], v[4:] + 0.5 * v[0] * v[1:4])
        expected = np.stack([np.r_[s * n, s * np.cross(x - np.asarray(g.p), n)] for s, x, g in zip((-1, 1), surface, (a, b), strict=True)])
        np.testing.assert_allclose(J[0], expected, atol=1e-6 if kind != "capsule_box" else 2e-5)
        checked += 1
    assert checked > 12


UPRIGHT, LYING = np.eye(3), rotation([0, 1, 0], np.pi / 2)
TILTED = rotation([1, 2, 3], 0.7)
BOXES = [(0.5, 0.5, 0.5), (0.4, 0.3, 0.2)]


def degenerate(dtype):
    """Pairs of shapes that coincide, touch, are parallel, aligned, inside each other or far apart."""
    positions = [
        (0, 0, 0),
        (0, 0, 0.25),
        (0, 0, 0.5),
        (0, 0, 1),
        (0.5, 0, 0),
        (0.5, 0.5, 0.5),
        (1, 0, 1),
        (0, 1e-9, 0),
        (0.5, 1e-30, 1e-12),
        (50, 60, 70),
    ]
    turns = [
        (UPRIGHT, UPRIGHT),
        (LYING, UPRIGHT),
        (LYING, LYING),
        (TILTED, TILTED),
        (UPRIGHT, rotation([0, 0, 1], np.pi / 4)),
        (TILTED, LYING),
    ]
    pairs = [
        (shape((0, 0, 0), R1, s1, dtype), shape(p, R2, s2, dtype))
        for p in positions
        for R1, R2 in turns
        for s1, s2 in [(BOXES[0], BOXES[0]), (BOXES[0], BOXES[1])]
    ]
    return jax.tree.map(lambda *x: jnp.stack(x), *pairs)


@pytest.mark.parametrize("dtype", [jnp.float32] + [jnp.float64] * X64)
@pytest.mark.parametrize("kind", KINDS)
def test_degenerate_poses_are_finite(kind, dtype):
    """Values, jvp and vjp are finite, normals unit, in every degenerate pose; vjp agrees with jvp."""
    a, b = degenerate(dtype)
    f = jax.vmap(PAIR_FUNCTIONS[kind])

    def everything(a, b, tangent, cotangent):
        out, moved = jax.jvp(f, (a, b), tangent)
        return out, moved, jax.vjp(f, a, b)[1](cotangent)

    rng = np.random.default_rng(6)
    like = lambda tree: jax.tree.map(lambda x: jnp.asarray(rng.normal(size=x.shape), x.dtype), tree)
    tangent, cotangent = like((a, b)), like(jax.eval_shape(f, a, b))
    out, moved, back = jax.jit(everything)(a, b, tangent, cotangent)
    for x in jax.tree.leaves((out, moved, back)):
        assert np.isfinite(x).all()
        assert x.dtype == dtype
    assert np.abs(np.linalg.norm(out[1], axis=-1) - 1).max() < (1e-12 if dtype == jnp.float64 else 1e-5)


@pytest.mark.parametrize("capacity", [None, 6])
def test_empty_slots_have_no_derivative(capacity):
    """What comes back from empty slots is exactly zero, whatever goes in."""
    names = ("sphere", "capsule", "sphere")  # box against box would compile for a minute; its gradients are finite, see above
    sizes = {"sphere": [0.3], "capsule": [0.1, 0.3]}
    shapes = [{"type": "plane", "static": True}]
    shapes += [{"type": n, "params": sizes[n], "pos": [0, 0, 100.0 + 3 * i], "mu": 0.5} for i, n in enumerate(names * 2)]
    model = build(shapes, capacity)

    def loss(q, geoms):
        c = collider(config())(replace(model, geoms=geoms), q)
        on = jnp.arange(c.distance.size).astype(q.dtype) + 1
        return jnp.sum(on * c.distance) + sum(jnp.sum(on[:, None] * x) for x in (c.normal, c.point_a, c.point_b)) + jnp.sum(c.mu * on)

    value, gradients = jax.value_and_grad(loss, argnums=(0, 1))(model.start.q, model.geoms)
    assert np.isfinite(value)
    for x in jax.tree.leaves(gradients):
        np.testing.assert_array_equal(x, 0)


def test_contact_gradients_reach_the_body_poses():
    """d(distance)/d(height) of a ball on a floor is 1 through `collide`, and d/d(radius) is -1."""
    model = build([{"type": "plane", "static": True}, {"type": "sphere", "params": [0.5], "pos": [0, 0, 0.4]}])
    f = lambda q, size: collider(config())(replace(model, geoms=replace(model.geoms, size=size)), q).distance[0]
    by_q, by_size = jax.grad(f, argnums=(0, 1))(model.start.q, model.geoms.size)
    np.testing.assert_allclose(by_q[0, :3], [0, 0, 1], atol=1e-6)
    np.testing.assert_allclose(by_size[1], [-1, 0, 0], atol=1e-6)


def test_noise_around_ties_keeps_the_distance():
    """Aligned boxes under noise of every size: distance and normal are continuous."""
    rng = np.random.default_rng(7)
    f = jax.jit(PAIR_FUNCTIONS["box_box"])
    for size in (1e-12, 1e-9, 1e-6, 1e-5, 1e-4):
        for _ in range(20):
            a = shape((0, 0, 0), np.eye(3), BOXES[0])
            b = shape(np.array([0, 0, 0.99]) + size * rng.normal(size=3), rotation(rng.normal(size=3), size), BOXES[0])
            d, n, _ = f(a, b)
            assert abs(np.min(d) + 0.01) < 10 * size + 2e-6
            np.testing.assert_allclose(n, [0, 0, 1], atol=10 * size + 1e-6)
            assert np.sum(np.asarray(d) < 0) >= 4
