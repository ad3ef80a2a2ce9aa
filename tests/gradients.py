"""Helpers of the gradient tests: inputs of a step as named groups of numbers, directional derivatives, central differences, laws of rows.

Differentiating a step polishes its impulses to the floor of the natural map; a plain step stops at the solver's tolerance. Differences are
therefore taken between primal values of `jax.jvp`. A state whose rows change their laws inside the stencil has no derivative to compare
with; such states are counted and skipped.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

import kamino_jax as kj
from kamino_jax import integrators
from kamino_jax.collision import collide
from kamino_jax.delassus import dual_form
from kamino_jax.dynamics.assemble import assemble
from kamino_jax.joints.kinematics import joint_kinematics
from kamino_jax.linearize import retract
from kamino_jax.solvers.implicit import velocities
from kamino_jax.solvers.modes import modes
from kamino_jax.solvers.scaling import precondition


def symmetric(v):
    """(nb, 6) -> (nb, 3, 3)."""
    return v[:, jnp.array([[0, 3, 4], [3, 1, 5], [4, 5, 2]])]


@dataclasses.dataclass(frozen=True)
class World:
    """What a step depends on."""

    model: kj.Model
    state: kj.State
    control: kj.Control
    dt: jax.Array


jax.tree_util.register_dataclass(World)


def _model(family, field, change):
    def apply(world, p):
        part = getattr(world.model, family)
        return dataclasses.replace(
            world, model=kj.replace(world.model, **{family: kj.replace(part, **{field: change(getattr(part, field), p)})})
        )

    return apply


def _control(field):
    def apply(world, p):
        value = getattr(world.control, field)
        return dataclasses.replace(world, control=kj.replace(world.control, **{field: value + p.reshape(value.shape)}))

    return apply


def _state(part):
    def apply(world, p):
        zero = jnp.zeros_like(p)
        return dataclasses.replace(world, state=retract(world.state, jnp.concatenate([p, zero] if part == "q" else [zero, p])))

    return apply


def _finite_plus(x, p):
    return jnp.where(jnp.isfinite(x), x + p, x)


relative = lambda x, p: x * (1 + p.reshape(x.shape))  # of positive numbers
plus = lambda x, p: x + p.reshape(x.shape)
anchor = lambda X, p: X.at[:, :3].add(p.reshape(-1, 3))
inertia = lambda I, p: I + I[:, :1, :1] * symmetric(p.reshape(-1, 6))

# input: (how a change p of it makes another world, how many numbers a layout has of it)
INPUTS = {
    "q": (_state("q"), lambda n: 6 * n.nb),
    "u": (_state("u"), lambda n: 6 * n.nb),
    "tau": (_control("tau"), lambda n: n.nv),
    "q_ref": (_control("q_ref"), lambda n: n.nq),
    "u_ref": (_control("u_ref"), lambda n: n.nv),
    "w_ext": (_control("w_ext"), lambda n: 6 * n.nb),
    "mass": (_model("bodies", "mass", relative), lambda n: n.nb),
    "inertia": (_model("bodies", "inertia", inertia), lambda n: 6 * n.nb),
    "com": (_model("bodies", "com", plus), lambda n: 3 * n.nb),
    "X_B": (_model("joints", "X_B", anchor), lambda n: 3 * n.nj),
    "X_F": (_model("joints", "X_F", anchor), lambda n: 3 * n.nj),
    **{
        name: (_model("joints", name, relative), lambda n: n.nv)
        for name in ("kp", "kd", "armature", "damping", "friction", "limit_stiffness", "limit_damping")
    },
    **{name: (_model("joints", name, _finite_plus), lambda n: n.nv) for name in ("q_min", "q_max", "effort_max")},
    "X": (_model("geoms", "X", anchor), lambda n: 3 * n.ng),
    "size": (_model("geoms", "size", plus), lambda n: 3 * n.ng),
    "margin": (_model("geoms", "margin", plus), lambda n: n.ng),
    **{name: (_model("geoms", name, plus), lambda n: n.ng) for name in ("mu", "restitution")},
    **{f"contact_{name}": (_model("geoms", name, relative), lambda n: n.ng) for name in ("stiffness", "damping")},
    "gravity": (lambda world, p: dataclasses.replace(world, model=kj.replace(world.model, gravity=world.model.gravity + p)), lambda n: 3),
    "dt": (lambda world, p: dataclasses.replace(world, dt=world.dt * (1 + p[0])), lambda n: 1),
}


def laws(world, lam, config):
    """Laws of all rows at impulses lam (bool): active, overlapping, held (not at a bound), closed, sliding."""
    model, state, control, h = world.model, world.state, world.control, world.dt
    q = integrators.evaluation_pose(model.topology, state.q, state.u, h, config.integrator)
    contacts = collide(model, q, config)
    kinematics = joint_kinematics(model, q, state.u, state.joint_q, config.rotation_correction)
    problem, _ = assemble(model, q, state.u, control, kinematics, contacts, dt=h, config=config)
    scaled = precondition(dual_form(problem), True)
    y = lam / scaled.P
    law = modes(scaled, y, velocities(scaled, y), problem.active, kappa=0.0, sigma=1e-6)
    closed, sliding = jnp.any(law.V.contact[:, 0] != 0, axis=-1), jnp.any(law.K.contact[:, 2] != 0, axis=-1)
    beyond = jnp.stack([contacts.distance > config.constraints.delta, contacts.distance < -config.constraints.delta], axis=1)
    return dict(active=problem.active, beyond=beyond.reshape(-1), held=law.K.joint < 0.5, closed=closed, sliding=sliding & closed)


def stepped(world, config):
    """Poses and twists after the step, and its impulses."""
    after, info = kj.step(world.model, world.state, world.control, dt=world.dt, config=config)
    return dict(q=after.q, u=after.u), info.lam


def nudge(world, inputs, p):
    """The world with input i of `inputs` changed by p[i]."""
    for name, change in zip(inputs, p, strict=True):
        world = INPUTS[name][0](world, change)
    return world


def probe(config, inputs):
    """A program (world, p, e) -> (polished step at p, derivative along e, laws); p and e hold one vector per input."""

    def one(world, p, e):
        f = lambda p: stepped(nudge(world, inputs, p), config)
        (value, lam), (derivative, _) = jax.jvp(f, (p,), (e,))
        return value, derivative, laws(nudge(world, inputs, p), lam, config)

    return jax.jit(jax.vmap(jax.vmap(one, in_axes=(None, 0, 0))))  # worlds, directions


STEPS = (3e-3, 2e-4)  # of differences of fourth order: the first for derivatives that drown in rounding, the second near a change of laws
ROUNDING = 2e-14  # polished steps repeat to this, relative to their largest entry: differences see nothing smaller than this / step


LENGTHS = ("q", "com", "X_B", "X_F", "q_min", "q_max", "X", "size", "margin")
CENTIMETRE = 1e-2  # scale of lengths: those of overlaps, which turn slow slips around within a tenth of a millimetre


def directions(rng, worlds, layout, inputs):
    """One random direction per world and input, (worlds, inputs, size) per input; zero in all other inputs."""
    out = []
    for i, name in enumerate(inputs):
        e = np.zeros((worlds, len(inputs), INPUTS[name][1](layout)))
        e[:, i] = rng.standard_normal((worlds, e.shape[2]))
        scale = CENTIMETRE if name in LENGTHS else 1.0
        out.append(scale * e / np.maximum(np.linalg.norm(e, axis=2, keepdims=True), 1e-300))
    return out


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Derivatives against central differences."""

    error: dict  # per input (worlds,): largest error relative to the largest entry, the best of all steps; nan where a law changes
    laws: dict  # at the states themselves, (worlds, rows)
    largest: dict  # per input: the largest entry anywhere

    def passed(self, tolerance):
        """Share of the states without a change of laws that agree, per input."""
        return {name: np.mean(x[~np.isnan(x)] <= tolerance) for name, x in self.error.items()}

    def compared(self):
        """Share of states that could be compared, per input."""
        return {name: np.mean(~np.isnan(x)) for name, x in self.error.items()}


def warm(worlds, config):
    """The worlds with the reactions of a first step as a hint, so that the solver is done soon."""
    again = jax.jit(jax.vmap(lambda w: kj.step(w.model, w.state, w.control, dt=w.dt, config=config)[0].reactions))(worlds)
    return dataclasses.replace(worlds, state=kj.replace(worlds.state, reactions=again))


def flat(tree):
    """All entries (worlds, inputs, n) of a step as NumPy."""
    return np.concatenate([np.asarray(x).reshape(*x.shape[:2], -1) for x in tree.values()], axis=-1)


def compare(worlds, config, inputs, seed):
    """Directional derivatives of stacked worlds against central differences, for one random direction per world and input."""
    program, n = probe(config, inputs), worlds.dt.shape[0]
    e, worlds = directions(np.random.default_rng(seed), n, worlds.model.layout, inputs), warm(worlds, config)
    run = lambda h: program(worlds, [h * x for x in e], e)
    _, derivative, law = run(0.0)
    same = lambda other: np.all([np.all(law[k] == other[k], axis=2) for k in law], axis=0)
    exact = flat(derivative)
    scale = np.abs(exact).max(axis=-1)
    best = np.full(scale.shape, np.nan)
    for h in STEPS:
        value, laws_there = {}, []
        for k in (-2, -1, 1, 2):
            after, _, law_there = run(k * h)
            value[k], laws_there = flat(after), [*laws_there, same(law_there)]
        difference = (8 * (value[1] - value[-1]) - (value[2] - value[-2])) / (12 * h)
        seen = np.abs(difference - exact).max(axis=-1) - ROUNDING * np.abs(value[1]).max(axis=-1) / h
        error = np.maximum(seen, 0) / np.maximum(scale, 1e-12)
        best = np.fmin(best, np.where(np.all(laws_there, axis=0), error, np.nan))
    by_input = lambda x: {name: x[..., i] for i, name in enumerate(inputs)}
    return Comparison(by_input(best), {k: np.asarray(v[:, 0]) for k, v in law.items()}, by_input(scale.max(axis=0)))
