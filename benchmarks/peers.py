"""Other engines on the benchmark scenes: Newton's SolverKamino and MJX."""

import jax
import jax.numpy as jnp
import numpy as np
from _harness import compiled, median_seconds, percentiles

STEPS = {1: 160, 64: 40, 256: 40}


HEAVY = ("dr_legs", "dr_testmech", "pyramid")


def steps_for(name, worlds):
    """Steps of one timed run, the same for every engine."""
    return STEPS[worlds] // (4 if name in HEAVY else 1)


def newton_builder(name, robot_file):
    """A Newton ModelBuilder of the scene."""
    import newton
    from newton.tests.utils import basics

    if name in ROBOTS:
        return robot(newton, robot_file(name), **ROBOTS[name])
    known = {
        "box_on_plane": basics.build_box_on_plane,
        "boxes_nunchaku": basics.build_boxes_nunchaku,
        "boxes_fourbar": basics.build_boxes_fourbar,
    }
    return known[name]() if name in known else boxes(newton, name)


ROBOTS = {"dr_legs": dict(height=0.265, ground=True), "dr_testmech": dict(height=0.0, ground=False)}


def robot(newton, file, *, height, ground):
    """A robot from a USD file, hung in the air at the given height."""
    builder = newton.ModelBuilder()
    newton.solvers.SolverKamino.register_custom_attributes(builder)
    builder.default_shape_cfg.margin, builder.default_shape_cfg.gap = 1e-6, 0.01
    builder.add_usd(str(file), joint_ordering=None, force_show_colliders=True, collapse_fixed_joints=False, enable_self_collisions=False)
    scene = newton.ModelBuilder()
    newton.solvers.SolverKamino.register_custom_attributes(scene)
    scene.add_builder(builder, xform=((0.0, 0.0, height), (0.0, 0.0, 0.0, 1.0)))
    if ground:
        scene.add_ground_plane()
    return scene


def boxes(newton, name):
    """The stack and the pyramid, from our own scenes' numbers."""
    from kamino_jax import scenes

    model = (scenes.box_stack(5) if name == "box_stack" else scenes.pyramid(4))[0]
    builder = newton.ModelBuilder()
    builder.default_shape_cfg.gap = 0.0
    size = np.asarray(model.geoms.size[np.asarray(model.topology.geom_body) >= 0])
    cfg = newton.ModelBuilder.ShapeConfig(density=0.0, mu=float(model.geoms.mu[0]), gap=0.0, margin=0.0)
    for q, m, I, h in zip(np.asarray(model.start.q), model.bodies.mass, np.asarray(model.bodies.inertia), size, strict=True):
        body = builder.add_body(xform=tuple(map(float, q)), mass=float(m), inertia=tuple(map(float, I.ravel())), lock_inertia=True)
        builder.add_shape_box(body, hx=float(h[0]), hy=float(h[1]), hz=float(h[2]), cfg=cfg)
    builder.add_ground_plane(cfg=cfg)
    return builder


def newton_solver(model, tolerance, rho, solver):
    """SolverKamino with the settings that the comparison states; DVI as it comes."""
    from newton.solvers import SolverKamino

    config = SolverKamino.Config(use_collision_detector=True, dynamics_solver=solver)
    if solver == "dvi":
        return SolverKamino(model, config)
    padmm = config.padmm
    padmm.primal_tolerance = padmm.dual_tolerance = padmm.compl_tolerance = tolerance
    padmm.rho_0, padmm.contact_warmstart_method = rho, "geom_pair_net_force"
    return SolverKamino(model, config)


def newton_figures(name, dt, worlds, steps, *, tolerance, rho, robot_file, solver="padmm"):
    """Figures of SolverKamino, CPU."""
    import newton
    import warp as wp

    scene = newton_builder(name, robot_file)
    builder = newton.ModelBuilder()
    newton.solvers.SolverKamino.register_custom_attributes(builder)
    builder.replicate(scene, worlds)
    model = builder.finalize(skip_validation_joints=True)
    kamino = newton_solver(model, tolerance, rho, solver)
    control, status = model.control(), []

    def run(record=False):
        """The same steps from the same start as everybody's."""
        now, after = model.state(), model.state()
        for _ in range(steps):
            kamino.step(now, after, control, None, dt)
            now, after = after, now
            if record:
                status.append(kamino.status.numpy().copy())
        wp.synchronize()

    seconds = median_seconds(run, repeats=3)
    run(record=True)
    s = np.stack(status)
    return dict(
        world_steps_per_s=worlds * steps / seconds,
        converged=float(s["converged"].mean()),
        **percentiles("iterations", s["iterations"]),
        **percentiles("residual", np.maximum(s["r_p"], s["r_d"])),
    )


WORLD = '<mujoco><option timestep="{dt}" cone="elliptic"/><worldbody><geom type="plane" size="0 0 1"/>{bodies}</worldbody>{more}</mujoco>'


def mjcf(name, dt):
    """MJCF of the scenes that MJX can do, else None."""
    box = lambda x, z, h: f'<body pos="{x} 0 {z}"><freejoint/><geom type="box" size="{h} {h} {h}" density="1000"/></body>'
    if name == "box_on_plane":
        return WORLD.format(dt=dt, bodies=box(0, 0.1, 0.1), more="")
    if name == "box_stack":
        return WORLD.format(dt=dt, bodies="".join(box(0, 0.1 + 0.2 * i, 0.1) for i in range(5)), more="")
    return WORLD.format(dt=dt, bodies=FOURBAR, more=LOOP) if name == "boxes_fourbar" else None


# Four bars 0.1 m long, three hinges and one `connect` that closes the loop.
BAR = '<geom type="box" size="{0}" density="1000" contype="0" conaffinity="{1}"/>'
FOURBAR = (
    '<body name="first" pos="0 0 .005"><freejoint/>'
    + BAR.format(".05 .05 .005", 1)
    + '<body pos=".056 0 .056"><joint axis="0 1 0" pos="0 0 -.056"/>'
    + BAR.format(".005 .05 .05", 1)
    + '<body pos="-.056 0 .056"><joint axis="0 1 0" pos=".056 0 0"/>'
    + BAR.format(".05 .05 .005", 1)
    + '<body name="last" pos="-.056 0 -.056"><joint axis="0 1 0" pos="0 0 .056"/>'
    + BAR.format(".005 .05 .05", 1)
    + "</body></body></body></body>"
)
LOOP = '<equality><connect body1="last" body2="first" anchor="0 0 -.056"/></equality>'


def mjx_figures(name, dt, worlds, steps):
    """Figures of MJX, or None where it cannot do the scene."""
    import mujoco
    from mujoco import mjx

    text = mjcf(name, dt)
    if text is None:
        return None
    model = mjx.put_model(mujoco.MjModel.from_xml_string(text))
    data = jax.vmap(lambda _: mjx.make_data(model))(np.arange(worlds))
    scan = lambda d: jax.lax.scan(lambda d, _: (mjx.step(model, d), None), d, length=steps)[0]
    program, trace, compile_ = compiled(jax.vmap(scan), data)
    seconds = median_seconds(lambda: jax.block_until_ready(program(data)), repeats=3)
    return dict(trace_s=trace, compile_s=compile_, world_steps_per_s=worlds * steps / seconds)


def mjx_gradient(name, dt, worlds, iterations):
    """Cost of MJX's gradient of a step's velocities by the velocities before, beside its step; or why it refuses."""
    import mujoco
    from mujoco import mjx

    spec = mujoco.MjModel.from_xml_string(mjcf(name, dt))
    spec.opt.iterations, spec.opt.ls_iterations = iterations, iterations
    model = mjx.put_model(spec)
    data = jax.vmap(lambda _: mjx.make_data(model))(np.arange(worlds))
    after = lambda v, d: jnp.sum(mjx.step(model, d.replace(qvel=v)).qvel ** 2)
    step, _, _ = compiled(jax.vmap(after), data.qvel, data)
    seconds = median_seconds(lambda: jax.block_until_ready(step(data.qvel, data)), repeats=5)
    try:
        program, trace, compile_ = compiled(jax.vmap(jax.value_and_grad(after)), data.qvel, data)
    except ValueError as refusal:
        return dict(solver_iterations=iterations, seconds=seconds, refused=str(refusal).split("\n")[0][:120])
    gradient = median_seconds(lambda: jax.block_until_ready(program(data.qvel, data)), repeats=5)
    return dict(solver_iterations=iterations, seconds=gradient, ratio=gradient / seconds, trace_s=trace, compile_s=compile_)
