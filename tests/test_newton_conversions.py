"""States, controls and contacts between Newton and us. Needs the extra `newton`."""

import functools
from types import SimpleNamespace

import jax
import numpy as np
import pytest

pytest.importorskip("newton")
import newton
import warp as wp
from newton_scenes import (
    DT,
    NO_TURN,
    OURS,
    ROUNDING,
    SCENES,
    basics,
    beside,
    cube,
    joints_beside,
    new_builder,
    newtons_end,
    numbers,
    pose,
    slider,
)
from support import X64

import kamino_jax as kj
from kamino_jax.newton import from_newton

pytestmark = [
    pytest.mark.newton,
    pytest.mark.skipif(not X64, reason="compares with single precision, so needs double"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*[Nn]ewton.*"),
]


def test_a_state_survives_the_round_trip():
    model, worlds, moved, _ = beside()
    back = model.state()
    for bucket in worlds.buckets:
        bucket.write_state(bucket.state(moved), back)
    for name in ("body_q", "body_qd", "joint_q", "joint_qd"):
        np.testing.assert_allclose(getattr(back, name).numpy(), getattr(moved, name).numpy(), atol=5 * ROUNDING, err_msg=name)


def test_a_state_keeps_the_centre_of_mass_and_counts_turns():
    b = new_builder()
    link = b.add_link(xform=pose(1, 2, 3), mass=2.0, com=wp.vec3(0.1, 0.2, 0.3), inertia=NO_TURN, lock_inertia=True)
    b.add_articulation([b.add_joint_revolute(-1, link, parent_xform=pose(1, 2, 3), axis=(0, 0, 1))])
    b.joint_q[0] = 2 * np.pi
    model = b.finalize()
    worlds, state = from_newton(model), model.state()
    assert np.allclose(worlds.model.start.q[0, 0, :3], (1.1, 2.2, 3.3), atol=ROUNDING)
    assert np.allclose(worlds.model.start.joint_q, 2 * np.pi)
    ours = worlds.state(state)
    worlds.write_state(kj.replace(ours, q=ours.q.at[0, 0, 2].add(0.5)), state)
    assert np.allclose(state.body_q.numpy()[0, :3], (1, 2, 3.5), atol=ROUNDING)
    assert np.allclose(state.joint_q.numpy(), 2 * np.pi)
    state.joint_q_prev = wp.array([-2 * np.pi], dtype=wp.float32)
    assert np.allclose(worlds.state(state).joint_q, -2 * np.pi)


def test_a_control_arrives_entry_by_entry():
    model, worlds, _, _ = joints_beside()
    control, state = model.control(), model.state()
    sizes = {"joint_f": model.joint_dof_count, "joint_target_q": model.joint_coord_count, "joint_target_qd": model.joint_dof_count}
    for name, n in sizes.items():
        getattr(control, name).assign(1 + np.arange(n, dtype=np.float32))
    state.body_f.assign(np.arange(6 * model.body_count, dtype=np.float32).reshape(-1, 6))
    for bucket in worlds.buckets:
        ours = numbers(bucket.control(control, state))
        np.testing.assert_array_equal(ours.tau, 1 + bucket.dofs)
        np.testing.assert_array_equal(ours.q_ref, 1 + bucket.coordinates)
        np.testing.assert_array_equal(ours.u_ref, 1 + bucket.dofs)
        np.testing.assert_array_equal(ours.w_ext[..., 0], 6 * bucket.bodies)
        assert not numbers(bucket.control(control)).w_ext.any()


def test_a_zero_target_of_a_ball_joint_is_the_identity():
    model = basics.build_boxes_nunchaku(new_builder(), new_world=False).finalize()
    worlds, control = from_newton(model), model.control()
    control.joint_target_q.zero_()
    np.testing.assert_array_equal(worlds.control(control).q_ref[0].reshape(-1)[-8:], [0, 0, 0, 1, 0, 0, 0, 1])


def test_contacts_of_every_world_equal_those_that_we_find():
    model, worlds, end, _ = beside()
    pipeline = newton.CollisionPipeline(model)
    contacts = pipeline.contacts()
    pipeline.collide(end, contacts)
    total, lying = 0, [list(SCENES).index(name) for name in ("hinged", "nunchaku", "fourbar")]
    for bucket in (b for b in worlds.buckets if set(b.worlds) & set(lying)):
        state = bucket.state(end)
        given = numbers(bucket.contacts(contacts, end))
        own = numbers(jax.vmap(kj.collide)(bucket.model, state))
        total += given.found.sum()
        np.testing.assert_array_equal(given.found, own.found)
        for w in range(len(bucket.worlds)):
            assert given.active[w].sum() == given.found[w]
            for i in np.flatnonzero(given.active[w]):
                same = np.flatnonzero(own.active[w] & (own.key[w] == given.key[w, i]))
                j = same[np.argmin(np.abs(own.point_b[w, same] - given.point_b[w, i]).sum(1))]
                for field in ("distance", "normal", "point_a", "point_b", "body_a", "body_b", "mu", "restitution", "stiffness"):
                    np.testing.assert_allclose(getattr(given, field)[w, i], getattr(own, field)[w, j], atol=1e-5, err_msg=field)
    assert total >= 15


@functools.partial(jax.jit, static_argnames="config")
def one_step(models, states, controls, contacts, *, config):
    return jax.vmap(lambda *world: kj.step(*world[:3], dt=DT, config=config, contacts=world[3])[0])(models, states, controls, contacts)


def test_newtons_contacts_carry_a_step():
    model = slider().finalize()
    theirs = newtons_end(model, 20)
    pipeline, worlds, state = newton.CollisionPipeline(model), from_newton(model), model.state()
    contacts, ours = pipeline.contacts(), worlds.state(state)
    for _ in range(20):
        worlds.write_state(ours, state)
        pipeline.collide(state, contacts)
        ours = one_step(worlds.model, ours, worlds.control(model.control(), state), worlds.contacts(contacts, state, OURS), config=OURS)
    worlds.write_state(ours, state)
    np.testing.assert_allclose(state.body_q.numpy(), theirs.body_q.numpy(), atol=ROUNDING)
    np.testing.assert_allclose(state.body_qd.numpy(), theirs.body_qd.numpy(), atol=2e-5)


def flat_contacts(rows, count=None, **special):
    """Newton's contact arrays from rows (shape0, shape1, point0, point1, normal, margin0, margin1)."""
    columns = [np.array(c) for c in zip(*rows, strict=True)]
    names = ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1")
    arrays = {f"rigid_contact_{n}": c.astype(np.int32 if "shape" in n else np.float32) for n, c in zip(names, columns, strict=True)}
    arrays |= {f"rigid_contact_offset{i}": np.zeros((len(rows), 3), np.float32) for i in (0, 1)}
    arrays |= {f"rigid_contact_{k}": np.array(v, np.float32) for k, v in special.items()}
    return SimpleNamespace(rigid_contact_count=np.array([len(rows) if count is None else count], np.int32), **arrays)


@functools.cache
def three_cubes():
    """Two cubes and a kinematic one on a shared plane, in two worlds: shapes 0-2, 3-5, and the plane 6."""
    main = new_builder()
    for _ in range(2):
        b = new_builder()
        for x in range(3):
            cube(b, (x, 0, 0.1), mu=0.2 * x, restitution=0.1 * x)
        b.body_flags[2] = int(newton.BodyFlags.KINEMATIC)
        main.add_world(b)
    main.add_ground_plane(cfg=newton.ModelBuilder.ShapeConfig(mu=1.0, restitution=0.5))
    model = main.finalize()
    return model, from_newton(model, max_contacts=2)


UP, O = (0, 0, 1), (0, 0, 0)
PLANE, FOOT = 6, (0, 0, -0.11)  # cube corner 1 cm below the plane
DEEP = (0, 0, -0.12)


@pytest.mark.parametrize(
    "rows, options, found",
    [
        ([(0, PLANE, FOOT, O, (0, 0, -1), 0, 0)], {}, (1, 0)),
        ([(PLANE, 4, (1, 0, 0), FOOT, UP, 0, 0)], {}, (0, 1)),
        ([(0, PLANE, FOOT, O, (0, 0, -1), 0, 0), (0, PLANE, DEEP, O, (0, 0, -1), 0, 0)], {"count": 1}, (1, 0)),  # beyond the count
        ([(-1, PLANE, FOOT, O, (0, 0, -1), 0, 0)], {}, (0, 0)),  # filtered out
        ([(0, PLANE, (0, 0, -0.09), O, (0, 0, -1), 0, 0)], {}, (0, 0)),  # apart
        ([(0, PLANE, (0, 0, -0.09), O, (0, 0, -1), 0.02, 0)], {}, (1, 0)),  # closer than its margin
        ([(2, PLANE, FOOT, O, (0, 0, -1), 0, 0)], {}, (1, 0)),  # a kinematic body against the world stays
        ([(0, PLANE, FOOT, O, (0, 0, -1), 0, 0)] * 3, {}, (3, 0)),  # more than the two slots
        ([(0, PLANE, FOOT, O, (0, 0, -1), 0, 0)], {"count": 5}, (6, 6)),  # Newton ran out of rows: every world may lack some
    ],
)
def test_rows_become_contacts_by_the_rules_of_newton(rows, options, found):
    model, worlds = three_cubes()
    ours = numbers(worlds.contacts(flat_contacts(rows, **options), model.state()))
    np.testing.assert_array_equal(ours.found, found)
    assert (ours.body_b[ours.active] >= 0).all() and (ours.body_a[ours.active] == -1).all()
    assert (ours.normal[ours.active] == UP).all()
    assert ours.active.sum() == sum(min(n, 2) for n in found) if found[1] < 6 else True


def test_the_deepest_contacts_fill_the_slots_in_any_order_of_the_rows():
    model, worlds = three_cubes()
    rows = [(0, PLANE, (0, y, z), O, (0, 0, -1), 0, 0) for y, z in ((0, -0.11), (0.05, -0.13), (0.03, -0.12))]
    results = [numbers(worlds.contacts(flat_contacts([rows[i] for i in order]), model.state())) for order in ((0, 1, 2), (2, 0, 1))]
    jax.tree.map(np.testing.assert_array_equal, *results)
    np.testing.assert_allclose(results[0].distance[0], (-0.03, -0.02), atol=ROUNDING)


def test_materials_mix_as_configured_and_single_contacts_overrule_stiffness():
    model, worlds = three_cubes()
    config = kj.Config(materials=kj.MaterialsConfig(friction_mix_mode="max", restitution_mix_mode="average"))
    row = (1, PLANE, FOOT, (1, 0, 0), (0, 0, -1), 0, 0)
    ours = numbers(worlds.contacts(flat_contacts([row, row], stiffness=[0, 7], damping=[3, 5]), model.state(), config))
    np.testing.assert_allclose(ours.mu[0], (1.0, 1.0))
    np.testing.assert_allclose(ours.restitution[0], (0.3, 0.3), atol=ROUNDING)
    assert sorted(zip(ours.stiffness[0], ours.damping[0], strict=True)) == [(7, 5), (2500, 100)]
