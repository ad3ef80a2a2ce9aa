"""Newton beside us: the same models, states, contacts and paths. Needs the extra `newton`."""

import functools
import pathlib
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from support import X64, tight

import kamino_jax as kj
from kamino_jax import scenes
from kamino_jax.newton import from_newton, load_file

newton = pytest.importorskip("newton")
wp = pytest.importorskip("warp")
wp.config.log_level = wp.LOG_WARNING
from newton.solvers import SolverKamino  # noqa: E402
from newton.tests.utils import basics, testing  # noqa: E402

pytestmark = [
    pytest.mark.newton,
    pytest.mark.skipif(not X64, reason="compares with single precision, so needs double"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*[Nn]ewton.*"),
]
ROUNDING = 2e-6  # single precision of metres and radians
ASSETS = pathlib.Path(newton.__file__).parent / "examples" / "assets"
Mode, Dof = newton.JointTargetMode, newton.ModelBuilder.JointDofConfig
DT, STEPS = 0.002, 50


def numbers(tree):
    return jax.tree.map(np.asarray, tree)


def new_builder():
    builder = newton.ModelBuilder(up_axis=newton.Axis.Z)
    builder.default_shape_cfg.margin = builder.default_shape_cfg.gap = 0.0
    return builder


def pose(*position):
    return wp.transform(wp.vec3(*map(float, position)), wp.quat_identity())


def cube(builder, position=(0, 0, 0.5), half=0.1, twist=(0, 0, 0, 0, 0, 0), **cfg):
    """A free cube of 8 kg."""
    body = builder.add_body(xform=pose(*position))
    builder.add_shape_box(body, hx=half, hy=half, hz=half, cfg=newton.ModelBuilder.ShapeConfig(margin=0.0, gap=0.0, **cfg))
    builder.body_qd[body] = tuple(map(float, twist))
    return body


def arm(**elbow):
    """Two links with friction, armature, an effort-limited drive, and a limit."""
    b = new_builder()
    links = []
    for i in range(2):
        links.append(b.add_link(xform=pose(0.1 + 0.2 * i, 0, 1)))
        b.add_shape_box(links[-1], hx=0.1, hy=0.02, hz=0.02)
    drive = dict(friction=0.05, armature=0.01, target_ke=100.0, target_kd=1.0, effort_limit=0.5, actuator_mode=Mode.POSITION_VELOCITY)
    at = dict(child_xform=pose(-0.1, 0, 0), axis=(0, 1, 0))
    shoulder = b.add_joint_revolute(-1, links[0], parent_xform=pose(0, 0, 1), **at, **drive)
    options = dict(friction=0.01, limit_lower=-0.01, limit_upper=0.01) | elbow
    elbow = b.add_joint_revolute(links[0], links[1], parent_xform=pose(0.1, 0, 0), **at, **options)
    b.add_articulation([shoulder, elbow])
    b.joint_target_q[0] = 0.3
    return b


def slider():
    """A cube that slides on the ground."""
    b = new_builder()
    cube(b, (0, 0, 0.0999), twist=(1, 0.3, 0, 0, 0, 0), mu=0.5)
    b.add_ground_plane(cfg=newton.ModelBuilder.ShapeConfig(mu=0.5, margin=0.0, gap=0.0))
    return b


SCENES = {
    "box_on_plane": lambda: basics.build_box_on_plane(new_builder(), z_offset=0.005, new_world=False),
    "box_pendulum": lambda: basics.build_box_pendulum(new_builder(), new_world=False),
    "driven_pendulum": lambda: basics.build_box_pendulum(new_builder(), dynamic_joints=True, implicit_pd=True, new_world=False),
    "cartpole": lambda: basics.build_cartpole(new_builder(), new_world=False),
    "hinged": lambda: basics.build_boxes_hinged(new_builder(), z_offset=0.005, new_world=False),
    "nunchaku": lambda: basics.build_boxes_nunchaku(new_builder(), z_offset=0.005, new_world=False),
    "fourbar": lambda: basics.build_boxes_fourbar(
        new_builder(), floatingbase=True, dynamic_joints=True, implicit_pd=True, z_offset=-1e-5, new_world=False
    ),
    "arm": arm,
    "slider": slider,
}
JOINTS = [
    "free",
    *(f"{kind}{n}" for kind in ("revolute", "prismatic", "cylindrical", "universal", "spherical", "cartesian") for n in (1, 2)),
]


def solver_settings():
    """As tight as single precision allows."""
    config = SolverKamino.Config(dynamics_solver="padmm")
    p = config.padmm
    p.primal_tolerance = p.dual_tolerance = p.compl_tolerance = 1e-6
    p.max_iterations = 200
    return config


def newtons_end(model, steps, force=None):
    """Newton's State after some steps from the model's own state."""
    model.rigid_contact_max = 32 * model.world_count
    pipeline = newton.CollisionPipeline(model)
    solver, contacts = SolverKamino(model, config=solver_settings()), pipeline.contacts()
    a, b, control = model.state(), model.state(), model.control()
    if force is not None:
        control.joint_f.assign(force)
    for _ in range(steps):
        pipeline.collide(a, contacts)
        solver.step(a, b, control, contacts, DT)
        a, b = b, a
    return a


OURS = tight(padmm=dict(primal_tolerance=1e-9, dual_tolerance=1e-9, compl_tolerance=1e-9, max_iterations=1000))


@functools.partial(jax.jit, static_argnames=("steps", "config"))
def simulate(models, states, controls, *, steps, config):
    def advance(states, _):
        states, info = jax.vmap(lambda m, s, c: kj.step(m, s, c, dt=DT, config=config))(models, states, controls)
        return states, info.status.contacts_dropped

    return jax.lax.scan(advance, states, length=steps)


def grown(small, large):
    """`small` in the first entries of arrays as large as those of `large`."""
    return jax.tree.map(lambda a, b: np.concatenate([a, np.asarray(b)[len(a) :]]) if np.ndim(a) else a, small, large)


def our_end(model, worlds, steps, force=None):
    """Newton's State after the same steps of ours: all worlds in one program, padded to one size."""
    control = model.control()
    if force is not None:
        control.joint_f.assign(force)
    alone = []
    for bucket in worlds.buckets:
        trees = (bucket.model, bucket.state(model.state()), bucket.control(control, model.state()))
        alone += [(bucket, i, *jax.tree.map(lambda x, i=i: np.asarray(x[i]), trees)) for i in range(len(bucket.worlds))]
    layout = kj.common_layout([m for _, _, m, _, _ in alone])
    padded = [kj.pad_to(m, layout) for _, _, m, _, _ in alone]
    states = [
        kj.replace(grown(s, kj.initial_state(p)), reactions=kj.initial_state(p).reactions)
        for p, (*_, s, _) in zip(padded, alone, strict=True)
    ]
    controls = [grown(c, kj.zero_control(p)) for p, (*_, c) in zip(padded, alone, strict=True)]
    end, dropped = simulate(kj.stack(padded), kj.stack(states), kj.stack(controls), steps=steps, config=OURS)
    assert not np.any(dropped)
    out, place = model.state(), 0
    for bucket in worlds.buckets:
        rows, n = slice(place, place + len(bucket.worlds)), bucket.model.layout
        moved = kj.replace(bucket.state(model.state()), q=end.q[rows, : n.nb], u=end.u[rows, : n.nb], joint_q=end.joint_q[rows, : n.nq])
        bucket.write_state(moved, out)
        place += len(bucket.worlds)
    return out


@functools.cache
def beside():
    """(Newton model, worlds, Newton's end, our end) of all scenes as worlds of one model."""
    main = new_builder()
    for build in SCENES.values():
        main.add_world(build())
    model = main.finalize(skip_validation_joints=True)
    worlds = from_newton(model, max_contacts=16)
    return model, worlds, newtons_end(model, STEPS), our_end(model, worlds, STEPS)


@functools.cache
def joints_beside():
    builder = testing.build_all_joints_test(new_builder(), actuated=True)
    for name, value in (("limit_lower", -1e10), ("limit_upper", 1e10), ("effort_limit", 1e6)):
        getattr(builder, f"joint_{name}")[:6] = [value] * 6  # Newton's free joint has limits, ours takes none
    model = builder.finalize(skip_validation_joints=True)
    force = 0.3 * np.cos(np.arange(model.joint_dof_count)).astype(np.float32)
    worlds = from_newton(model, collisions=False)
    return model, worlds, newtons_end(model, STEPS, force), our_end(model, worlds, STEPS, force)


def differences(run, world):
    model, _, theirs, ours = run
    bodies = np.flatnonzero(model.body_world.numpy() == world)
    joints = model.joint_world.numpy() == world
    dofs = np.repeat(joints, np.diff(model.joint_qd_start.numpy()))
    coordinates = np.repeat(joints, np.diff(model.joint_q_start.numpy()))
    rows = {"body_q": bodies, "body_qd": bodies, "joint_q": coordinates, "joint_qd": dofs}
    return {name: np.abs(getattr(theirs, name).numpy()[i] - getattr(ours, name).numpy()[i]).max(initial=0) for name, i in rows.items()}


@pytest.mark.parametrize("scene", SCENES)
def test_a_scene_ends_where_newton_ends(scene):
    error = differences(beside(), list(SCENES).index(scene))
    assert error["body_q"] < 5e-6 and error["joint_q"] < 5e-6  # [m, rad] fifty solves to 1e-6 in single precision
    assert error["body_qd"] < 1e-4 and error["joint_qd"] < 2e-4  # [m/s, rad/s]


@pytest.mark.parametrize("kind", JOINTS)
def test_a_joint_of_every_kind_moves_as_in_newton(kind):
    error = differences(joints_beside(), JOINTS.index(kind))
    assert error["body_q"] < 5e-6 and error["joint_q"] < 5e-6
    assert error["body_qd"] < 1e-4 and error["joint_qd"] < 2e-4


def test_a_state_survives_the_round_trip():
    model, worlds, moved, _ = beside()
    back = model.state()
    for bucket in worlds.buckets:
        bucket.write_state(bucket.state(moved), back)
    for name in ("body_q", "body_qd", "joint_q", "joint_qd"):
        np.testing.assert_allclose(getattr(back, name).numpy(), getattr(moved, name).numpy(), atol=5 * ROUNDING, err_msg=name)


def test_a_state_keeps_the_centre_of_mass_and_counts_turns():
    b = new_builder()
    link = b.add_link(xform=pose(1, 2, 3), mass=2.0, com=wp.vec3(0.1, 0.2, 0.3), inertia=wp.mat33(*np.eye(3).ravel()), lock_inertia=True)
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


def test_replicas_are_built_once_and_keep_their_own_start():
    main = new_builder()
    main.replicate(arm(), 50)
    main.add_ground_plane()
    model = main.finalize()
    q = model.joint_q.numpy()
    q[::2] = np.linspace(-0.4, 0.4, 50)
    model.joint_q.assign(q)
    state = model.state()
    newton.eval_fk(model, model.joint_q, model.joint_qd, state)
    model.body_q.assign(state.body_q)
    worlds = from_newton(model)
    assert worlds.model.start.q.shape == (50, 2, 7)
    np.testing.assert_allclose(worlds.model.start.joint_q[:, 0], np.linspace(-0.4, 0.4, 50), atol=ROUNDING)
    assert worlds.model.layout.pairs == (("plane_box", 2),)
    assert (worlds.bucket.shapes[:, -1] == 100).all()  # the plane belongs to all


def test_different_worlds_fall_into_buckets():
    main = new_builder()
    for build in (slider, arm, slider):
        main.add_world(build())
    worlds = from_newton(main.finalize())
    assert [b.worlds for b in worlds.buckets] == [(0, 2), (1,)]
    with pytest.raises(ValueError, match="2 buckets .* go through .buckets"):
        _ = worlds.model


def test_gravity_differs_between_worlds():
    main = new_builder()
    main.replicate(arm(), 2)
    model = main.finalize()
    model.gravity.assign(np.array([[0, 0, -1], [0, 0, -2], [0, 0, -9]], np.float32))
    np.testing.assert_array_equal(from_newton(model).model.gravity[:, 2], (-1, -2))


def test_a_model_without_worlds_is_one_world():
    b = slider()
    model = b.finalize()
    assert model.body_world.numpy()[0] == -1  # what Newton says
    assert from_newton(model).model.layout.nb == 1


OUR_SCENES = {
    "box_on_plane": (scenes.box_on_plane, basics.build_box_on_plane, {}),
    "box_pendulum": (scenes.box_pendulum, basics.build_box_pendulum, {}),
    "boxes_hinged": (scenes.boxes_hinged, basics.build_boxes_hinged, {}),
    "boxes_nunchaku": (scenes.boxes_nunchaku, basics.build_boxes_nunchaku, {}),
    "boxes_fourbar": (scenes.boxes_fourbar, basics.build_boxes_fourbar, {}),
    "boxes_fourbar driven": (scenes.boxes_fourbar, basics.build_boxes_fourbar, dict(dynamic=True, implicit=True)),
    "cartpole": (scenes.cartpole, basics.build_cartpole, {}),
}


@pytest.mark.parametrize("name", OUR_SCENES)
def test_our_scene_is_that_of_newton(name):
    ours, theirs, options = OUR_SCENES[name]
    renamed = {"dynamic": "dynamic_joints", "implicit": "implicit_pd"}
    model = ours(**options)[0]
    other = from_newton(theirs(new_builder(), **{renamed[k]: v for k, v in options.items()}).finalize(skip_validation_joints=True)).model
    other = jax.tree.map(lambda x: x[0], other)
    for field in ("mass", "inertia", "com"):
        np.testing.assert_allclose(getattr(model.bodies, field), getattr(other.bodies, field), rtol=1e-5, atol=1e-9, err_msg=field)
    np.testing.assert_allclose(model.start.q, other.start.q, atol=ROUNDING)
    real = np.flatnonzero(np.asarray(other.topology.kind) != 0)  # Newton hangs bodies on free joints, ours need none
    np.testing.assert_array_equal(model.topology.kind, other.topology.kind[real])
    np.testing.assert_array_equal(model.topology.base, other.topology.base[real])
    np.testing.assert_array_equal(model.topology.follower, other.topology.follower[real])
    np.testing.assert_allclose(joint_points(model, range(len(real))), joint_points(other, real), atol=ROUNDING)
    dofs = np.isin(np.asarray(other.topology.dof) // 6, real)
    for field in ("q_min", "q_max", "armature", "damping", "friction", "kp", "kd"):
        np.testing.assert_allclose(getattr(model.joints, field), getattr(other.joints, field)[dofs], rtol=1e-6, err_msg=field)


def joint_points(model, joints):
    """Joint points in the base's and the follower's frame."""
    return np.concatenate([np.asarray(getattr(model.joints, X))[list(joints), :3] for X in ("X_B", "X_F")])


def d6(linear=0, angular=0, axes=((1, 0, 0), (0, 1, 0), (0, 0, 1)), **dof):
    b = new_builder()
    link = b.add_link(mass=1.0, inertia=wp.mat33(*np.eye(3).ravel()), lock_inertia=True, label="link")
    dofs = [Dof(axis=wp.vec3(*map(float, a)), **dof) for a in axes]
    pick = lambda n, skip=0: dofs[skip : skip + n]
    b.add_articulation([b.add_joint_d6(-1, link, linear_axes=pick(linear), angular_axes=pick(angular, linear), label="knee")])
    return b


def edited(build, **arrays):
    """A model with entries of its arrays set: name -> (index, value)."""
    model = build().finalize(skip_validation_joints=True)
    for name, (index, value) in arrays.items():
        changed = getattr(model, name).numpy()
        changed[index] = value
        getattr(model, name).assign(changed)
    return model


def with_global_body():
    main = new_builder()
    main.replicate(arm(), 2)
    main.add_body(mass=1.0, inertia=wp.mat33(*np.eye(3).ravel()), lock_inertia=True, label="stray")
    return main


def capsule_and_cone():
    b = new_builder()
    for add in (b.add_shape_cylinder, b.add_shape_cone):
        add(b.add_body(), radius=0.1, half_height=0.2)
    return b


def distance_joint():
    b = new_builder()
    links = [b.add_link(mass=1.0, inertia=wp.mat33(*np.eye(3).ravel()), lock_inertia=True) for _ in range(2)]
    b.add_joint_distance(*links, min_distance=0.1, max_distance=0.2)
    b.add_particle((0, 0, 0), (0, 0, 0), 1.0)
    return b


REFUSALS = {
    "two linear axes": (lambda: d6(linear=2), "joint 'knee': 2 linear and 0 angular DoFs"),
    "planar": (lambda: d6(linear=2, angular=1), "joint 'knee': 2 linear and 1 angular"),
    "skew cylinder": (lambda: d6(linear=1, angular=1), "joint 'knee': a cylindrical joint slides along and turns about the same axis"),
    "skew slides": (lambda: d6(linear=3, axes=((1, 0, 0), (0, 1, 0), (0, 0.6, 0.8))), "joint 'knee': the axes of a cartesian joint"),
    "skew cardan": (lambda: d6(angular=2, axes=((1, 0, 0), (0.6, 0.8, 0), (0, 0, 1))), "joint 'knee': the axes of a universal joint"),
    "no gain": (lambda: d6(linear=1, actuator_mode=Mode.POSITION), "joint 'knee': drive 'position' has no gain"),
    "global body": (with_global_body, "body 'stray': in none of the 2 worlds"),
    "shapes": (capsule_and_cone, "1 pairs of shapes cannot collide here .*unsupported='skip'"),
    "distance joint and particle": (distance_joint, "1 particles, 1 DISTANCE joints"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_cannot_be_simulated_is_refused(name):
    build, message = REFUSALS[name]
    model = build().finalize(skip_validation_joints=True)
    with pytest.raises(ValueError, match=message):
        from_newton(model)


EDITS = {
    "armature on FREE": (dict(joint_armature=(0, 1.0)), "a free joint takes no armature"),
    "limit on FREE": (dict(joint_limit_lower=(0, -1.0)), "a free joint takes no limits"),
    "drive on FREE": (dict(joint_target_mode=(0, 1), joint_target_ke=(0, 5.0)), "a free joint takes no"),
    "unknown mode": (dict(joint_target_mode=(0, 9)), "joint_target_mode is 9"),
    "axes of FREE": (dict(joint_axis=(4, (0, 0, 1))), "axes of a FREE joint differ"),
    "NaN": (dict(body_q=((0, 0), np.nan)), "body_q has a NaN or Inf at entry 0"),
}


@pytest.mark.parametrize("name", EDITS)
def test_bad_numbers_are_refused(name):
    arrays, message = EDITS[name]
    with pytest.raises(ValueError, match=message):
        from_newton(edited(slider, **arrays))


def test_friction_of_a_free_joint_is_ignored_with_a_warning():
    with pytest.warns(UserWarning, match="friction on a FREE joint is ignored"):
        worlds = from_newton(edited(slider, joint_friction=(0, 1.0)))
    assert worlds.model.layout.rows.nf == 0


def test_unsupported_pairs_can_be_skipped_or_left_to_newton():
    model = capsule_and_cone().finalize()
    with pytest.warns(UserWarning, match="pass through each other"):
        assert from_newton(model, unsupported="skip").model.layout.pairs == ()
    layout = from_newton(model, collisions=False, max_contacts=7).model.layout
    assert layout.pairs == () and layout.rows.nc == 7
    with pytest.raises(ValueError, match="'error', 'skip'"):
        from_newton(model, unsupported="drop")


def test_a_finite_plane_is_announced_as_infinite():
    b = new_builder()
    cube(b)
    b.add_shape_plane(body=-1, width=1.0, length=1.0)
    with pytest.warns(UserWarning, match="finite plane"):
        from_newton(b.finalize())


FILES = {
    "boxes_fourbar.usda": dict(nb=4, nj=4, nv=4),
    "cartpole.usda": dict(nb=4, nj=4, nv=3),
    "quadruped.urdf": dict(nb=13, nj=13, nv=12),
    "nv_ant.xml": dict(nb=9, nj=9, nv=14),
}


@pytest.mark.filterwarnings("ignore:.*pass through each other")
@pytest.mark.parametrize("name", FILES)
def test_a_model_file_loads(name):
    if name.endswith(("usda", "usd")):
        pytest.importorskip("pxr")
    layout = load_file(ASSETS / name, unsupported="skip").layout
    assert {k: getattr(layout, k) for k in FILES[name]} == FILES[name]


def test_a_file_that_is_none_is_refused(tmp_path):
    broken = tmp_path / "broken.urdf"
    broken.write_text("<robot")
    with pytest.raises(ValueError, match="cannot read"):
        load_file(broken)
    with pytest.raises(ValueError, match="no file"):
        load_file(tmp_path / "missing.usda")
    with pytest.raises(ValueError, match="unknown ending"):
        load_file(tmp_path / "model.step")
