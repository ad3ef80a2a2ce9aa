"""The derivative of a step by everything it depends on, against central differences, for every law a row can follow."""

import functools

import jax.numpy as jnp
import numpy as np
import pytest
from gradients import World, compare
from support import KEPT, X64, axis_angle, matrix

import kamino_jax as kj
from kamino_jax.linearize import retract

pytestmark = pytest.mark.skipif(not X64, reason="central differences need double precision")

TOLERANCE = 1e-7  # relative to the largest entry: differences of fourth order leave 1e-9 in the median
SHARE = 0.999  # of the states whose laws do not change within the stencil
SOLVER = dict.fromkeys(("primal_tolerance", "dual_tolerance", "compl_tolerance"), 1e-8)  # right laws; differentiating polishes the rest
INTEGRATORS = ("euler", "moreau")


def config(integrator, **kwargs):
    """Strong recovery, so that errors of position are felt; compliance wherever a stiffness is given."""
    constraints = kj.ConstraintsConfig(alpha=0.1, beta=0.1, gamma=0.1, contact_compliance=True, limit_compliance=True)
    padmm = kj.PADMMConfig(**SOLVER, max_iterations=2000, contact_warmstart_distance=0.1, warmstart_scale=1.0)
    return kj.Config(integrator=integrator, constraints=constraints, padmm=padmm, **kwargs)


def random_body(builder, name, rng, position, speed=1.0, **kwargs):
    moments = rng.uniform(0.02, 0.03, 3)
    mass, com = rng.uniform(0.5, 2), rng.uniform(-0.02, 0.02, 3)
    velocity, spin = speed * rng.standard_normal((2, 3))
    builder.add_body(name, mass=mass, inertia=moments, com=com, position=position, velocity=velocity, angular_velocity=spin, **kwargs)


def jointed(rng):
    """Three bodies: a driven hinge with friction and limits, a slider whose drive has an effort limit, a driven ball joint.

    Half of the limits are violated, half of those are soft; effort limits are low or high, and so is friction where no limit competes.
    """
    builder = kj.ModelBuilder(gravity=(0.3, -0.2, -9.81))
    gains = lambda: dict(drive="position_velocity", kp=rng.uniform(15, 60), kd=rng.uniform(1, 4))
    soft = lambda: dict(limit_stiffness=rng.choice([0, 500.0]), limit_damping=3.0)
    for name, position in {"a": (0.1, 0, 0.2), "b": (0.5, 0, 0.2), "c": (0.5, 0.3, 0.2)}.items():
        random_body(builder, name, rng, position)
    limits, friction = [((-1, 1), 100.0), ((-1, 1), 0.2), ((0.2, 1), 0.2), ((-1, -0.2), 0.2)][rng.integers(4)]
    row = dict(armature=rng.uniform(0.05, 0.1), damping=rng.uniform(0.5, 1), friction=friction)
    builder.add_revolute(None, "a", at=(0, 0, 0.2), axis="y", limits=limits, **row, **soft(), **gains())
    reach, effort = rng.choice([-0.1, 0.1]), rng.choice([0.3, 500.0])
    row = dict(limits=(reach, 0.4), effort_max=effort, friction=0.4)
    builder.add_prismatic("a", "b", at=(0.3, 0, 0.2), axis="x", **row, **soft(), **gains())
    builder.add_spherical("b", "c", at=(0.5, 0.15, 0.2), friction=rng.choice([0.1, 100.0]), drive="position", kp=3.0, kd=0.2)
    return builder


def touching(rng):
    """A ball, a capsule on one end that also touches the ball, and a box on a corner, all at the ground within millimetres.

    Speeds are low (sticking) or high (sliding, leaving); half of the contacts are soft or bounce.
    """
    builder = kj.ModelBuilder(gravity=(0.3, -0.2, -9.81))
    depth = lambda: rng.uniform(-1e-3, 4e-3)
    material = lambda: dict(mu=rng.uniform(0.2, 0.8), restitution=rng.uniform(0, 0.4), stiffness=stiffness, damping=20.0, gap=5e-3)
    stiffness, speed = rng.choice([0, 2000.0]), rng.choice([0.01, 1.0])
    builder.add_plane(name="ground", **material())
    random_body(builder, "ball", rng, (0, 0, 0.1 - depth()), speed)
    builder.add_sphere("ball", 0.1, name="ball_shape", **material())
    tilt = 0.2  # [rad] level, its two ends would share the load along its axis in more than one way
    height = 0.08 + 0.15 * np.sin(tilt) - depth()
    random_body(builder, "capsule", rng, (0.18 - depth(), 0, height), speed, rotation=axis_angle((1, 0, 0), tilt))
    builder.add_capsule("capsule", 0.08, 0.15, name="capsule_shape", axis="y", **material())
    turn, half = axis_angle((*rng.uniform(0.2, 0.6, 2), 0), 0.6), np.array([0.1, 0.12, 0.14])
    height = np.abs(matrix(turn)[2]) @ half - depth()
    random_body(builder, "box", rng, (1, 0, height), speed, rotation=turn)
    builder.add_box("box", half, name="box_shape", **material())
    builder.ignore_collisions("box", "ball")
    builder.ignore_collisions("box", "capsule")
    return builder


def random_world(build, rng, spread):
    """A world near the built one: poses moved by `spread` [m, rad], random control and time step."""
    model = build(rng).finalize()
    n, control, normal = model.layout, kj.zero_control(model), rng.standard_normal
    state = retract(kj.initial_state(model), jnp.asarray(np.r_[spread * normal(6 * n.nb), np.zeros(6 * n.nb)]))
    targets = dict(q_ref=control.q_ref + 0.1 * normal(n.nq), u_ref=jnp.asarray(normal(n.nv)))
    control = kj.replace(control, tau=jnp.asarray(normal(n.nv)), w_ext=jnp.asarray(normal((n.nb, 6))), **targets)
    return World(model, state, control, jnp.asarray(rng.uniform(0.005, 0.02)))


COMMON = ("q", "u", "w_ext", "mass", "inertia", "com", "gravity", "dt")
JOINTS = ("tau", "q_ref", "u_ref", "X_B", "X_F", "kp", "kd", "armature", "damping", "friction")
JOINTS += ("limit_stiffness", "limit_damping", "q_min", "q_max", "effort_max")
CONTACTS = ("X", "size", "margin", "mu", "restitution", "contact_stiffness", "contact_damping")
# scene: (how to build a world, spread of its poses, inputs, number of states, settings)
SCENES = {
    "jointed": (jointed, 0.05, COMMON + JOINTS, 24, {}),
    "touching": (touching, 0.0, COMMON + CONTACTS, 24, dict(dynamics=kj.DynamicsConfig(**KEPT))),
}
EACH = pytest.mark.parametrize("integrator", INTEGRATORS)


@functools.cache
def compared(scene, integrator):
    build, spread, inputs, count, settings = SCENES[scene]
    rng = np.random.default_rng(7)
    worlds = kj.stack([random_world(build, rng, spread) for _ in range(count)])
    return worlds.model.layout.rows, compare(worlds, config(integrator, **settings), inputs, seed=8)


@EACH
@pytest.mark.parametrize("scene", SCENES)
def test_a_step_has_the_derivative_of_its_differences(scene, integrator):
    """By every input; states whose laws change within the stencil are few."""
    _, seen = compared(scene, integrator)
    assert min(seen.passed(TOLERANCE).values()) >= SHARE, seen.error
    assert min(seen.compared().values()) >= 0.9, seen.compared()
    assert min(seen.largest.values()) > 1e-3, seen.largest  # no input without an effect


@EACH
def test_the_states_of_the_comparison_see_every_law_of_a_joint(integrator):
    """Friction that holds and slips, drives below and at their effort limit, limits that act and that do not."""
    rows, seen = compared("jointed", integrator)
    held, active = seen.laws["held"], seen.laws["active"]
    for family in (rows.friction, rows.effort):
        assert 0.1 < held[:, family].mean() < 0.9
    for limit in active[:, rows.limit].T:
        assert 0.1 < limit.mean() < 0.9
    assert held[:, rows.limit][active[:, rows.limit]].mean() > 0.1


@EACH
def test_the_states_of_the_comparison_see_every_law_of_a_contact(integrator):
    """Apart and overlapping; open, sticking and sliding."""
    rows, seen = compared("touching", integrator)
    on = seen.laws["active"][:, rows.contact].reshape(-1, rows.nc, 3)[:, :, 2]
    closed, sliding = seen.laws["closed"][on], seen.laws["sliding"][on]
    apart = seen.laws["beyond"].reshape(-1, rows.nc, 2)[:, :, 0][on]
    for share in (apart.mean(), (~closed).mean(), sliding.mean(), (closed & ~sliding).mean()):
        assert share > 0.05
