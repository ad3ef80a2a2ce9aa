"""DVI against our PADMM and Newton's DVI, in one run: python benchmarks/dvi.py [--out FILE].

Same scenes, dt and float32; each solver stops at its own tolerance, and the natural map of its solutions is printed beside its speed, so
that equal accuracy can be compared. Newton runs its whole schedule on the CPU. The chain's lines show how cost grows with its length for
both factorisations of the bilateral block. Prints JSON lines.
"""

import dataclasses
import functools
import importlib.util
import time

import jax
import jax.numpy as jnp
import peers
from _harness import commit, compiled, emit, machine, median_seconds, parser, percentiles
from compare import CONFIG, model_of, robot_file

import kamino_jax as kj
from kamino_jax import scenes

DVI = kj.Config(dynamics_solver="dvi", dvi=kj.DVIConfig(tolerance=1e-4))
OURS = {
    "padmm": CONFIG,
    "dvi": DVI,
    "dvi schur": kj.Config(dynamics_solver="dvi", dvi=kj.DVIConfig(tolerance=1e-4, use_schur_complement=True)),
    "dvi fixed": kj.Config(dynamics_solver="dvi", dvi=kj.DVIConfig(fixed_schedule=True)),
}
SCENES = {  # name: (dt [s], world counts, does Newton build it)
    "boxes_fourbar": (2.5e-3, (1, 256), True),
    "dr_legs": (2e-3, (1, 64), True),
    "box_on_plane": (1e-3, (256,), True),
    "cartpole": (1e-3, (1, 256), False),
    "stewart_platform": (2e-3, (1,), False),
}
STACKS = (1, 2, 3, 4, 6, 8)
CHAINS = (10, 30, 100, 300, 1000)


def built(name):
    """Our model of a scene."""
    own = {"cartpole": scenes.cartpole, "stewart_platform": scenes.stewart_platform}
    return own[name]()[0] if name in own else model_of(name)


def ours(model, dt, worlds, steps, config):
    """Figures of one backend: a scan of steps, all worlds by vmap."""
    models = kj.stack([model] * worlds)
    states = kj.initial_state(models)
    seen = lambda _, info: (info.status.iterations, info.status.r_d, info.status.converged)
    one = lambda m, s: kj.rollout(m, s, dt=dt, steps=steps, config=config, record=seen)
    program, trace, compile_ = compiled(jax.vmap(one), models, states)
    _, (iterations, r_d, converged) = program(models, states)
    seconds = median_seconds(lambda: jax.block_until_ready(program(models, states)), repeats=3)
    rate = worlds * steps / seconds
    return dict(
        trace_s=trace,
        compile_s=compile_,
        world_steps_per_s=rate,
        converged=float(jnp.mean(converged)),
        natural_map_p50=natural_map(models, states, dt, steps, config),
        **percentiles("iterations", iterations),
        **percentiles("r_d", r_d),
    )


def natural_map(models, states, dt, steps, config):
    """Median natural map of the first world's solutions."""
    first = jax.tree.map(lambda x: x[0], (models, states))
    seen = lambda _, info: info.metrics.solution.natmap.value
    config = dataclasses.replace(config, compute_solution_metrics=True)
    run = jax.jit(lambda m, s: kj.rollout(m, s, dt=dt, steps=steps, config=config, record=seen)[1])
    return float(jnp.median(run(*first)))


def chains(out):
    """Seconds of a step of a pendulum chain."""
    for kind in ("LLTB", "LLTBRCM"):
        config = kj.Config(dynamics_solver="dvi", dvi=kj.DVIConfig(bilateral_solver_type=kind))
        for n in CHAINS:
            if kind == "LLTB" and n > 300:
                continue
            model = scenes.pendulum_chain(n, angle=0.1)[0]
            state = kj.initial_state(model)
            program, trace, compile_ = compiled(lambda m, s, c=config: kj.step(m, s, dt=1e-3, config=c), model, state)
            last, info = program(model, state)
            seconds = median_seconds(lambda p=program, a=(model, state): jax.block_until_ready(p(*a)), repeats=7)
            r_b = float(info.status.backend.r_b)
            figures = dict(bodies=n, step_s=seconds, trace_s=trace, compile_s=compile_, r_b=r_b)
            emit(out, benchmark="chain", solver=kind, **figures, commit=commit(), **machine())


def accuracy(out, figure):
    """Natural map against the number of active contacts, both solvers with their default settings, on stacks of boxes; as a picture too."""
    points = {"padmm": [], "dvi": []}
    for boxes in STACKS:
        model = scenes.box_stack(boxes)[0]
        models, states = kj.stack([model]), kj.initial_state(kj.stack([model]))
        for solver in points:
            config = kj.Config(dynamics_solver=solver)
            value = natural_map(models, states, 1e-3, 100, config)
            points[solver].append((4 * boxes, value))
            emit(out, benchmark="accuracy", solver=solver, contacts=4 * boxes, natural_map_p50=value, commit=commit(), **machine())
    if figure:
        draw(points, figure)


def draw(points, file):
    """Natural map over contacts, a line per solver."""
    import matplotlib.pyplot as plt

    axes = plt.figure(figsize=(6, 4), layout="constrained").subplots()
    for solver, line in points.items():
        axes.semilogy(*zip(*line, strict=True), marker="o", label=solver)
    axes.set(xlabel="active contacts", ylabel="natural map [N s, m/s]", title="Stacks of boxes, default settings, float32")
    axes.legend()
    axes.figure.savefig(file, dpi=120)


def runs_of(name, worlds, steps):
    """{solver: () -> figures} of one scene."""
    dt, _, newton_has = SCENES[name]
    runs = {solver: functools.partial(ours, built(name), dt, worlds, steps, config) for solver, config in OURS.items()}
    if newton_has and importlib.util.find_spec("newton"):
        settings = dict(tolerance=1e-4, rho=0.1, robot_file=robot_file, solver="dvi")
        runs["newton dvi"] = functools.partial(peers.newton_figures, name, dt, worlds, steps, **settings)
    return runs


def main():
    p = parser(__doc__)
    p.add_argument("--scenes", nargs="*", default=list(SCENES), choices=list(SCENES))
    p.add_argument("--no-chains", action="store_true")
    p.add_argument("--figure", help="picture of the natural map over contacts")
    args = p.parse_args()
    for name in args.scenes:
        if name == "dr_legs" and not (robot_file(name) and importlib.util.find_spec("newton")):
            continue
        for worlds in (1,) if args.smoke else SCENES[name][1]:
            steps = 5 if args.smoke else peers.steps_for(name, worlds)
            for solver, run in runs_of(name, worlds, steps).items():
                start = time.perf_counter()
                about = dict(benchmark="dvi", scene=name, worlds=worlds, solver=solver, steps=steps)
                figures = run()
                emit(args.out, **about, total_s=time.perf_counter() - start, **figures, commit=commit(), **machine())
    if not args.no_chains:
        chains(args.out)
        accuracy(args.out, args.figure)


if __name__ == "__main__":
    main()
