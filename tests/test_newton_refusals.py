"""What `from_newton` refuses or announces, and model files. Needs the extra `newton`."""

import pathlib
import sys

import numpy as np
import pytest

pytest.importorskip("newton")
import newton
import warp as wp
from newton_scenes import NO_TURN, Dof, Mode, arm, cube, new_builder, slider
from support import X64

from kamino_jax.newton import from_newton, load_file

pytestmark = [
    pytest.mark.newton,
    pytest.mark.skipif(not X64, reason="compares with single precision, so needs double"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*[Nn]ewton.*"),
]


ASSETS = pathlib.Path(newton.__file__).parent / "examples" / "assets"


def d6(linear=0, angular=0, axes=((1, 0, 0), (0, 1, 0), (0, 0, 1)), **dof):
    b = new_builder()
    link = b.add_link(mass=1.0, inertia=NO_TURN, lock_inertia=True, label="link")
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
    main.add_body(mass=1.0, inertia=NO_TURN, lock_inertia=True, label="stray")
    return main


def capsule_and_cone():
    b = new_builder()
    for add in (b.add_shape_cylinder, b.add_shape_cone):
        add(b.add_body(), radius=0.1, half_height=0.2)
    return b


def distance_joint():
    b = new_builder()
    links = [b.add_link(mass=1.0, inertia=NO_TURN, lock_inertia=True) for _ in range(2)]
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


def test_without_newton_a_file_says_what_to_install(monkeypatch, tmp_path):
    (tmp_path / "robot.urdf").write_text("<robot/>")
    monkeypatch.setitem(sys.modules, "newton", None)
    with pytest.raises(ImportError, match="kamino_jax.newton."):
        load_file(tmp_path / "robot.urdf")
