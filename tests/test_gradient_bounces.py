"""Derivatives through impacts, and through flights in which nothing happens. G-numbers are those of the design note on gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import X64, ball, start, tight

import kamino_jax as kj

BOUNCE, HEIGHT, SPEED, RADIUS, TIMED = 0.8, 0.5, 2.0, 0.1, 0.5


def bouncing_program(impact_time, builder, look, steps=500):
    """(value, derivative) of look(last state) by look's own numbers p = (shift along the line of impact, speed)."""
    model, state, _ = start(builder)
    config = tight(impact_time=impact_time, constraints=dict(gamma=0.0))

    def end(p):
        moved = kj.replace(state, q=state.q.at[0, look].add(p[0]), u=state.u.at[0, look].set(p[1]))
        return kj.rollout(model, moved, dt=TIMED / steps, steps=steps, config=config, record=())[0].q[:, look]

    return jax.jit(lambda p: (end(p), jax.jacfwd(end)(p)))


def falling_ball():
    """A ball without weight, on its way down to the ground."""
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    builder.add_plane(restitution=BOUNCE, mu=0.0)
    ball(builder, "ball", RADIUS, 1.0, (0, 0, HEIGHT), restitution=BOUNCE, mu=0.0)
    return builder


@pytest.mark.skipif(not X64, reason="five hundred steps")
def test_a_bounce_turns_a_shift_of_the_start_around():
    """G2 with `impact_time`: z(T) = r + e s (T - (z0 - r)/s), dz/dz0 = -e and dz/ds = e T, within 1e-3 at a step of 1 ms."""
    value, slope = bouncing_program(True, falling_ball(), 2)(jnp.array([0.0, -SPEED]))
    expected = RADIUS + BOUNCE * SPEED * (TIMED - (HEIGHT - RADIUS) / SPEED)
    np.testing.assert_allclose(value[0], expected, atol=1e-3)
    np.testing.assert_allclose(slope[0], (-BOUNCE, -BOUNCE * TIMED), atol=1e-3)


@pytest.mark.skipif(not X64, reason="five hundred steps")
def test_a_bounce_at_fixed_steps_keeps_a_shift_of_the_start():
    """G2, google/brax#317: the step of the impact does not move with the start, so dz(T)/dz0 = +1, though z(T) itself falls with z0."""
    _, slope = bouncing_program(False, falling_ball(), 2)(jnp.array([0.0, -SPEED]))
    np.testing.assert_allclose(slope[0, 0], 1, atol=1e-9)


@pytest.mark.skipif(not X64, reason="five hundred steps")
def test_an_elastic_collision_passes_a_shift_on():
    """G3 with `impact_time`, equal balls: the second leaves with the first one's speed and shift: dx2/d(x1, v1) = (1, T)."""
    builder = kj.ModelBuilder(gravity=(0, 0, 0))
    ball(builder, "a", 0.1, 1.0, (0, 0, 0), restitution=1.0, mu=0.0)
    ball(builder, "b", 0.1, 1.0, (0.5203, 0, 0), restitution=1.0, mu=0.0)
    value, slope = bouncing_program(True, builder, 0)(jnp.array([0.0, 1.0]))
    np.testing.assert_allclose(value[1], 0.2 + TIMED, atol=1e-3)  # the shift of the first, a diameter on
    np.testing.assert_allclose(slope[1], (1, TIMED), atol=1e-3)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64] if X64 else [jnp.float32])
def test_a_body_in_free_fall_has_the_derivatives_of_free_fall(dtype):
    """A22, google/brax#387 (NaN, should be 1): dx_T/dx_0 = 1, dz_T/dv = 0.5 s; nothing is NaN on the way, forward equals reverse."""
    builder = kj.ModelBuilder()
    ball(builder, "ball", 0.1, 1.0, (0, 0, 3.0))
    builder.add_body("still", mass=1.0, inertia=(1, 1, 1), position=(1, 0, 0))
    for kind in ("fixed", "spherical", "universal"):
        builder.add_body(kind, mass=1.0, inertia=(1, 1, 1), position=(2, 0, 0))
        builder.add_joint(kind, None, kind, at=(2, 0, 0))
    model, state, _ = start(builder, dtype=dtype)

    def end(qu):
        last, _ = kj.rollout(model, kj.replace(state, q=qu[0], u=qu[1]), dt=5e-3, steps=100, record=())
        return last.q, last.u

    with jax.debug_nans(True):
        forward = jax.jit(jax.jacfwd(end))((state.q, state.u))
        reverse = jax.jit(jax.jacrev(end))((state.q, state.u))
    (by_q, by_u), _ = forward
    close = dict(rtol=1e-5, atol=1e-5) if dtype == jnp.float32 else dict(rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(by_q[0, :3, 0, :3], np.eye(3), **close)
    np.testing.assert_allclose(by_u[0, :3, 0, :3], 0.5 * np.eye(3), **close)
    for a, b in zip(jax.tree.leaves(forward), jax.tree.leaves(reverse), strict=True):
        assert np.all(np.isfinite(a))
        np.testing.assert_allclose(a, b, atol=1e-6 * max(1, np.abs(a).max()))
