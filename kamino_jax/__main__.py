"""`python -m kamino_jax simulate SCENE_OR_FILE`, `info SCENE_OR_FILE` and `optimize EXAMPLE`."""

import argparse
import json
import pathlib
import sys
import time

FILES = (".usd", ".usda", ".usdc", ".urdf", ".xml")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m kamino_jax", description="Rigid mechanisms with loops and contact, in JAX.")
    commands = parser.add_subparsers(dest="command", required=True)
    simulate = commands.add_parser("simulate", help="run a built-in scene or a model file in many worlds and report figures")
    info = commands.add_parser("info", help="describe a scene or a model file")
    for command in (simulate, info):
        command.add_argument("scene", help=f"a built-in scene, or a file ({', '.join(FILES)}; needs the extra 'newton')")
        command.add_argument(
            "--skip-unsupported", action="store_true", help="drop pairs of shapes that cannot collide here, with a warning"
        )
        command.add_argument("--precision", type=int, choices=(32, 64), default=32)
        command.add_argument("--json", action="store_true", help="print one JSON object")
    simulate.add_argument("--worlds", type=int, default=1)
    simulate.add_argument("--steps", type=int, default=500)
    simulate.add_argument("--dt", type=float, default=0.002, help="time step [s]")
    simulate.add_argument("--solver", choices=("padmm",), default="padmm")
    simulate.add_argument("--integrator", choices=("euler", "moreau"), default="euler")
    simulate.add_argument("--tolerance", type=float, default=1e-4, help="solver tolerance [N s, m/s, J]")
    simulate.add_argument("--rho", type=float, default=0.1, help="ADMM penalty")
    simulate.add_argument("--plot", metavar="FILE.png", help="draw what happened in the first world (needs the extra 'viz')")
    _add_optimize(commands)
    return parser


def _add_optimize(commands) -> None:
    optimize = commands.add_parser("optimize", help="run an example of optimisation through the simulation")
    optimize.add_argument("example", choices=("cartpole", "four_bar", "block_push"))
    optimize.add_argument("--iterations", type=int, help="at most so many; the example's own number if left out")
    optimize.add_argument("--precision", type=int, choices=(32, 64), default=64)
    optimize.add_argument("--json", action="store_true", help="print one JSON object")
    optimize.add_argument("--plot", metavar="FILE.png", help="draw cost, controls or paths, and motion (needs the extra 'viz')")


def load(name: str, *, skip_unsupported: bool = False):
    """The Model of a built-in scene or of a file; `skip_unsupported` drops the file's pairs of shapes that cannot collide here.

    Raises:
        ValueError: neither a scene nor a readable file.
    """
    from .scenes import SCENES

    if name in SCENES:
        return SCENES[name]()[0]
    if not name.lower().endswith(FILES):
        raise ValueError(f"no scene named {name!r}; scenes are {', '.join(SCENES)}, files end in {', '.join(FILES)}")
    if not pathlib.Path(name).is_file():
        raise ValueError(f"no file {name!r}")
    from .newton import load_file

    return load_file(name, unsupported="skip" if skip_unsupported else "error")


def _settings(args):
    from .config import Config, PADMMConfig

    tolerance = args.tolerance
    padmm = PADMMConfig(
        primal_tolerance=tolerance,
        dual_tolerance=tolerance,
        compl_tolerance=tolerance,
        rho_0=args.rho,
        contact_warmstart_method="geom_pair_net_force",
    )
    return Config(dynamics_solver=args.solver, integrator=args.integrator, padmm=padmm)


def _progress(chunks):
    try:
        from tqdm import tqdm
    except ImportError:
        return chunks
    return tqdm(chunks, desc="simulating", unit="chunk", file=sys.stderr)


def simulate(args) -> None:
    """Run, print the figures, draw."""
    from . import simulation
    from .batch import stack

    for name in ("worlds", "steps"):
        if getattr(args, name) < 1:
            raise ValueError(f"--{name} must be at least 1")
    if not args.dt > 0:
        raise ValueError("--dt must be positive")
    model = load(args.scene, skip_unsupported=args.skip_unsupported)
    recording = simulation.run(stack([model] * args.worlds), steps=args.steps, dt=args.dt, config=_settings(args), progress=_progress)
    scene = pathlib.Path(args.scene).stem
    figures = simulation.report(scene, model, recording, dt=args.dt)
    print(json.dumps(figures) if args.json else simulation.table(figures))
    if args.plot:
        from .viz.plot import plot

        plot(args.plot, scene, model, recording.first, args.dt)


def info(args) -> None:
    """Print what a model is made of."""
    from .simulation import rows_by_family, table

    model = load(args.scene, skip_unsupported=args.skip_unsupported)
    layout = model.layout
    figures = dict(
        scene=pathlib.Path(args.scene).stem,
        bodies=layout.nb,
        joints=layout.nj,
        geoms=layout.ng,
        coordinates=layout.nq,
        dofs=layout.nv,
        joint_kinds=", ".join(layout.joint_kinds),
        rows=rows_by_family(model),
        contact_slots=layout.rows.nc,
        collision_pairs=dict(layout.pairs),
        mass_kg=float(model.bodies.mass.sum()),
        gravity=[float(g) for g in model.gravity],
        body_names=list(model.names.bodies),
        joint_names=list(model.names.joints),
    )
    print(json.dumps(figures) if args.json else table(figures))


def _reporter(bar):
    """A `report` callback that moves a progress bar."""

    def report(iteration, cost):
        bar.set_postfix_str(f"cost {cost:.4g}")
        bar.update(iteration - bar.n)

    return report


def optimize(args) -> None:
    """Run one example, print what it found, draw."""
    from .optim.examples import EXAMPLES
    from .simulation import table

    if args.iterations is not None and args.iterations < 1:
        raise ValueError("--iterations must be at least 1")
    options, started = {} if args.iterations is None else dict(iterations=args.iterations), time.perf_counter()
    try:
        from tqdm import tqdm
    except ImportError:
        outcome = EXAMPLES[args.example](**options)
    else:
        with tqdm(total=args.iterations, desc=args.example, unit="iteration", file=sys.stderr) as bar:
            outcome = EXAMPLES[args.example](**options, report=_reporter(bar))
    figures = dict(example=args.example) | outcome.figures | dict(seconds=time.perf_counter() - started)
    print(json.dumps(figures) if args.json else table(figures))
    if args.plot:
        from .viz.outcome import plot_outcome

        plot_outcome(args.plot, args.example, outcome)


def main(argv: list[str] | None = None) -> int:
    """Run one command; 2 and one line on stderr when the input is wrong."""
    args = _parser().parse_args(argv)
    if args.precision == 64:
        import jax

        jax.config.update("jax_enable_x64", True)  # the command's own process, before any array exists
    try:
        {"simulate": simulate, "info": info, "optimize": optimize}[args.command](args)
    except (ValueError, TypeError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
