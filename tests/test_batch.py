"""Worlds side by side: stacking, padding, sorting by size."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import kamino_jax as kj
from kamino_jax.batch import bucket, common_layout, pad_to, stack, unstack
from kamino_jax.builder import ModelBuilder
from kamino_jax.scenes import SCENES, boxes_fourbar, boxes_nunchaku, pendulum_chain

# Padding reorders no sum of a world, but it may change how a compiler groups them.
PADDING_ROUNDING = 1e3


def rounding(dtype):
    return PADDING_ROUNDING * float(jnp.finfo(dtype).eps)


@functools.cache
def model_of(name):
    return SCENES[name]()[0]


def models(*names):
    return [model_of(name) for name in names]


MIXED = ("boxes_fourbar", "boxes_nunchaku", "cartpole", "all_joints", "box_on_plane")


def test_unstack_undoes_stack():
    worlds = [pendulum_chain(2, angle=a) for a in (0.0, 0.3, 0.6)]
    for world, back in zip(worlds, unstack(stack(worlds)), strict=True):
        jax.tree.map(np.testing.assert_array_equal, world, back)


def test_worlds_that_differ_in_numbers_only_stack():
    worlds = stack([pendulum_chain(2, angle=a)[0] for a in (0.0, 0.3)])
    assert worlds.start.q.shape == (2, 2, 7)
    assert worlds.layout == pendulum_chain(2)[0].layout


@pytest.mark.parametrize("make", [kj.initial_state, kj.zero_control], ids=["state", "control"])
def test_start_of_stacked_worlds_is_the_stack_of_their_starts(make):
    worlds = [boxes_fourbar(height=h)[0] for h in (0.0, 0.1)]
    jax.tree.map(np.testing.assert_array_equal, make(stack(worlds)), stack([make(m) for m in worlds]))


def test_stacking_nothing_is_refused():
    with pytest.raises(ValueError, match="nothing to stack"):
        stack([])


def test_stacking_unequal_models_names_the_counts_and_the_remedy():
    with pytest.raises(ValueError, match="nb 4 against 3.*rows.njk 20 against 6.*pad_to.*bucket"):
        stack(models("boxes_fourbar", "boxes_nunchaku"))


def test_stacking_unequal_states_names_the_shapes():
    with pytest.raises(ValueError, match=r"\(4, 7\) against \(3, 7\)"):
        stack([kj.initial_state(m) for m in models("boxes_fourbar", "boxes_nunchaku")])


def test_stacking_different_things_is_refused():
    model, state, control = boxes_fourbar()
    with pytest.raises(ValueError, match="structure"):
        stack([state, control])


def test_unstacking_a_single_world_is_refused():
    with pytest.raises(ValueError, match="world axis"):
        unstack(boxes_fourbar()[0])


def test_bucket_groups_by_layout_in_order():
    groups = bucket(models("boxes_fourbar", "cartpole", "boxes_fourbar", "box_on_plane", "cartpole"))
    assert [members for members, _ in groups] == [(0, 2), (1, 4), (3,)]
    assert [m.start.q.shape[0] for _, m in groups] == [2, 2, 1]


def test_common_layout_of_one_model_is_its_own():
    (model,) = models("boxes_fourbar")
    assert common_layout([model]) == model.layout
    assert pad_to(model, model.layout) is model


def test_common_layout_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no models"):
        common_layout([])


def test_padding_into_too_small_a_layout_names_what_lacks():
    fourbar, nunchaku = models("boxes_fourbar", "boxes_nunchaku")
    with pytest.raises(ValueError, match="nb 3 but 4 needed.*2 plane_box pairs but 4 needed.*'revolute' missing.*common_layout"):
        pad_to(fourbar, nunchaku.layout)


def test_padded_models_of_all_sizes_stack():
    worlds = models(*SCENES)
    layout = common_layout(worlds)
    stacked = stack([pad_to(m, layout) for m in worlds])
    assert stacked.start.q.shape == (len(SCENES), layout.nb, 7)
    assert stacked.topology.row.shape == (len(SCENES), layout.rows.nj)
    assert stacked.topology.pair.shape == (len(SCENES), sum(n for _, n in layout.pairs), 2)
    assert all(np.isfinite(x).all() for x in jax.tree.leaves((stacked.bodies, stacked.geoms, stacked.start)))


@pytest.mark.parametrize("name", MIXED)
def test_padding_keeps_what_was_there(name):
    (model,) = models(name)
    layout = common_layout(models(*MIXED))
    padded, small = pad_to(model, layout), model.layout
    top, own = padded.topology, model.topology
    for field in ("mass", "inertia", "com"):
        np.testing.assert_array_equal(getattr(padded.bodies, field)[: small.nb], getattr(model.bodies, field))
    for field in ("armature", "effort_max", "q_min"):
        np.testing.assert_array_equal(getattr(padded.joints, field)[: small.nv], getattr(model.joints, field))
    np.testing.assert_array_equal(top.row[top.row_on], own.row)
    np.testing.assert_array_equal(top.row_dof[top.row_on], own.row_dof)
    np.testing.assert_array_equal(top.pair[top.pair_on], own.pair)
    np.testing.assert_array_equal(top.pair_flip[top.pair_on], own.pair_flip)
    entry = np.asarray(top.entry)[: small.nj]
    np.testing.assert_array_equal(np.where(entry == layout.nq, small.nq, entry), own.entry)


@pytest.mark.parametrize("name", MIXED)
def test_padding_adds_nothing_that_acts(name):
    (model,) = models(name)
    layout = common_layout(models(*MIXED))
    padded, small = pad_to(model, layout), model.layout
    assert not np.any(padded.topology.moves[small.nb :]) and not np.any(padded.topology.turns[small.nb :])
    assert not np.any(padded.joints.effort_max[small.nv :])
    assert np.all(np.isinf(padded.joints.q_max[small.nv :]))
    assert np.array_equal(padded.topology.base[small.nj :], padded.topology.follower[small.nj :])
    assert padded.topology.row_on.sum() == small.rows.nj
    assert padded.topology.pair_on.sum() == len(model.topology.pair)


def test_rows_of_each_family_stay_in_their_place():
    layout = common_layout(models(*MIXED))
    padded = pad_to(models("boxes_fourbar")[0], layout)
    on, rows = np.asarray(padded.topology.row_on), layout.rows
    assert [int(on[s].sum()) for s in (rows.dynamic, rows.kinematic, rows.friction, rows.effort, rows.limit)] == [0, 20, 0, 0, 4]


def test_dofs_may_be_padded_without_room_for_a_joint():
    """One hinge and one universal joint: as many joints, but not as many DoFs."""
    worlds = []
    for kind, options in {"revolute": {"axis": "x"}, "universal": {}}.items():
        builder = ModelBuilder()
        builder.add_body("rod", mass=1, inertia=(1, 1, 1))
        builder.add_joint(kind, None, "rod", at=(0, 0, 0), **options)
        worlds.append(builder.finalize())
    layout = common_layout(worlds)
    assert (layout.nj, layout.nv) == (1, 2)
    assert pad_to(worlds[0], layout).joints.effort_max[1] == 0


def test_a_padded_world_moves_like_the_bare_one():
    """Three steps of two mechanisms in contact, one program for both, with efforts even on the padded DoFs."""
    bare = [boxes_fourbar(height=-1e-3)[0], boxes_nunchaku(height=-1e-3)[0]]
    layout = common_layout(bare)
    worlds = stack([pad_to(m, layout) for m in bare])

    def run(advance, model, tau):
        state, control = kj.initial_state(model), kj.replace(kj.zero_control(model), tau=tau)
        for _ in range(3):
            state, info = advance(model, state, control)
        return state, info.status.iterations

    def one_step(model, state, control):
        return kj.step(model, state, control, dt=0.002)

    tau = 0.01 * jnp.ones((2, layout.nv), worlds.dtype)
    padded, iterations = run(jax.jit(jax.vmap(one_step)), worlds, tau)
    for i, model in enumerate(bare):
        state, count = run(jax.jit(one_step), model, tau[i, : model.layout.nv])
        assert iterations[i] == count
        for field, n in (("q", model.layout.nb), ("u", model.layout.nb), ("joint_q", model.layout.nq)):
            np.testing.assert_allclose(getattr(padded, field)[i, :n], getattr(state, field), atol=rounding(model.dtype))
        idle = pad_to(model, layout).start.q[model.layout.nb :]
        np.testing.assert_array_equal(padded.q[i, model.layout.nb :], idle)
