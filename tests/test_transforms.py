"""What JAX does to a step must not change it: vmap, jit, scan, batch position, padding, compilation."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import tight

import kamino_jax as kj
from kamino_jax import scenes
from kamino_jax.status import NOT_FINITE

CONFIG = kj.Config(padmm=kj.PADMMConfig(rho_0=0.1))
DT = 2.5e-3


@functools.cache
def fourbar():
    """A four-bar on the ground that falls, slides and is driven: every family of rows but friction and effort."""
    model, state, control = scenes.boxes_fourbar()
    return model, kj.replace(state, u=state.u + jnp.asarray([0.3, 0.1, 0, 0, 0.2, 0.1], state.u.dtype)), control


@functools.cache
def batched_step():
    return jax.jit(jax.vmap(lambda m, s, c: kj.step(m, s, c, dt=DT, config=CONFIG)))


def perturbed(n):
    """N worlds of one mechanism with different masses and speeds."""
    model, state, control = fourbar()
    models, states = [], []
    for k in range(n):
        scale = 1 + 0.05 * k
        bodies = kj.replace(model.bodies, mass=model.bodies.mass * scale)
        models.append(kj.replace(model, bodies=bodies))
        states.append(kj.replace(state, u=state.u * scale))
    return kj.stack(models), kj.stack(states), kj.stack([control] * n)


def run(models, states, controls, steps=5):
    infos = []
    for _ in range(steps):
        states, info = batched_step()(models, states, controls)
        infos.append(info.status)
    return states, infos


def take(tree, index):
    return jax.tree.map(lambda x: x[index], tree)


def test_a_world_is_the_same_bit_for_bit_at_any_place_in_the_batch():
    worlds = perturbed(7)
    states, infos = run(*worlds)
    order = np.array([3, 6, 0, 5, 1, 4, 2])
    moved, moved_infos = run(*(take(w, order) for w in worlds))
    chex.assert_trees_all_equal(moved, take(states, order))
    chex.assert_trees_all_equal(moved_infos, take(infos, order))


def test_vmap_is_a_loop_up_to_rounding():
    models, states, controls = perturbed(3)
    batch, _ = batched_step()(models, states, controls)
    single = jax.jit(lambda m, s, c: kj.step(m, s, c, dt=DT, config=CONFIG))
    for k in range(3):
        alone, _ = single(take(models, k), take(states, k), take(controls, k))
        # summation order differs between programs
        chex.assert_trees_all_close(alone.q, batch.q[k], atol=1e-6)
        chex.assert_trees_all_close(alone.u, batch.u[k], atol=2e-5)


def test_a_step_without_jit_is_the_same_up_to_rounding():
    model, state, _ = scenes.pendulum_chain(1)
    config = kj.Config(padmm=kj.PADMMConfig(max_iterations=3))
    bare, _ = kj.step(model, state, dt=DT, config=config)
    jitted, _ = jax.jit(lambda s: kj.step(model, s, dt=DT, config=config))(state)
    chex.assert_trees_all_close(bare.u, jitted.u, atol=1e-5)


def test_a_rollout_is_a_loop_of_steps():
    model, state, control = fourbar()
    last, seen = jax.jit(lambda s: kj.rollout(model, s, lambda *_: control, dt=DT, steps=4, config=CONFIG))(state)
    single = jax.jit(lambda s: kj.step(model, s, control, dt=DT, config=CONFIG))
    for k in range(4):
        state, info = single(state)
        chex.assert_trees_all_close(seen["q"][k], state.q, atol=1e-6)
        assert seen["status"].converged[k] == info.status.converged
    chex.assert_trees_all_equal(last.q, seen["q"][-1])


def test_controls_come_as_a_sequence_or_from_a_policy():
    model, state, control = scenes.cartpole()
    sequence = jax.tree.map(lambda x: jnp.broadcast_to(x, (6, *x.shape)), control)
    sequence = kj.replace(sequence, tau=sequence.tau.at[:, 0].set(jnp.arange(6.0, dtype=sequence.tau.dtype)))
    policy = lambda state, k: kj.replace(control, tau=control.tau.at[0].set(k.astype(control.tau.dtype)))
    by_sequence, _ = jax.jit(lambda s: kj.rollout(model, s, sequence, dt=DT, config=CONFIG))(state)
    by_policy, _ = jax.jit(lambda s: kj.rollout(model, s, policy, dt=DT, steps=6, config=CONFIG))(state)
    chex.assert_trees_all_close(by_sequence.q, by_policy.q, atol=1e-7)
    assert float(by_sequence.u[0, 0] ** 2 + by_sequence.u[0, 1] ** 2) > 0


def test_a_rollout_refuses_what_it_cannot_record():
    model, state, _ = fourbar()
    with pytest.raises(ValueError, match="cannot record.*known are q, u"):
        kj.rollout(model, state, dt=DT, steps=2, record=("poses",))
    with pytest.raises(ValueError, match="needs steps"):
        kj.rollout(model, state, dt=DT)


def test_numbers_do_not_recompile():
    model, state, control = scenes.box_on_plane()
    traced = jax.jit(chex.assert_max_traces(lambda m, s, c, dt: kj.step(m, s, c, dt=dt, config=CONFIG), n=1))
    for scale in (1.0, 2.0):
        bodies = kj.replace(model.bodies, mass=model.bodies.mass * scale)
        geoms = kj.replace(model.geoms, mu=model.geoms.mu * scale)
        edited = kj.replace(model, bodies=bodies, geoms=geoms, gravity=model.gravity * scale)
        state, _ = traced(edited, state, control, 0.001 * scale)


def test_states_have_strong_types_that_a_scan_can_carry():
    model, state, control = scenes.box_on_plane()
    after, _ = jax.eval_shape(lambda m, s, c: kj.step(m, s, c, dt=0.001, config=CONFIG), model, state, control)
    before = jax.eval_shape(lambda s: s, state)
    assert jax.tree.map(lambda x: (x.shape, x.dtype), before) == jax.tree.map(lambda x: (x.shape, x.dtype), after)
    assert not any(x.weak_type for x in jax.tree.leaves(after))


def count_equations(jaxpr):
    inner = [
        p
        for eqn in jaxpr.eqns
        for p in jax.tree.leaves(list(eqn.params.values()), is_leaf=lambda x: hasattr(x, "eqns") or hasattr(x, "jaxpr"))
    ]
    nested = [getattr(p, "jaxpr", p) for p in inner if hasattr(p, "eqns") or hasattr(p, "jaxpr")]
    return len(jaxpr.eqns) + sum(count_equations(j) for j in nested if hasattr(j, "eqns"))


def equations_of(scene):
    model, state, control = scene
    step = lambda m, s, c: kj.step(m, s, c, dt=DT, config=CONFIG)
    return count_equations(jax.make_jaxpr(step)(model, state, control).jaxpr)


SIZES = {
    "joints": (lambda n: scenes.pendulum_chain(n), 3, 20),
    "contacts": (lambda n: scenes.box_stack(n), 3, 6),
}


@pytest.mark.parametrize("what", SIZES)
def test_the_traced_program_does_not_grow_with_the_scene(what):
    build, few, many = SIZES[what]
    assert equations_of(build(few)) == equations_of(build(many))


def test_padding_changes_nothing():
    cartpole, chain = scenes.cartpole(), scenes.pendulum_chain(4)
    layout = kj.common_layout([cartpole[0], chain[0]])
    step = jax.jit(lambda m, s: kj.step(m, s, dt=DT, config=tight(padmm=dict(max_iterations=3000))))
    for model, state, _ in (cartpole, chain):
        padded = kj.pad_to(model, layout)
        bare, info = step(model, state)
        wide, same = step(padded, kj.initial_state(padded))
        n = model.layout.nb
        chex.assert_trees_all_close(wide.q[:n], bare.q, atol=1e-6)
        chex.assert_trees_all_close(wide.u[:n], bare.u, atol=1e-5)
        assert info.status.converged == same.status.converged


def test_a_nan_world_stays_alone_and_says_so():
    models, states, controls = perturbed(4)
    broken = kj.replace(states, u=states.u.at[2, 0, 0].set(jnp.nan))
    clean, clean_infos = run(models, states, controls)
    after, infos = run(models, broken, controls)
    healthy = np.array([0, 1, 3])
    chex.assert_trees_all_equal(take(after, healthy), take(clean, healthy))
    chex.assert_trees_all_equal(take(infos, healthy), take(clean_infos, healthy))
    for status in infos:
        assert int(status.code[2]) == NOT_FINITE and not bool(status.converged[2])
    with pytest.raises(RuntimeError, match=r"not finite.*index 2"):
        kj.raise_if_failed(infos[-1])


SHAPES = {
    "state.q": (lambda m, s, c: (m, kj.replace(s, q=s.q[:-1]), c), r"state.q has shape"),
    "control.tau": (lambda m, s, c: (m, s, kj.replace(c, tau=c.tau[:-1])), r"control.tau has shape"),
    "stacked": (lambda m, s, c: (kj.stack([m, m]), s, c), r"use jax.vmap"),
}


@pytest.mark.parametrize("case", SHAPES)
def test_wrong_shapes_are_named(case):
    """At trace time, before anything is compiled."""
    change, message = SHAPES[case]
    with pytest.raises(ValueError, match=message):
        kj.step(*change(*fourbar()), dt=DT)


@pytest.mark.parametrize("dt", (0, -0.1, float("nan")))
def test_time_goes_forward(dt):
    with pytest.raises(ValueError, match="must be positive"):
        kj.step(*fourbar(), dt=dt)
