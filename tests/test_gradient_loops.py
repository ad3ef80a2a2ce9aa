"""Derivatives of mechanisms whose loops make joint rows redundant.

Perturbed poses must stay where the loops close: off that manifold the rank of the redundant rows jumps and no derivative exists. Poses are
therefore moved along the twists of the mechanism's own motion, which is the one admissible direction that every state brings with it.
"""

import functools
import os
import pathlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gradients import World, flat, nudge, stepped
from support import X64

import kamino_jax as kj
from kamino_jax import scenes
from kamino_jax.spatial import advance

pytestmark = pytest.mark.skipif(not X64, reason="central differences need double precision")

H = 2e-3
TOLERANCE = 1e-6  # relative to the largest entry
SMALL = 1e-2  # derivatives smaller than this share of the largest one are compared with that share
STEP, SMALL_STEP = 1e-3, 1e-4  # of differences of fourth order
SOLVER = dict.fromkeys(("primal_tolerance", "dual_tolerance", "compl_tolerance"), 1e-9)
CONFIG = kj.Config(padmm=kj.PADMMConfig(**SOLVER, max_iterations=5000))
ASSETS = pathlib.Path(os.environ.get("KAMINO_JAX_ASSETS", "")) / "disneyresearch"


def dr_legs():
    """Disney Research's legs, hung in the air."""
    sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "benchmarks"))
    from compare import model_of

    model = model_of("dr_legs")
    return model, kj.initial_state(model), kj.zero_control(model)


free = dict(ground=False, limits=False)
LOOPS = {
    "boxes_fourbar": lambda: scenes.boxes_fourbar(**free, fixed=True, dynamic=True, implicit=True),
    "parallelogram": lambda: scenes.parallelogram(3),
    "bennett": scenes.bennett,
    "stewart_platform": scenes.stewart_platform,
    "hoberman": scenes.hoberman,
    "dr_legs": dr_legs,
}
ROBOT = pytest.mark.skipif(not ASSETS.is_dir(), reason="KAMINO_JAX_ASSETS is not set")
NAMES = [pytest.param(name, marks=[ROBOT, pytest.mark.newton, pytest.mark.assets] if name == "dr_legs" else []) for name in LOOPS]
EACH = pytest.mark.parametrize("name", NAMES)
INPUTS = ("motion", "u", "tau", "w_ext", "mass", "kp", "kd", "gravity", "dt")


CLOSED = kj.Config(padmm=CONFIG.padmm, constraints=kj.ConstraintsConfig(alpha=1.0))


@functools.cache
def moving(name):
    """The mechanism in motion under random efforts, its loops closed to about 1e-9 m, as no derivative is better than they."""
    model, state, control = LOOPS[name]()
    rng = np.random.default_rng(3)
    load = kj.replace(control, tau=jnp.asarray(0.03 * rng.standard_normal(model.layout.nv)))
    state = jax.jit(lambda s: kj.rollout(model, s, lambda *_: load, dt=H / 10, steps=100, config=CLOSED, record=())[0])(state)
    return World(model, state, load, jnp.asarray(H))


def changed(world, p):
    """The world with poses moved along their own twists by p["motion"], and with the other inputs changed."""
    world = nudge(world, INPUTS[1:], p[1:])
    q = advance(world.state.q, jax.lax.stop_gradient(world.state.u), p[0][0])
    return World(world.model, kj.replace(world.state, q=q), world.control, world.dt)


def directions(world, seed):
    """One random direction per input, as a list over inputs of (inputs, size)."""
    from gradients import INPUTS as KNOWN

    rng, n = np.random.default_rng(seed), world.model.layout
    sizes = [1, *(KNOWN[name][1](n) for name in INPUTS[1:])]
    return [np.eye(len(INPUTS))[:, i : i + 1] * rng.standard_normal(size) / np.sqrt(size) for i, size in enumerate(sizes)]


def program(outcome):
    """A program (world, p, e) -> (outcome, its derivative) over the directions."""
    one = lambda world, p, e: jax.jvp(lambda p: outcome(changed(world, p)), (p,), (e,))
    return jax.jit(jax.vmap(one, in_axes=(None, 0, 0)))


def compare(run, world):
    """Relative error of the derivative along each direction."""
    e = directions(world, 4)
    at = lambda k: run(world, [k * x for x in e], e)
    add = lambda tree: {k: np.asarray(v)[None] for k, v in tree.items()}
    exact = flat(add(at(0.0)[1]))[0]
    size = np.abs(exact).max(axis=1)
    size = np.maximum(size, SMALL * size.max())
    best = np.full(len(INPUTS), np.inf)
    for h in (STEP, SMALL_STEP):
        value = {k: flat(add(at(k * h)[0]))[0] for k in (-2, -1, 1, 2)}
        difference = (8 * (value[1] - value[-1]) - (value[2] - value[-2])) / (12 * h)
        best = np.minimum(best, np.abs(difference - exact).max(axis=1) / size)
    return dict(zip(INPUTS, best, strict=True))


@EACH
def test_a_step_of_a_loop_has_the_derivative_of_its_differences(name):
    """By motion, twists, efforts, loads, masses, gains, gravity and time step."""
    error = compare(program(lambda world: stepped(world, CONFIG)[0]), moving(name))
    assert max(error.values()) < TOLERANCE, error


def rolled(world):
    last, _ = kj.rollout(world.model, world.state, lambda *_: world.control, dt=world.dt, steps=50, config=CONFIG, record=())
    return dict(q=last.q, u=last.u)


@pytest.mark.parametrize("name", ["boxes_fourbar", "parallelogram", "stewart_platform"])
def test_fifty_steps_of_a_loop_have_the_derivative_of_their_differences(name):
    """By the same inputs, through a rollout."""
    error = compare(program(rolled), moving(name))
    assert max(error.values()) < TOLERANCE, error
