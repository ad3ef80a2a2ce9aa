"""Newton beside us: the same paths, the same scenes, many worlds. Needs the extra `newton`."""

import jax
import numpy as np
import pytest

pytest.importorskip("newton")
import newton
from newton_scenes import JOINTS, ROUNDING, SCENES, arm, basics, beside, joints_beside, new_builder, slider
from support import X64

from kamino_jax import scenes
from kamino_jax.newton import from_newton

pytestmark = [
    pytest.mark.newton,
    pytest.mark.skipif(not X64, reason="compares with single precision, so needs double"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*[Nn]ewton.*"),
]


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
