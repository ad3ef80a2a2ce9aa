"""Building a model: what is refused, and what the tables of a good model say."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from kamino_jax.builder import ModelBuilder
from kamino_jax.joints.kinds import KINDS
from kamino_jax.model import PATH_DYNAMIC, PATH_EFFORT, PATH_WRENCH

ROUNDING = 1e-6  # holds in single precision too
NAN, INF = float("nan"), float("inf")


def rod_builder(**body):
    """One rod that is free to move."""
    builder = ModelBuilder()
    builder.add_body("rod", **{"mass": 1.0, "inertia": (0.1, 0.2, 0.2), **body})
    return builder


def two_rods():
    builder = rod_builder()
    builder.add_body("tip", mass=1.0, inertia=(0.1, 0.2, 0.2), position=(1, 0, 0))
    return builder


def body(**options):
    return lambda: rod_builder(**options)


def joint(kind="revolute", **options):
    """A joint named knee between the world and the rod."""
    placed = {"name": "knee", "at": (0, 0, 0), **options}
    if kind in ("revolute", "prismatic", "cylindrical") and not {"axis", "axes"} & set(options):
        placed["axis"] = "y"
    return lambda: rod_builder().add_joint(kind, None, "rod", **placed)


def shape(kind="sphere", *sizes, body="rod", **options):
    sizes = sizes or (0.1,)
    return lambda: getattr(rod_builder(), f"add_{kind}")(body, *sizes, **{"name": "ball", **options})


def finalized(make, **options):
    return lambda: make().finalize(**options)


def builder_with(*calls, start=rod_builder):
    """A builder after calls ("method", args, kwargs)."""

    def make():
        builder = start()
        for method, args, kwargs in calls:
            getattr(builder, method)(*args, **kwargs)
        return builder

    return make


MASSLESS_ON_HINGE = builder_with(("add_body", ("dot",), {}), ("add_revolute", (None, "dot"), {"at": (0, 0, 0), "axis": "x"}))
MASS_TWICE = builder_with(("add_sphere", ("rod", 0.1), {"name": "ball", "density": 1.0}))
COM_TWICE = builder_with(("add_body", ("dot",), {"com": (1, 0, 0)}), ("add_sphere", ("dot", 0.1), {"mass": 1.0}))
UNSUPPORTED = builder_with(
    ("add_ellipsoid", ("rod", (0.1, 0.2, 0.3)), {"name": "egg"}), ("add_box", ("tip", (0.1, 0.1, 0.1)), {"name": "crate"}), start=two_rods
)

REFUSALS = {
    # bodies
    "no bodies": (finalized(ModelBuilder), ValueError, "no bodies.*add_body"),
    "gravity with two numbers": (lambda: ModelBuilder(gravity=(0, 0)), ValueError, "gravity.*3 numbers"),
    "gravity is NaN": (lambda: ModelBuilder(gravity=(0, 0, NAN)), ValueError, "gravity.*finite"),
    "duplicate body": (lambda: rod_builder().add_body("rod"), ValueError, "'rod'.*taken"),
    "body name is a number": (lambda: ModelBuilder().add_body(3), TypeError, "name.*string"),
    "empty body name": (lambda: ModelBuilder().add_body(""), ValueError, "empty"),
    "negative mass": (body(mass=-1.0), ValueError, "'rod'.*mass.*>= 0"),
    "infinite mass": (body(mass=INF), ValueError, "'rod'.*mass.*finite"),
    "mass is a word": (body(mass="heavy"), TypeError, "'rod'.*mass.*number"),
    "mass is a flag": (body(mass=True), TypeError, "'rod'.*mass.*number"),
    "position with two numbers": (body(position=(0, 0)), ValueError, "'rod'.*position.*3 numbers"),
    "position is NaN": (body(position=(0, NAN, 0)), ValueError, "'rod'.*position.*finite"),
    "ragged position": (body(position=(0, (1, 2), 0)), TypeError, "'rod'.*position.*3 numbers"),
    "velocity is Inf": (body(velocity=(0, 0, INF)), ValueError, "'rod'.*velocity.*finite"),
    "zero quaternion": (body(rotation=(0, 0, 0, 0)), ValueError, r"'rod'.*zero quaternion.*\(0, 0, 0, 1\)"),
    "kinematic is a number": (body(kinematic=1), TypeError, "'rod'.*kinematic.*True or False"),
    "inertia not symmetric": (body(inertia=[[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), ValueError, "'rod'.*symmetric.*give"),
    "negative inertia": (body(inertia=(-1, 1, 1)), ValueError, "'rod'.*semidefinite"),
    "inertia breaks the triangle inequality": (body(inertia=(1, 1, 3)), ValueError, "'rod'.*triangle.*check the units"),
    "inertia with two numbers": (body(inertia=(1, 1)), ValueError, "'rod'.*inertia.*3 numbers"),
    "inertia without mass": (body(mass=None), ValueError, "'rod'.*no mass; give mass"),
    "zero mass with inertia": (finalized(body(mass=0.0)), ValueError, "'rod'.*no mass.*give mass"),
    "mass without inertia": (finalized(body(inertia=None)), ValueError, "'rod'.*no inertia.*give inertia"),
    "inertia about one axis missing": (finalized(body(inertia=(0, 1, 1))), ValueError, "'rod'.*no inertia about some axis"),
    "massless body on a hinge": (finalized(MASSLESS_ON_HINGE), ValueError, "'dot'.*neither mass nor inertia.*density"),
    "mass of body and of shape": (finalized(MASS_TWICE), ValueError, "'rod'.*'ball'.*leave out"),
    "com of body and of shape": (finalized(COM_TWICE), ValueError, "'dot'.*com.*leave com out"),
    # joints
    "unknown kind": (joint("hinge"), ValueError, "'knee'.*'hinge'.*revolute"),
    "unknown option": (joint(stiffness=3.0), TypeError, "'knee'.*'stiffness'.*armature"),
    "unknown child": (lambda: rod_builder().add_fixed(None, "rot", name="knee"), ValueError, "'knee'.*'rot'.*rod"),
    "unknown parent": (lambda: rod_builder().add_fixed("world", "rod", name="knee"), ValueError, "'knee'.*'world'.*None is the world"),
    "child is the world": (lambda: rod_builder().add_fixed("rod", None, name="knee"), ValueError, "'knee'.*swap"),
    "body with itself": (lambda: rod_builder().add_fixed("rod", "rod", name="knee"), ValueError, "'knee'.*'rod' with itself"),
    "duplicate joint": (lambda: two_joints("knee", "knee"), ValueError, "'knee'.*taken"),
    "not placed": (joint(at=None), ValueError, "'knee'.*not placed; give at"),
    "placed twice": (joint(parent_position=(0, 0, 0)), ValueError, "'knee'.*both at and parent_position"),
    "no axis": (joint(axis=None), ValueError, "'knee'.*needs an axis; give"),
    "axis of length 0": (joint(axis=(0, 0, 0)), ValueError, r"'knee'.*length 0; give a direction, e\.g\. \(1, 0, 0\)"),
    "axis is NaN": (joint(axis=(0, NAN, 1)), ValueError, "'knee'.*axis.*finite"),
    "axis named w": (joint(axis="w"), ValueError, "'knee'.*'x', 'y', 'z'"),
    "axis and axes": (joint(axis="x", axes=("x",)), ValueError, "'knee'.*both axis and axes"),
    "fixed joint with axis": (joint("fixed", axis="x"), ValueError, "'knee'.*no axis"),
    "hinge with two axes": (joint(axes=("x", "y")), ValueError, "'knee'.*one axis"),
    "cylindrical with two directions": (joint("cylindrical", axes=("x", "y")), ValueError, "'knee'.*same axis; give one"),
    "universal with one axis": (joint("universal", axis="x"), ValueError, "'knee'.*2 axes"),
    "universal axes not orthogonal": (joint("universal", axes=((1, 0, 0), (0.6, 0.8, 0))), ValueError, "'knee'.*orthogonal"),
    "universal axes not unit": (joint("universal", axes=((2, 0, 0), (0, 1, 0))), ValueError, "'knee'.*unit length"),
    "gimbal axes slightly off": (joint("gimbal", axes=((1, 0, 0), (1e-5, 1, 0), (0, 0, 1))), ValueError, "'knee'.*orthogonal"),
    "left-handed gimbal with right-handed axes": (joint("gimbal_left_handed", axes="xyz"), ValueError, "'knee'.*'gimbal'"),
    "cartesian axes not orthogonal": (joint("cartesian", axes=((1, 0, 0), (0, 1, 0), (0, 1, 0))), ValueError, "'knee'.*orthogonal"),
    "cartesian axes left-handed": (joint("cartesian", axes="yxz"), ValueError, "'knee'.*left-handed; turn one"),
    "spherical axes left-handed": (joint("spherical", axes="yxz"), ValueError, "'knee'.*left-handed"),
    "child_rotation zero": (joint(at=None, child_rotation=(0, 0, 0, 0)), ValueError, "'knee'.*child_rotation.*zero quaternion"),
    "unknown drive": (joint(drive="servo", kp=1.0), ValueError, "'knee'.*'servo'.*'position_velocity'"),
    "position drive without gain": (joint(drive="position"), ValueError, "'knee'.*no gain; give kp"),
    "velocity drive without damping": (joint(drive="velocity", kp=1.0), ValueError, "'knee'.*no gain; give kd"),
    "gain without drive": (joint(kp=1.0), ValueError, "'knee'.*give drive='position'"),
    "negative armature": (joint(armature=-1.0), ValueError, "'knee'.*armature.*>= 0"),
    "negative damping": (joint(damping=-1.0), ValueError, "'knee'.*damping.*>= 0"),
    "negative friction": (joint(friction=-1.0), ValueError, "'knee'.*friction.*>= 0"),
    "negative gain": (joint(drive="position", kp=-1.0), ValueError, "'knee'.*kp.*>= 0"),
    "negative effort limit": (joint(effort_max=-1.0), ValueError, "'knee'.*effort_max.*>= 0"),
    "effort limit NaN": (joint(effort_max=NAN), ValueError, "'knee'.*effort_max.*NaN"),
    "infinite friction": (joint(friction=INF), ValueError, "'knee'.*friction.*finite"),
    "limits swapped": (joint(limits=(1, -1)), ValueError, "'knee'.*lower one comes first"),
    "limits NaN": (joint(limits=(NAN, 1)), ValueError, "'knee'.*limits.*NaN"),
    "three limits for two DoFs": (joint("universal", limits=(None, None, None)), ValueError, "'knee'.*limits has 3.*2 DoFs"),
    "two armatures for one DoF": (joint(armature=(1, 2)), ValueError, "'knee'.*armature.*1 numbers"),
    "two drives for one DoF": (joint(drive=("effort", "effort")), ValueError, "'knee'.*drive has 2"),
    "target of a wrong length": (joint(target=(1, 2)), ValueError, "'knee'.*target.*1 numbers"),
    "coordinates against the poses": (joint(coordinates=1.0), ValueError, "'knee'.*coordinates.*full turns"),
    "free joint with friction": (joint("free", friction=1.0), ValueError, "'knee'.*no friction.*w_ext"),
    "free joint with armature": (joint("free", armature=1.0), ValueError, "'knee'.*no armature"),
    "free joint with damping": (joint("free", damping=1.0), ValueError, "'knee'.*no damping"),
    "free joint with drive": (joint("free", drive="effort"), ValueError, "'knee'.*no drive"),
    "free joint with limits": (joint("free", limits=(-1, 1)), ValueError, "'knee'.*no limits"),
    # shapes
    "radius zero": (shape("sphere", 0.0), ValueError, "'ball'.*radius.*> 0"),
    "radius NaN": (shape("sphere", NAN), ValueError, "'ball'.*radius.*finite"),
    "negative half extent": (shape("box", (0.1, -0.1, 0.1)), ValueError, "'ball'.*half_extents.*> 0"),
    "box with one number": (shape("box", 0.1), ValueError, "'ball'.*half_extents.*3 numbers"),
    "zero scale": (shape(scale=0.0), ValueError, "'ball'.*scale.*> 0"),
    "negative density": (shape(density=-1.0), ValueError, "'ball'.*density.*>= 0"),
    "negative shape mass": (shape(mass=-1.0), ValueError, "'ball'.*mass.*>= 0"),
    "density and mass": (shape(density=1.0, mass=1.0), ValueError, "'ball'.*give one"),
    "mass on the world": (shape(body=None, density=1.0), ValueError, "'ball'.*world.*leave out"),
    "negative friction coefficient": (shape(mu=-0.1), ValueError, "'ball'.*mu.*>= 0"),
    "restitution above one": (shape(restitution=1.1), ValueError, "'ball'.*restitution.*between 0 and 1"),
    "negative margin": (shape(margin=-0.1), ValueError, "'ball'.*margin.*>= 0"),
    "negative gap": (shape(gap=-0.1), ValueError, "'ball'.*gap.*>= 0"),
    "fractional group": (shape(group=1.5), TypeError, "'ball'.*group.*integer"),
    "axis of a sphere": (shape(axis="x"), ValueError, "'ball'.*no long axis; use rotation"),
    "axis w": (shape("capsule", 0.1, 0.2, axis="w"), ValueError, "'ball'.*axis.*'x', 'y' or 'z'"),
    "unknown shape option": (shape(colour="red"), TypeError, "'ball'.*'colour'.*friction|'ball'.*'colour'.*mu"),
    "shape on an unknown body": (shape(body="rot"), ValueError, "'ball'.*'rot'.*rod"),
    "colliding cone": (shape("cone", 0.1, 0.2), ValueError, "'ball'.*cannot collide.*collides=False"),
    "plane on a body": (lambda: rod_builder().add_plane("rod", name="floor"), ValueError, "'floor'.*world only.*box"),
    "plane with density": (lambda: rod_builder().add_plane(name="floor", density=1.0), ValueError, "'floor'.*leave out"),
    "plane placed twice": (lambda: rod_builder().add_plane(name="floor", normal="z", position=(0, 0, 1)), ValueError, "'floor'.*either"),
    "plane with zero normal": (lambda: rod_builder().add_plane(name="floor", normal=(0, 0, 0)), ValueError, "'floor'.*length 0"),
    "ellipsoid against box": (finalized(UNSUPPORTED), ValueError, "'egg'.*'crate'.*ignore_collisions.*collides=False"),
    "ignoring an unknown name": (lambda: rod_builder().ignore_collisions("rod", "ghost"), ValueError, "'ghost'.*rod"),
    # finalize
    "no contact slots": (finalized(rod_builder, max_contacts=0), ValueError, "max_contacts.*collides=False"),
    "fractional contact slots": (finalized(rod_builder, max_contacts=1.5), TypeError, "max_contacts.*positive integer"),
    "integer dtype": (finalized(rod_builder, dtype=jnp.int32), TypeError, "dtype.*floating"),
}


def two_joints(first, second):
    builder = two_rods()
    builder.add_fixed(None, "rod", name=first)
    builder.add_fixed("rod", "tip", name=second)
    return builder


@pytest.mark.parametrize(("attempt", "error", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_a_mistake_is_refused_with_its_name_and_remedy(attempt, error, message):
    with pytest.raises(error, match=re.compile(message, re.DOTALL)):
        attempt()


def test_traced_numbers_are_refused_by_name():
    with pytest.raises(TypeError, match="'rod'.*mass.*traced"):
        jax.jit(lambda m: rod_builder(mass=m).finalize().bodies.mass)(1.0)


def test_double_precision_needs_64_bit_jax():
    if jax.config.jax_enable_x64:
        assert rod_builder().finalize(dtype=jnp.float64).dtype == jnp.float64
    else:
        with pytest.raises(ValueError, match="jax_enable_x64"):
            rod_builder().finalize(dtype=np.float64)


def test_numbers_follow_the_requested_type_and_indices_are_32_bit():
    model = two_joints("a", "b").finalize(dtype=jnp.float32)
    kinds = {np.dtype(x.dtype).name for x in jax.tree.leaves(model)}
    assert kinds == {"float32", "int32", "bool"}


def test_names_are_given_automatically_and_found_again():
    builder = ModelBuilder()
    names = [builder.add_body(mass=1.0, inertia=(1, 1, 1)) for _ in range(2)]
    joint_name = builder.add_fixed(None, names[1])
    model = builder.finalize()
    assert names == ["body_0", "body_1"]
    assert model.names.index("joints", joint_name) == 0


def test_a_joint_placed_in_the_world_starts_at_zero():
    builder = ModelBuilder()
    turned = np.array([0.1, 0.5, -0.2, 0.7])
    builder.add_body("a", mass=1, inertia=(1, 1, 1), position=(1, 2, 3), rotation=turned)
    builder.add_body("b", mass=1, inertia=(1, 1, 1), position=(0, -1, 2), rotation=-turned[::-1])
    for kind in KINDS:
        axis = {"axis": (1, 2, 3)} if kind in ("revolute", "prismatic", "cylindrical") else {}
        builder.add_joint(kind, "a", "b", at=(0.5, 0.5, 0.5), **axis)
    start = builder.finalize().start
    np.testing.assert_allclose(start.joint_q, start.q_ref, atol=ROUNDING)


ANGLE = 0.4
HALF_TURNED = (0, 0, np.sin(ANGLE / 2), np.cos(ANGLE / 2))  # about z
STARTS = {
    "revolute": ({"axis": "z"}, [ANGLE]),
    "prismatic": ({"axis": (0, 2, 0)}, [2.0]),
    "cylindrical": ({"axis": "z"}, [3.0, ANGLE]),
    "universal": ({"axes": ("z", "x")}, [ANGLE, 0]),
    "spherical": ({}, [*HALF_TURNED]),
    "gimbal": ({"axes": ("y", "z", "x")}, [0, ANGLE, 0]),
    "cartesian": ({"axes": ("y", "z", "x")}, [2, 3, 1]),
    "free": ({}, [1, 2, 3, *HALF_TURNED]),
    "fixed": ({}, []),
}


@pytest.mark.parametrize("kind", STARTS)
def test_start_coordinates_are_those_of_the_initial_poses(kind):
    options, expected = STARTS[kind]
    builder = rod_builder(position=(1, 2, 3), rotation=HALF_TURNED)
    builder.add_joint(kind, None, "rod", parent_position=(0, 0, 0), **options)
    np.testing.assert_allclose(builder.finalize().start.joint_q, expected, atol=ROUNDING)


def test_left_handed_axes_make_a_left_handed_gimbal():
    builder = rod_builder(rotation=(0, 0, np.sin(0.2), np.cos(0.2)))
    builder.add_gimbal(None, "rod", parent_position=(0, 0, 0), axes=("x", "y", (0, 0, -1)))
    model = builder.finalize()
    assert model.layout.joint_kinds == ("gimbal_left_handed",)
    assert model.joints.handedness[0] == -1
    np.testing.assert_allclose(model.start.joint_q, [0, 0, -0.4], atol=ROUNDING)


def test_a_hinge_may_start_beyond_half_a_turn():
    builder = rod_builder(rotation=(0, 0, np.sin(2.0), np.cos(2.0)))
    builder.add_revolute(None, "rod", parent_position=(0, 0, 0), axis="z", coordinates=4.0)
    np.testing.assert_allclose(builder.finalize().start.joint_q, [4.0], rtol=ROUNDING)


def test_joint_frames_carry_the_dof_axis_on_their_x_axis():
    builder = rod_builder()
    builder.add_revolute(None, "rod", at=(0, 0, 0), axis="y")
    # columns y, z, x: the cyclic turn
    np.testing.assert_allclose(builder.finalize().joints.X_B[0, 3:], [0.5, 0.5, 0.5, 0.5], atol=ROUNDING)


def test_start_poses_are_those_of_the_centres_of_mass():
    model = rod_builder(com=(0, 0.5, 0), position=(1, 0, 0), rotation=(0, 0, np.sqrt(0.5), np.sqrt(0.5)), velocity=(1, 2, 3)).finalize()
    np.testing.assert_allclose(model.start.q[0, :3], [0.5, 0, 0], atol=ROUNDING)
    np.testing.assert_allclose(model.start.u[0], [1, 2, 3, 0, 0, 0])


# options -> (dynamic, friction, effort, limit) rows, where the command acts
DRIVE_ROWS = {
    "passive": ({}, (0, 0, 0, 0), PATH_WRENCH),
    "effort drive": ({"drive": "effort", "effort_max": 2.0}, (0, 0, 0, 0), PATH_WRENCH),
    "armature": ({"armature": 1.0}, (1, 0, 0, 0), PATH_DYNAMIC),
    "damping": ({"damping": 1.0}, (1, 0, 0, 0), PATH_DYNAMIC),
    "friction": ({"friction": 1.0}, (0, 1, 0, 0), PATH_WRENCH),
    "position drive": ({"drive": "position", "kp": 1.0}, (1, 0, 0, 0), PATH_DYNAMIC),
    "velocity drive": ({"drive": "velocity", "kd": 1.0}, (1, 0, 0, 0), PATH_DYNAMIC),
    "bounded drive": ({"drive": "position_velocity", "kd": 1.0, "effort_max": 9.0}, (0, 0, 1, 0), PATH_EFFORT),
    "bound of a million is none": ({"drive": "position", "kp": 1.0, "effort_max": 1e6}, (1, 0, 0, 0), PATH_DYNAMIC),
    "bounded drive with armature": ({"drive": "position", "kp": 1.0, "effort_max": 9.0, "armature": 1.0}, (1, 0, 1, 0), PATH_EFFORT),
    "one-sided limit": ({"limits": (-INF, 1.0)}, (0, 0, 0, 1), PATH_WRENCH),
    "limit of ten billion is none": ({"limits": (-1e10, 1e10)}, (0, 0, 0, 0), PATH_WRENCH),
}


@pytest.mark.parametrize(("options", "rows", "path"), DRIVE_ROWS.values(), ids=DRIVE_ROWS.keys())
def test_a_dof_owns_the_rows_that_its_parameters_ask_for(options, rows, path):
    builder = rod_builder()
    builder.add_revolute(None, "rod", at=(0, 0, 0), axis="z", **options)
    model = builder.finalize()
    counts = model.layout.rows
    assert (counts.njd, counts.nf, counts.ne, counts.nl) == rows
    assert counts.njk == 5
    assert model.topology.path.tolist() == [path]


def test_rows_stand_by_family_then_joint_then_axis():
    builder = two_rods()
    everything = {"armature": 1.0, "friction": 1.0, "drive": "position", "kp": 1.0, "effort_max": 5.0, "limits": (-1, 1)}
    builder.add_universal(None, "rod", at=(0, 0, 0), **everything)
    builder.add_prismatic("rod", "tip", at=(1, 0, 0), axis="x", **everything)
    topology = builder.finalize().topology
    dofs, kinematic = [3, 4, 6], [0, 1, 2, 5, 7, 8, 9, 10, 11]
    assert topology.row.tolist() == dofs + kinematic + 3 * dofs
    assert topology.row_dof.tolist() == [0, 1, 2] + [0] * 9 + 3 * [0, 1, 2]


def test_joints_between_immovable_bodies_own_no_rows_but_keep_coordinates():
    builder = rod_builder(kinematic=True)
    builder.add_revolute(None, "rod", at=(0, 0, 0), axis="z", armature=1.0, friction=1.0, limits=(-1, 1))
    model = builder.finalize()
    assert model.layout.rows.nj == 0
    assert (model.layout.nq, model.layout.nv) == (1, 1)


def test_immovable_bodies_neither_move_nor_turn():
    builder = rod_builder(kinematic=True)
    builder.add_body("dot")
    model = builder.finalize()
    assert not np.any(model.topology.moves) and not np.any(model.topology.turns)
    assert model.bodies.mass.tolist() == [1.0, 0.0]


def test_massless_bodies_may_be_welded_to_the_world():
    builder = ModelBuilder()
    for name in ("mount", "flange"):
        builder.add_body(name)
    builder.add_fixed("mount", "flange")
    builder.add_fixed(None, "mount")
    assert builder.finalize().layout.rows.njk == 0


def balls(*, groups=(1, 1), joined=None, ignore=None, kinematic=(False, False), world=False):
    """Two balls on two bodies (or the second on the world); returns the number of candidate pairs."""
    builder = ModelBuilder()
    for i in range(2):
        builder.add_body(f"body{i}", mass=1, inertia=(1, 1, 1), kinematic=kinematic[i])
    for i in range(2):
        on_world = world and i == 1
        builder.add_sphere(None if on_world else f"body{i}", 0.1, name=f"ball{i}", group=groups[i])
    if joined:
        parent, kind = joined
        axis = {"axis": "x"} if kind == "revolute" else {}
        builder.add_joint(kind, parent, "body0" if parent is None else "body1", at=(0, 0, 0), **axis)
    if ignore:
        builder.ignore_collisions(*ignore)
    return len(builder.finalize().topology.pair)


PAIR_RULES = {
    "two bodies": ({}, 1),
    "equal positive groups": ({"groups": (2, 2)}, 1),
    "different positive groups": ({"groups": (1, 2)}, 0),
    "positive and negative": ({"groups": (1, -1)}, 1),
    "negative and positive": ({"groups": (-2, 1)}, 1),
    "equal negative groups": ({"groups": (-1, -1)}, 0),
    "different negative groups": ({"groups": (-1, -2)}, 1),
    "group zero": ({"groups": (0, -1)}, 0),
    "zero and zero": ({"groups": (0, 0)}, 0),
    "joined by a hinge": ({"joined": ("body0", "revolute")}, 0),
    "joined by a free joint": ({"joined": ("body0", "free")}, 0),
    "hinged to the world": ({"joined": (None, "revolute"), "world": True}, 1),
    "fixed to the world": ({"joined": (None, "fixed"), "world": True}, 0),
    "ignored shapes": ({"ignore": ("ball1", "ball0")}, 0),
    "ignored bodies": ({"ignore": ("body0", "body1")}, 0),
    "ignored world": ({"ignore": (None, "body0"), "world": True}, 0),
    "one kinematic body": ({"kinematic": (True, False)}, 1),
    "two kinematic bodies": ({"kinematic": (True, True)}, 0),
    "kinematic body and world": ({"kinematic": (True, True), "world": True}, 1),
}


@pytest.mark.parametrize(("options", "pairs"), PAIR_RULES.values(), ids=PAIR_RULES.keys())
def test_shapes_pair_by_the_collision_rules(options, pairs):
    assert balls(**options) == pairs


def test_shapes_of_one_body_and_of_the_world_do_not_pair():
    builder = rod_builder()
    for body_name in ("rod", "rod", None, None):
        builder.add_sphere(body_name, 0.1)
    assert builder.finalize().topology.pair.tolist() == [[0, 2], [0, 3], [1, 2], [1, 3]]


def test_pairs_are_sorted_by_collider_and_b_is_never_the_world():
    builder = two_rods()
    builder.add_box("rod", (0.1, 0.1, 0.1), name="crate")
    builder.add_box(None, (1, 1, 1), name="table")
    builder.add_sphere("tip", 0.1, name="ball")
    builder.add_plane(name="floor")
    model = builder.finalize()
    assert model.layout.pairs == (("plane_sphere", 1), ("plane_box", 1), ("sphere_box", 2), ("box_box", 1))
    assert model.layout.rows.nc == 1 + 4 + 2 * 1 + 8
    topology = model.topology
    second = np.where(topology.pair_flip, topology.pair[:, 0], topology.pair[:, 1])
    assert (np.asarray(topology.geom_body)[second] >= 0).all()
    named = [tuple(model.names.geoms[i] for i in pair) for pair in topology.pair.tolist()]
    assert named == [("floor", "ball"), ("floor", "crate"), ("ball", "crate"), ("ball", "table"), ("crate", "table")]
    assert topology.pair_flip.tolist() == [False, False, False, True, True]


TILT = 0.5 * np.arctan2(3, 4)
TILTED_PLANES = {
    "normal and offset": {"normal": (0, 3, 4), "offset": 2.0},
    "position and rotation": {"position": (0, 1.2, 1.6), "rotation": (-np.sin(TILT), 0, 0, np.cos(TILT))},
}


@pytest.mark.parametrize("options", TILTED_PLANES.values(), ids=TILTED_PLANES.keys())
def test_a_plane_may_be_placed_in_two_ways(options):
    builder = rod_builder()
    builder.add_plane(**options)
    pose = np.asarray(builder.finalize().geoms.X[0])
    x, y, z, w = pose[3:]
    np.testing.assert_allclose([2 * (x * z + y * w), 2 * (y * z - x * w), 1 - 2 * (x * x + y * y)], [0, 0.6, 0.8], atol=ROUNDING)
    np.testing.assert_allclose(pose[:3], [0, 1.2, 1.6], atol=ROUNDING)


def test_every_coordinate_finds_its_joint_and_back():
    builder = two_rods()
    builder.add_spherical(None, "rod", at=(0, 0, 0))
    builder.add_cylindrical("rod", "tip", at=(1, 0, 0), axis="x")
    topology = builder.finalize().topology
    assert topology.coordinate.tolist() == [6, 7, 8, 9, 10, 13]
    inverse = np.asarray(topology.entry).reshape(-1)
    assert inverse[topology.coordinate].tolist() == list(range(6))
    assert (np.delete(inverse, topology.coordinate) == 6).all()
