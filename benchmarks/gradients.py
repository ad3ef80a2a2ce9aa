"""What a gradient costs beside the step it belongs to: python benchmarks/gradients.py [--out FILE].

Per scene and number of worlds, in one run, float32: one step; value and gradient of a function of the state after it by control and twists,
and by poses too; the same by forward differences (one step per input). Then the memory of the gradient of a long rollout at two caps of the
solver's iterations, from XLA's own analysis. MJX, where installed, is asked for the same gradient of one step with one and with four solver
iterations.
"""

import dataclasses
import importlib.util

import jax
import jax.numpy as jnp
import peers
from _harness import commit, compiled, emit, machine, median_seconds, parser
from compare import CONFIG, ROBOT_FILES, SCENES, model_of, robot_file

import kamino_jax as kj

COUNTS = {"boxes_fourbar": (1, 256), "dr_legs": (1,)}


def loss(state):
    """A function of the state after a step."""
    return jnp.sum(state.u**2) + jnp.sum(state.q[:, :3] ** 2)


def programs(dt):
    """{name: (function of (inputs, model, state, control), inputs of (state, control))}."""

    def after(inputs, model, state, control):
        state = kj.replace(state, **{k: inputs[k] for k in ("q", "u") if k in inputs})
        control = kj.replace(control, tau=inputs["tau"], w_ext=inputs["w_ext"])
        return loss(kj.step(model, state, control, dt=dt, config=CONFIG)[0])

    by_control = lambda s, c: dict(tau=c.tau, w_ext=c.w_ext, u=s.u)
    by_all = lambda s, c: by_control(s, c) | dict(q=s.q)
    return {
        "step": (after, by_control),
        "gradient by control and twists": (jax.value_and_grad(after), by_control),
        "gradient by poses too": (jax.value_and_grad(after), by_all),
    }


def step_costs(name, worlds, out):
    """One line per program of a scene."""
    dt = SCENES[name][0]
    models = kj.stack([model_of(name)] * worlds)
    states, controls = kj.initial_state(models), kj.zero_control(models)
    settle = lambda m, s: kj.rollout(m, s, dt=dt, steps=20, config=CONFIG, record=())[0]
    states = jax.jit(jax.vmap(settle))(models, states)
    base = None
    for label, (function, inputs) in programs(dt).items():
        given = inputs(states, controls)
        program, trace, compile_ = compiled(jax.vmap(function), given, models, states, controls)
        seconds = median_seconds(lambda p=program, g=given: jax.block_until_ready(p(g, models, states, controls)), repeats=9)
        cost = trace + compile_
        base = base or (seconds, cost)
        size = sum(x[0].size for x in jax.tree.leaves(given))
        emit(
            out,
            benchmark="gradient_step",
            scene=name,
            worlds=worlds,
            program=label,
            seconds=seconds,
            ratio=seconds / base[0],
            backward_ratio=seconds / base[0] - 1,
            forward_differences_ratio=1.0 + size,
            trace_s=trace,
            compile_s=compile_,
            compile_ratio=cost / base[1],
            commit=commit(),
            **machine(),
        )


def memory(steps, out):
    """Temporary memory of the gradient of a rollout, by iteration cap and checkpoint."""
    model = model_of("boxes_fourbar")
    state = kj.initial_state(model)
    for cap, checkpoint in ((50, None), (500, None), (50, "sqrt")):
        config = dataclasses.replace(CONFIG, padmm=dataclasses.replace(CONFIG.padmm, max_iterations=cap))

        def final(u, config=config, checkpoint=checkpoint):
            moved = kj.replace(state, u=u)
            return loss(kj.rollout(model, moved, dt=2.5e-3, steps=steps, config=config, record=(), checkpoint=checkpoint)[0])

        program, trace, compile_ = compiled(jax.grad(final), state.u)
        seconds = median_seconds(lambda p=program: jax.block_until_ready(p(state.u)), repeats=3)
        temporary = program.memory_analysis().temp_size_in_bytes
        figures = dict(steps=steps, iteration_cap=cap, checkpoint=checkpoint, temporary_bytes=temporary, seconds=seconds)
        emit(out, benchmark="gradient_memory", **figures, trace_s=trace, compile_s=compile_, commit=commit(), **machine())


def main():
    args = parser(__doc__).parse_args()
    for name, counts in COUNTS.items():
        if name in ROBOT_FILES and not (robot_file(name) and importlib.util.find_spec("newton")):
            continue
        for worlds in (1,) if args.smoke else counts:
            step_costs(name, worlds, args.out)
            if importlib.util.find_spec("mujoco") and name not in ROBOT_FILES:
                for iterations in (1, 4):
                    figures = peers.mjx_gradient(name, SCENES[name][0], worlds, iterations)
                    emit(args.out, benchmark="gradient_step", engine="mjx", scene=name, worlds=worlds, **figures)
    memory(10 if args.smoke else 1000, args.out)


if __name__ == "__main__":
    main()
