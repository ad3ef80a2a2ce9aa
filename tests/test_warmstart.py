"""Warm starts: a guess carries the last reactions to today's contacts; it never changes what is solved."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import ball, rollout, start, step, tight

import kamino_jax as kj
from kamino_jax import warmstart
from kamino_jax.collision import collide
from kamino_jax.config import CONTACT_WARM_STARTS
from kamino_jax.dynamics.assemble import assemble
from kamino_jax.joints.kinematics import joint_kinematics

DT = 2e-3


def sliding_box(speed=(0.2, 0.0, 0.0), mu=0.5):
    builder = kj.ModelBuilder()
    builder.add_plane(mu=mu)
    builder.add_body("box", mass=1.0, inertia=(1 / 150,) * 3, position=(0, 0, 0.1 - 1e-7), velocity=speed)
    builder.add_box("box", (0.1,) * 3, mu=mu)
    return start(builder)


def guess_for(model, state, control, **settings):
    """The guess of the next step, with its problem."""
    config = kj.Config(padmm=kj.PADMMConfig(**settings))

    def build(state):
        contacts = collide(model, state.q, config)
        kinematics = joint_kinematics(model, state.q, state.u, state.joint_q, "twopi")
        problem, rows = assemble(model, state.q, state.u, control, kinematics, contacts, dt=jnp.asarray(DT, model.dtype), config=config)
        return warmstart.guess(problem, contacts, rows, state.reactions, DT, config.padmm), problem

    return jax.jit(build)(state)


def after_one_step(scene):
    model, state, control = scene
    state, info = step(model, state, control, dt=DT, config=tight())
    return model, state, control, ordered(info.lam)


def ordered(lam):
    """Contact impulses (nc, 3) by size: slots change places as corners take turns in being deepest."""
    lam = np.asarray(lam).reshape(-1, 3)
    return lam[np.lexsort(lam.round(7).T)]


@pytest.mark.parametrize("method", CONTACT_WARM_STARTS)
def test_every_method_carries_the_load_of_a_resting_box(method):
    model, state, control, lam = after_one_step(sliding_box(speed=(0, 0, 0)))
    guess, _ = guess_for(model, state, control, contact_warmstart_method=method)
    np.testing.assert_allclose(ordered(guess.lam), lam, atol=1e-6)


def test_contacts_are_matched_where_the_body_carried_them():
    model, state, control, lam = after_one_step(sliding_box())
    guess, _ = guess_for(model, state, control)
    np.testing.assert_allclose(ordered(guess.lam), lam, atol=1e-6)
    far = kj.replace(state, reactions=kj.replace(state.reactions, point=state.reactions.point + 1e-3))
    lost, _ = guess_for(model, far, control)
    assert not np.asarray(lost.lam).any()
    found, _ = guess_for(model, far, control, contact_warmstart_distance=2e-3)
    np.testing.assert_array_equal(found.lam, guess.lam)


def test_a_lost_contact_gets_its_share_of_the_pairs_net_force():
    model, state, control, lam = after_one_step(sliding_box())
    far = kj.replace(state, reactions=kj.replace(state.reactions, point=state.reactions.point + 1e-3))
    method = "key_and_position_with_net_force_backup"
    guess = np.asarray(guess_for(model, far, control, contact_warmstart_method=method)[0].lam).reshape(-1, 3)
    np.testing.assert_allclose(guess.sum(0), lam.sum(0), atol=1e-6)
    np.testing.assert_allclose(guess, np.broadcast_to(lam.mean(0), lam.shape), atol=1e-6)


def test_tangential_forces_are_balanced_within_the_cone():
    model, state, control, lam = after_one_step(sliding_box())
    method = "key_and_position_with_tangential_net_force"
    guess = np.asarray(guess_for(model, state, control, contact_warmstart_method=method)[0].lam).reshape(-1, 3)
    np.testing.assert_allclose(np.sort(guess[:, 2]), np.sort(lam[:, 2]), atol=1e-6)
    assert (np.linalg.norm(guess[:, :2], axis=1) <= 0.5 * guess[:, 2] + 1e-6).all()
    shared = np.broadcast_to(lam[:, :2].mean(0), (4, 2))
    free = np.linalg.norm(shared, axis=1) <= 0.5 * guess[:, 2]
    np.testing.assert_allclose(guess[free, :2], shared[free], atol=1e-6)


def test_a_reaction_of_another_pair_is_not_taken():
    model, state, control, _ = after_one_step(sliding_box())
    other = kj.replace(state, reactions=kj.replace(state.reactions, key=state.reactions.key + 1))
    for method in CONTACT_WARM_STARTS:
        assert not np.asarray(guess_for(model, other, control, contact_warmstart_method=method)[0].lam).any()


MODES = {"none": dict(warmstart_mode="none"), "internal": dict(warmstart_mode="internal"), "containers": {}}


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_does_not_change_the_motion(mode):
    builder = kj.ModelBuilder()
    builder.add_plane(mu=0.3)
    ball(builder, "ball", 0.1, 1.0, (0, 0, 0.1 - 1e-7), velocity=(1, 0, 0), mu=0.3)
    model, state, control = start(builder)
    last, seen = rollout(model, state, control, dt=DT, steps=30, config=tight(padmm=MODES[mode]))
    np.testing.assert_allclose(last.u[0, 0], 1 - 0.3 * 9.81 * 30 * DT, atol=1e-5)
    assert np.asarray(seen["status"].converged).all()


def test_nothing_is_remembered_at_the_start():
    model, state, control = sliding_box()
    guess, problem = guess_for(model, state, control)
    assert not np.asarray(guess.lam).any() and problem.rows.nc == 4
