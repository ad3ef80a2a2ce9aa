"""Problems of batches and compilation that users of other simulators have reported, with the right answers.

Each docstring names the public report. Equality is bit for bit unless a test says otherwise.
"""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import KEPT, X64, ball, batched_rollout, cube, start, tight, worlds

import kamino_jax as kj
from kamino_jax.status import NOT_FINITE

CONFIG = tight(dynamics=KEPT, padmm=dict.fromkeys(("primal_tolerance", "dual_tolerance", "compl_tolerance"), 1e-9 if X64 else 1e-6))
DTYPES = ["float32", "float64"] if X64 else ["float32"]
DT = 5e-3


def select(mask, a, b):
    """Worlds of `a` where the mask is true, else of `b`."""
    return jax.tree.map(lambda x, y: jnp.where(jnp.reshape(jnp.asarray(mask), (-1, *[1] * (x.ndim - 1))), x, y), a, b)


def same(a, b):
    """Whether all arrays of two trees are equal, bit for bit."""
    return all(jax.tree.leaves(jax.tree.map(np.array_equal, a, b)))


def world(tree, index):
    """One or several worlds of a stacked tree."""
    return jax.tree.map(lambda x: np.asarray(x)[index], tree)


# ---- resetting some worlds -------------------------------------------------------------------------------------------


find = jax.jit(jax.vmap(lambda model, state: kj.collide(model, state, CONFIG)))


@functools.cache
def resting_balls():
    """Two worlds with a ball that starts at 1 m, and their state with both balls at rest on the plane."""

    def build(_):
        builder = kj.ModelBuilder()
        builder.add_plane(gap=0.005)
        ball(builder, "ball", 0.1, 1.0, (0, 0, 1.0), gap=0.005)
        return builder

    models, states, controls = worlds(range(2), build)
    placed = kj.replace(states, q=states.q.at[:, 0, 2].set(0.1))
    return models, controls, advance_balls(models, controls, placed)[0]


def advance_balls(models, controls, states):
    """50 steps: (states, record)."""
    return batched_rollout(models, states, controls, DT, 50, CONFIG, ("q", "u", "status", "contacts"))


CHOSEN = pytest.mark.parametrize("chosen", [0, 1])


@CHOSEN
def test_resetting_one_world_hides_only_its_own_contact(chosen):
    """google-deepmind/mujoco#3572: with one counter for all worlds, a reset hid or moved the other world's contact."""
    models, _, resting = resting_balls()
    assert np.all(find(models, resting).active)
    after = select(np.arange(2) == chosen, kj.initial_state(models), resting)
    contacts = find(models, after)
    np.testing.assert_array_equal(contacts.active[:, 0], np.arange(2) != chosen)
    assert same(world(contacts, 1 - chosen), world(find(models, resting), 1 - chosen))


@CHOSEN
def test_a_world_that_is_not_reset_goes_on_as_if_nothing_happened(chosen):
    """google-deepmind/mujoco#3572. The other one falls from rest."""
    models, controls, resting = resting_balls()
    _, untouched = advance_balls(models, controls, resting)
    last, record = advance_balls(models, controls, select(np.arange(2) == chosen, kj.initial_state(models), resting))
    assert same(world(record, 1 - chosen), world(untouched, 1 - chosen))
    assert np.all(record["contacts"].active[1 - chosen])
    assert not np.any(record["contacts"].active[chosen])
    np.testing.assert_allclose(last.u[chosen, 0, 2], -9.81 * 50 * DT, rtol=1e-5)


# ---- one world without numbers ---------------------------------------------------------------------------------------


ILL, HEALTHY = 2, [0, 1, 3]
POISONS = {
    "velocity": lambda s: kj.replace(s, u=s.u.at[ILL, 0, 0].set(jnp.nan)),
    "position": lambda s: kj.replace(s, q=s.q.at[ILL, 0, 2].set(jnp.nan)),
    "rotation": lambda s: kj.replace(s, q=s.q.at[ILL, 0, 5].set(jnp.inf)),
}


@functools.cache
def sliding_boxes():
    """Four worlds with a box that slides and spins on a plane."""

    def build(i):
        builder = kj.ModelBuilder()
        builder.add_plane(gap=0.005)
        cube(builder, "box", 0.2, 1.0, (0, 0, 0.1), velocity=(0.3 + 0.1 * i, 0, 0), angular_velocity=(0, 0, 0.5), gap=0.005)
        return builder

    return worlds(range(4), build)


def advance_boxes(states, repeats):
    """Ten steps at a time: (states, record (worlds, 10 repeats, ...))."""
    models, _, controls = sliding_boxes()
    records = []
    for _ in range(repeats):
        states, record = batched_rollout(models, states, controls, DT, 10, CONFIG, ("q", "u", "status"))
        records.append(jax.tree.map(np.asarray, record))
    return states, jax.tree.map(lambda *x: np.concatenate(x, axis=1), *records)


@functools.cache
def clean_boxes():
    """Record of 110 undisturbed steps."""
    return advance_boxes(sliding_boxes()[1], 11)[1]


@functools.cache
def poisoned_boxes(poison):
    """State and record of ten steps of which the first begins with a world that is ill."""
    return advance_boxes(POISONS[poison](sliding_boxes()[1]), 1)


EVERY_POISON = pytest.mark.parametrize("poison", POISONS)


@EVERY_POISON
def test_an_ill_world_is_named_on_every_step(poison):
    """newton-physics/newton#2552. NaN dropped out of residual maxima, so that an ill world read converged with residuals 0."""
    status = poisoned_boxes(poison)[1]["status"]
    assert np.all(status.code[ILL] == NOT_FINITE)
    assert not status.converged[ILL].any()
    assert status.converged[HEALTHY].all()
    with pytest.raises(RuntimeError, match=r"not finite.*\(2, 0\), \(2, 1\)"):
        kj.raise_if_failed(status)


@EVERY_POISON
def test_an_ill_world_stays_alone(poison):
    """newton-physics/newton#2552: batch-wide residuals take in the NaN. Healthy worlds stop at the same iteration as before."""
    clean = jax.tree.map(lambda x: x[:, :10], clean_boxes())
    assert clean["status"].iterations[HEALTHY].max() > 1
    assert same(world(poisoned_boxes(poison)[1], HEALTHY), world(clean, HEALTHY))


@EVERY_POISON
def test_an_ill_world_is_revived_by_a_reset(poison):
    """newton-physics/newton#2552: stale buffers made the step after a reset NaN again."""
    after, _ = poisoned_boxes(poison)
    _, record = advance_boxes(select(np.arange(4) == ILL, sliding_boxes()[1], after), 10)
    fresh, later = (jax.tree.map(lambda x, s=s: x[:, s], clean_boxes()) for s in (slice(0, 100), slice(10, 110)))
    assert same(world(record, ILL), world(fresh, ILL))
    assert same(world(record, HEALTHY), world(later, HEALTHY))


# ---- compilations ----------------------------------------------------------------------------------------------------


def box_on_plane(mu=0.5, mass=1.0):
    builder = kj.ModelBuilder()
    builder.add_plane(mu=mu)
    cube(builder, "box", 0.2, mass, (0, 0, 0.1), mu=mu)
    return builder


def types(tree):
    """Shape, type and weak type of every array."""
    return jax.tree.map(lambda x: (x.shape, x.dtype, getattr(x, "weak_type", False)), tree)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_step_compiles_once(dtype):
    """google-deepmind/mujoco#2306: a weakly typed field compiled the second step anew. Values are no part of the program."""
    model, state, control = start(box_on_plane(), dtype=np.dtype(dtype))
    chex.clear_trace_counter()

    @jax.jit
    @chex.assert_max_traces(n=1)
    def step(model, state, control, dt):
        return kj.step(model, state, control, dt=dt)

    stepped, _ = step(model, state, control, DT)
    for begin in (state, stepped, jax.tree.map(lambda a, b: jnp.where(True, a, b), state, stepped)):
        for _ in range(3):
            begin, _ = step(model, begin, control, DT)
    other, _, _ = start(box_on_plane(mu=0.1, mass=3.0), dtype=np.dtype(dtype))
    lighter = kj.replace(model, bodies=kj.replace(model.bodies, mass=0.5 * model.bodies.mass))
    floating = kj.replace(model, gravity=0 * model.gravity)
    ends = [step(edited, state, control, dt)[0] for edited, dt in ((other, DT), (lighter, DT), (floating, DT), (model, 0.5 * DT))]
    assert all(types(end) == types(state) for end in ends)
    if hasattr(step, "_cache_size"):
        assert step._cache_size() == 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_state_may_be_carried_by_a_scan(dtype):
    """google-deepmind/mujoco#2306: types of the carry must not change, neither from a new state nor from a used one."""
    model, state, _ = start(box_on_plane(), dtype=np.dtype(dtype))
    one = lambda state: kj.step(model, state, dt=DT)[0]
    after = jax.eval_shape(one, state)
    assert types(after) == types(state)
    assert types(jax.eval_shape(one, after)) == types(after)
    ten = jax.eval_shape(lambda s: jax.lax.scan(lambda s, _: (one(s), None), s, length=10)[0], state)
    assert types(ten) == types(state)
