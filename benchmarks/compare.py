"""The same scenes on kamino_jax, Newton's SolverKamino and MJX, in one run: python benchmarks/compare.py [--out FILE].

Same dt, same solver tolerance, float32. Engines that are not installed are left out, and so are robots without KAMINO_JAX_ASSETS. MJX
solves another problem (soft constraints, Newton iterations): its rows are for scale. Prints JSON lines, then a table of ratios.
"""

import functools
import importlib.util
import os
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import peers
from _harness import commit, compiled, emit, machine, median_seconds, parser, percentiles

import kamino_jax as kj
from kamino_jax import scenes

TOLERANCE, RHO = 1e-4, 0.1
ROBOT_FILES = {"dr_legs": "dr_legs/usd/dr_legs_with_boxes.usda", "dr_testmech": "dr_testmech/usd/dr_testmech.usda"}
SCENES = {  # name: (dt [s], world counts)
    "box_on_plane": (1e-3, (1, 256)),
    "boxes_nunchaku": (1e-3, (1, 256)),
    "boxes_fourbar": (2.5e-3, (1, 256)),
    "box_stack": (1e-3, (1, 256)),
    "pyramid": (1e-3, (1,)),
    "dr_legs": (2e-3, (1,)),
    "dr_testmech": (1e-3, (1,)),
}
CONFIG = kj.Config(
    padmm=kj.PADMMConfig(
        primal_tolerance=TOLERANCE,
        dual_tolerance=TOLERANCE,
        compl_tolerance=TOLERANCE,
        rho_0=RHO,
        contact_warmstart_method="geom_pair_net_force",
    )
)


def robot_file(name):
    """Path of a robot's model, or None."""
    folder = os.environ.get("KAMINO_JAX_ASSETS")
    file = pathlib.Path(folder or ".") / "disneyresearch" / ROBOT_FILES[name]
    return file if folder and file.is_file() else None


@functools.cache
def model_of(name):
    """Our model of a scene."""
    if name in ROBOT_FILES:
        from kamino_jax.newton import from_newton

        newton_model = peers.newton_builder(name, robot_file).finalize(skip_validation_joints=True)
        return kj.unstack(from_newton(newton_model, unsupported="skip").model)[0]  # TestMech has meshes that touch
    build = {"box_stack": lambda: scenes.box_stack(5), "pyramid": lambda: scenes.pyramid(4)}.get(name, getattr(scenes, name, None))
    return build()[0]


def ours(name, dt, worlds, steps):
    """Figures of kamino_jax: a scan of steps, all worlds by vmap."""
    models = kj.stack([model_of(name)] * worlds)
    states = kj.initial_state(models)
    seen = lambda state, info: (info.status.iterations, info.status.r_p, info.status.r_d, info.status.converged)
    one = lambda m, s: kj.rollout(m, s, dt=dt, steps=steps, config=CONFIG, record=seen)
    program, trace, compile_ = compiled(jax.vmap(one), models, states)
    _, (iterations, r_p, r_d, converged) = program(models, states)
    seconds = median_seconds(lambda: jax.block_until_ready(program(models, states)), repeats=3)
    return dict(
        trace_s=trace,
        compile_s=compile_,
        world_steps_per_s=worlds * steps / seconds,
        converged=float(jnp.mean(converged)),
        **percentiles("iterations", iterations),
        **percentiles("residual", np.maximum(r_p, r_d)),
    )


def step_compile_time(name, dt):
    """(trace, compile) seconds of one step of one world."""
    model = model_of(name)
    _, trace, compile_ = compiled(lambda m, s: kj.step(m, s, dt=dt, config=CONFIG), model, kj.initial_state(model))
    return trace, compile_


def main():
    p = parser(__doc__)
    p.add_argument("--scenes", nargs="*", default=list(SCENES), choices=list(SCENES))
    p.add_argument("--engines", nargs="*", default=["kamino_jax", "newton", "mjx"])
    args = p.parse_args()
    engines = {"kamino_jax": ours}
    if "newton" in args.engines and importlib.util.find_spec("newton"):
        engines["newton"] = functools.partial(peers.newton_figures, tolerance=TOLERANCE, rho=RHO, robot_file=robot_file)
    if "mjx" in args.engines and importlib.util.find_spec("mujoco"):
        engines["mjx"] = peers.mjx_figures
    rates = {}
    for name in args.scenes:
        dt, counts = SCENES[name]
        if name in ROBOT_FILES and not (robot_file(name) and importlib.util.find_spec("newton")):
            continue
        trace, compile_ = step_compile_time(name, dt)
        emit(args.out, benchmark="compile", scene=name, trace_s=trace, compile_s=compile_, commit=commit(), **machine())
        for worlds in (1,) if args.smoke else counts:
            steps = 5 if args.smoke else peers.steps_for(name, worlds)
            for engine, run in engines.items():
                start = time.perf_counter()
                figures = run(name, dt, worlds, steps)
                if figures is None:
                    continue
                rates[name, worlds, engine] = figures["world_steps_per_s"]
                emit(
                    args.out,
                    benchmark="compare",
                    scene=name,
                    worlds=worlds,
                    engine=engine,
                    dt=dt,
                    steps=steps,
                    tolerance=TOLERANCE,
                    total_s=time.perf_counter() - start,
                    **figures,
                    commit=commit(),
                    **machine(),
                )
    print_ratios(rates)


def print_ratios(rates):
    """Our rate over each peer's, scene by scene."""
    for name, worlds in dict.fromkeys(key[:2] for key in rates):
        mine = rates[name, worlds, "kamino_jax"]
        ratios = [f"{mine / rates[name, worlds, e]:.1f} x {e}" for e in ("newton", "mjx") if (name, worlds, e) in rates]
        print(f"{name:16s} {worlds:5d} worlds  {mine:10.0f} world-steps/s   {'   '.join(ratios)}")


if __name__ == "__main__":
    main()
