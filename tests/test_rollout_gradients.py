"""Gradients through rollouts: checkpoints change memory alone, health tells what a gradient is worth, geometry may be held tangent."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import X64, cube, start, tight, wheel

import kamino_jax as kj
from kamino_jax.checkpoint import checkpointed_scan

DT = 1e-3
ROUNDING = 1e-12 if X64 else 1e-5  # the same sums in another order


def counter(carry, x):
    return carry * 0.9 + x, carry * carry


@pytest.mark.parametrize("checkpoint", [1, 3, 10, 100, "sqrt"])
def test_a_checkpointed_scan_is_the_scan(checkpoint):
    xs = jnp.linspace(0, 1, 10)

    def loss(x, how):
        carry, ys = checkpointed_scan(counter, x, xs, 10, how)
        return carry + jnp.sum(ys), ys

    for a, b in zip(
        jax.tree.leaves(jax.value_and_grad(loss, has_aux=True)(0.3, None)),
        jax.tree.leaves(jax.value_and_grad(loss, has_aux=True)(0.3, checkpoint)),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=ROUNDING)


@pytest.mark.parametrize("checkpoint", [0, -1, True, "log", 2.5])
def test_unknown_checkpoints_are_refused(checkpoint):
    with pytest.raises(ValueError, match="checkpoint"):
        checkpointed_scan(counter, 0.3, jnp.zeros(4), 4, checkpoint)


def sliding(**kwargs):
    builder = kj.ModelBuilder()
    builder.add_plane(None, mu=0.3)
    cube(builder, "block", 0.2, 1.0, (0, 0, 0.1 - 1e-5), velocity=(1, 0, 0), mu=0.3)
    return start(builder, **kwargs)


def distance(model, state, speed, **kwargs):
    moved = kj.replace(state, u=state.u.at[0, 0].set(speed))
    return kj.rollout(model, moved, dt=DT, steps=64, record=(), **kwargs)[0].q[0, 0]


def test_checkpoints_save_memory_and_change_nothing():
    model, state, _ = sliding()
    programs = {
        how: jax.jit(jax.grad(lambda v, how=how: distance(model, state, v, checkpoint=how, config=tight()))).lower(1.0).compile()
        for how in (None, "sqrt")
    }
    plain, saving = programs[None], programs["sqrt"]
    np.testing.assert_allclose(saving(1.0), plain(1.0), rtol=ROUNDING)
    assert saving.memory_analysis().temp_size_in_bytes < 0.5 * plain.memory_analysis().temp_size_in_bytes


def test_health_tells_sliding_from_the_verge_of_slipping():
    """The margin is the distance from a change of law; at F = μ m g it is zero."""
    model, state, control = sliding()
    config = dataclasses.replace(tight(), gradient=kj.GradientConfig(health=True))
    weight = 9.81

    @jax.jit
    def health(push, speed):
        pushed = kj.replace(control, w_ext=control.w_ext.at[0, 0].set(push))
        return kj.step(model, kj.replace(state, u=state.u.at[0, 0].set(speed)), pushed, dt=DT, config=config)[1].gradient

    slides, sticks, verge = health(0.0, 1.0), health(1.0, 0.0), health(0.3 * weight, 0.0)
    assert float(slides.residual) < 1e-6 and np.isfinite(float(slides.condition))
    assert float(sticks.margin) > 1e-4 and float(slides.margin) > 1e-4
    assert float(verge.margin) < 1e-2 * float(sticks.margin)


def test_tangent_geometry_has_the_exact_derivative_of_a_flat_contact():
    """On a plane normals do not turn and contact points do not wander, so both modes agree."""
    model, state, _ = sliding()
    modes = [dataclasses.replace(tight(), gradient=kj.GradientConfig(contact_geometry=how)) for how in ("full", "tangent")]
    height = lambda z, config: kj.step(model, kj.replace(state, q=state.q.at[0, 2].set(z)), dt=DT, config=config)[0].u[0, 2]
    full, tangent = (jax.jit(jax.grad(lambda z, c=c: height(z, c)))(0.1 - 1e-4) for c in modes)
    assert abs(float(full)) > 1  # the recovery of the overlap: -0.01/dt
    np.testing.assert_allclose(tangent, full, rtol=1e-6 if X64 else 1e-3)


def test_a_block_feels_what_it_has_not_reached_when_smoothed():
    """Within the gap the smoothed derivative sees the wall that the step does not; the step itself is unchanged."""
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    builder.add_sphere(None, 0.1, mu=0.0)
    builder.add_body("ball", mass=1.0, inertia=(0.01,) * 3, position=(0.21, 0, 0))
    builder.add_sphere("ball", 0.1, mu=0.0)
    model, state, _ = start(builder)
    speed = lambda x, config: kj.step(model, kj.replace(state, q=state.q.at[0, 0].set(x)), dt=DT, config=config)[0].u[0, 0]
    hard, soft = (dataclasses.replace(tight(), gradient=g) for g in (kj.GradientConfig(), kj.GradientConfig("smoothed", 1e-3, 0.05)))
    (a, da), (b, db) = (jax.jit(jax.value_and_grad(lambda x, c=c: speed(x, c)))(0.21) for c in (hard, soft))
    assert float(a) == float(b) == 0.0
    assert float(da) == 0.0 and float(db) < 0.0  # nearer means pushed away harder


@pytest.mark.skipif(not X64, reason="differences of gradients need double precision")
@pytest.mark.parametrize(
    "builder", [wheel(com=(0.5, 0, 0), gravity=(0, 0, -9.81)), wheel(drive="position", kp=50.0, target=1.0)], ids=["pendulum", "drive"]
)
def test_second_derivatives_are_differences_of_first_ones(builder):
    """A smooth motion has a finite, symmetric Hessian by masses and loads, also beside bodies without inverse mass."""
    model, state, control = start(builder)

    def swing(p):
        heavy = kj.replace(model, bodies=kj.replace(model.bodies, mass=model.bodies.mass * p[0]))
        loaded = kj.replace(control, w_ext=control.w_ext.at[0, 4].set(p[1]).at[0, 2].set(p[2]))
        last = kj.rollout(heavy, state, lambda *_: loaded, dt=0.01, steps=20, config=tight(), record=())[0]
        return last.q[0, 3] ** 2 + last.u[0, 4] ** 3

    p = jnp.array([1.2, 0.3, -0.4])
    gradient, h = jax.jit(jax.grad(swing)), 1e-5
    columns = [(gradient(p + h * e) - gradient(p - h * e)) / (2 * h) for e in jnp.eye(3)]
    hessian = jax.jit(jax.hessian(swing))(p)
    scale = float(jnp.max(jnp.abs(hessian)))
    assert scale > 1e-3
    np.testing.assert_allclose(hessian, jnp.stack(columns), atol=1e-7 * scale)  # h² of the differences
    np.testing.assert_allclose(hessian, hessian.T, atol=1e-10 * scale)
