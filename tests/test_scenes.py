"""Built-in mechanisms: every scene builds, closes its loops, and has the counts and shapes that its name promises."""

import jax
import numpy as np
import pytest

from kamino_jax.scenes import SCENES, bennett, boxes_fourbar, crank_rocker, hoberman, parallelogram, pendulum_chain, pyramid

SINGLE = 1e-6  # [m, -] rounding of single precision on numbers near 1
# bodies, joints, DoFs, joint rows, contact slots
COUNTS = {
    "box_on_plane": (1, 0, 0, 0, 4),
    "sphere_on_plane": (1, 0, 0, 0, 1),
    "box_pendulum": (1, 1, 1, 5, 8),
    "boxes_hinged": (2, 1, 1, 5, 8),
    "boxes_nunchaku": (3, 2, 6, 6, 9),
    "boxes_fourbar": (4, 4, 4, 24, 8),
    "cartpole": (2, 2, 2, 11, 8),
    "box_stack": (3, 0, 0, 0, 24),
    "pyramid": (10, 0, 0, 0, 64),
    "pendulum_chain": (5, 5, 5, 25, 0),
    "crank_rocker": (3, 4, 4, 20, 0),
    "parallelogram": (4, 6, 6, 30, 0),
    "bennett": (3, 4, 4, 20, 0),
    "stewart_platform": (13, 18, 36, 78, 0),
    "hoberman": (12, 19, 18, 96, 0),
    "all_joints": (11, 11, 24, 63, 0),
}


def matrix(q):
    x, y, z, w = np.asarray(q, float)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def joint_frames(model, j):
    """World position and rotation matrix of the two frames of joint j at the start."""
    frames = []
    for body, X in ((model.topology.base[j], model.joints.X_B[j]), (model.topology.follower[j], model.joints.X_F[j])):
        p, R, com = np.zeros(3), np.eye(3), np.zeros(3)
        if body >= 0:
            pose = np.asarray(model.start.q[body])
            p, R, com = pose[:3], matrix(pose[3:]), np.asarray(model.bodies.com[body])
        frames.append((p + R @ (np.asarray(X[:3]) - com), R @ matrix(X[3:])))
    return frames


def hinge(model, name):
    """Point and axis of a joint at the start."""
    point, R = joint_frames(model, model.names.index("joints", name))[1]
    return point, R[:, 0]


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_has_the_expected_size(name):
    layout = SCENES[name]()[0].layout
    assert (layout.nb, layout.nj, layout.nv, layout.rows.nj, layout.rows.nc) == COUNTS[name]


@pytest.mark.parametrize("name", SCENES)
def test_the_joints_of_a_scene_are_closed_at_the_start(name):
    model, state, control = SCENES[name]()
    for j in range(model.layout.nj):
        (p, R), (p_F, R_F) = joint_frames(model, j)
        np.testing.assert_allclose(p, p_F, atol=SINGLE, err_msg=model.names.joints[j])
        np.testing.assert_allclose(R, R_F, atol=10 * SINGLE, err_msg=model.names.joints[j])
    np.testing.assert_allclose(state.joint_q, control.q_ref, atol=SINGLE)


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_can_be_had_in_single_precision(name):
    floats = {x.dtype.name for x in jax.tree.leaves(SCENES[name](dtype=np.float32)) if x.dtype.kind == "f"}
    assert floats == {"float32"}


def test_every_scene_is_public():
    from kamino_jax import scenes

    assert all(getattr(scenes, name) is scene for name, scene in SCENES.items())
    assert set(COUNTS) == set(SCENES)


@pytest.mark.parametrize("name", ["box_pendulum", "boxes_hinged", "boxes_nunchaku", "boxes_fourbar", "cartpole"])
def test_a_mechanism_without_ground_has_contacts_with_itself_at_most(name):
    model = SCENES[name](ground=False)[0]
    assert "ground" not in model.names.geoms
    assert all(collider == "box_box" for collider, _ in model.layout.pairs)


@pytest.mark.parametrize("n", [1, 4])
def test_sizes_scale(n):
    assert pendulum_chain(n)[0].layout.rows.njk == 5 * n
    assert pyramid(n)[0].layout.nb == n * (n + 1) // 2


def test_the_coupler_pin_of_the_crank_rocker_is_where_it_should_be():
    """Ground 1 m, crank 0.3 m upright, coupler 1 m, rocker 0.8 m."""
    point, axis = hinge(crank_rocker()[0], "coupler_rocker")
    np.testing.assert_allclose(point, [0.87190, 0, 0.78968], atol=1e-5)
    np.testing.assert_allclose(axis, [0, 1, 0], atol=SINGLE)


def test_a_linkage_that_cannot_close_is_refused():
    with pytest.raises(ValueError, match="cannot span.*change lengths"):
        crank_rocker(lengths=(0.3, 0.1, 0.1, 1.0))


def test_a_parallelogram_needs_two_cranks():
    assert parallelogram(2)[0].layout.nb == 3
    with pytest.raises(ValueError, match="at least two"):
        parallelogram(1)


def test_bennetts_fourth_link_stays_rigid_while_the_linkage_moves():
    """Distance and twist between the first and the last hinge, both on the world, do not depend on the crank angle."""
    seen = []
    for angle in (0.4, 1.0, 2.0):
        model = bennett(angle=angle)[0]
        (p, a), (p_last, a_last) = hinge(model, "hinge_0"), hinge(model, "hinge_3")
        seen.append((np.linalg.norm(p - p_last), a @ a_last, np.cross(a, p_last - p) @ a_last / np.linalg.norm(p - p_last)))
    np.testing.assert_allclose(seen, [seen[0]] * 3, atol=10 * SINGLE)


def test_the_bars_of_a_hoberman_ring_stay_rigid_while_it_opens():
    """Distances between the three joints of a bar do not depend on the opening, but the ring's radius does."""
    shapes, radii = [], []
    for opening in (0.2, 0.5, 0.9):
        model = hoberman(6, opening=opening)[0]
        inner, pivot, outer = (hinge(model, name)[0] for name in ("inner_5", "pivot_0", "outer_0"))
        shapes.append([np.linalg.norm(a - b) for a, b in ((inner, pivot), (pivot, outer), (outer, inner))])
        radii.append(np.linalg.norm(pivot))
    np.testing.assert_allclose(shapes, [shapes[0]] * 3, atol=10 * SINGLE)
    assert radii[0] > 1.2 * radii[2]


@pytest.mark.parametrize("options", [{"n": 2}, {"opening": 0.0}, {"n": 6, "opening": 1.2}])
def test_a_ring_that_folds_through_itself_is_refused(options):
    with pytest.raises(ValueError, match="hoberman.*at least 3"):
        hoberman(**options)


def test_options_of_the_fourbar_change_its_rows():
    rows = boxes_fourbar(dynamic=True, implicit=True, fixed=True, limits=False)[0].layout.rows
    assert (rows.njd, rows.njk, rows.nf, rows.nl) == (1, 26, 1, 0)
