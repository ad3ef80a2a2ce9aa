"""Newton models for the tests, and their paths by Newton's solver and by ours. Importing this needs the extra `newton`."""

import functools

import jax
import newton
import numpy as np
import warp as wp
from newton.solvers import SolverKamino
from newton.tests.utils import basics, testing
from support import tight

import kamino_jax as kj
from kamino_jax.newton import from_newton

wp.config.log_level = wp.LOG_WARNING
ROUNDING = 2e-6  # single precision of metres and radians
DT, STEPS = 0.002, 50
Mode, Dof = newton.JointTargetMode, newton.ModelBuilder.JointDofConfig
NO_TURN = wp.mat33(*np.eye(3).ravel())  # [kg m²] inertia of bodies that only have to exist


def numbers(tree):
    """The tree with NumPy arrays."""
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
