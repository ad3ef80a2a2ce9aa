"""Recorded paths of Newton's SolverKamino (PADMM and DVI, single precision), followed from their arrays alone.

Three ways to follow a path: step by step from the recorded previous state with the recorded contacts; as a whole with the recorded
contacts; and as a whole with our own contact detection. Newton rounds to 1.2e-7 per operation and stops its solver at 1e-6 N s, 1e-6 m/s.
"""

import dataclasses
import functools
import json
import math
import pathlib
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support import X64, tight

import kamino_jax as kj
from kamino_jax.collision.detect import no_contacts
from kamino_jax.integrators import evaluation_pose
from kamino_jax.newton import from_newton

pytestmark = pytest.mark.skipif(not X64, reason="compares with single precision, so needs double")

FILE = pathlib.Path(__file__).parent / "data" / "recordings.npz"
RECORDED_STATE, OWN_STATE, OWN_CONTACTS = range(3)
NAMES = [f"{scene}_euler" for scene in ("free_body", "arm", "cartpole", "joint_zoo", "fourbar")]
TOUCHING = ["box_on_plane_euler", "slide_euler", "tumble_euler", "tumble_moreau", "bounce_euler", "compliant_euler", "hinged_euler"]
TOUCHING += ["nunchaku_euler", "nunchaku_moreau", "fourbar_ground_euler", "fourbar_ground_moreau", "stack3_euler", "pyramid10_euler"]
PART = 10  # steps
# [m/s, rad/s] one step: impulses of 1e-6 N s (Newton's tolerance) on bodies of 0.1 kg, and single precision on speeds of 10
STEP = 3e-5
# Steps in which Newton ran out of its 200 iterations end this far from the solution.
UNCONVERGED = {
    "compliant_euler": 1e-2,
    "fourbar_euler": 3e-4,
    "fourbar_ground_euler": 1e-4,
    "fourbar_ground_moreau": 1e-4,
    "cartpole_euler": 3e-5,
}
# (m and quaternion, m/s and rad/s) after the whole path: about a hundred such steps
PATH = (5e-6, 1e-4)
# compliant: one unconverged step in the stick-slip phase shifts the path by as much as Newton's PADMM and DVI differ.
# fourbar: Newton converges in 1 of 100 steps; its DVI path is the better reference (see below).
PATHS = {"compliant_euler": (3e-4, 2e-2), "fourbar_euler": (5e-4, 1e-2)}


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    about: dict
    model: SimpleNamespace
    series: dict[str, np.ndarray]

    def __getitem__(self, name):
        """A series, one entry per step."""
        value = self.series[name]
        return np.repeat(value, self.about["steps"], axis=0) if len(value) == 1 else value

    def rows(self, family, k):
        """{field: rows of step k} of a ragged family."""
        start = self.series[f"{family}/start"]
        rows = slice(start[k], start[k + 1])
        return {f.split("/")[1]: v[rows] for f, v in self.series.items() if f.startswith(f"{family}/") and not f.endswith("/start")}

    @property
    def slots(self):
        """Enough for every step, in fours: scenes of one layout share a program."""
        return 4 * math.ceil(np.diff(self.series["contact/start"]).max() / 4) if "contact/start" in self.series else 0


@functools.cache
def recorded(name):
    with np.load(FILE) as data:
        fields = {key.split("/", 1)[1]: data[key] for key in data.files if key.startswith(f"{name}/")}
    model = SimpleNamespace(**{key[6:]: value for key, value in fields.items() if key.startswith("model/")})
    return Recording(json.loads(str(fields["meta"])), model, {k: v for k, v in fields.items() if not k.startswith("model/")})


def settings(about, backend):
    given = about["constraints"]
    constraints = {k: given[k] for k in ("alpha", "beta", "gamma", "delta", "contact_compliance")}
    padmm = dict(primal_tolerance=1e-8, dual_tolerance=1e-8, compl_tolerance=1e-8, max_iterations=300)
    dvi = dict(inequality_sweeps_per_iteration=4, fixed_schedule=True)  # Newton's schedule in these runs
    config = tight(dynamics_solver=backend, integrator=about["integrator"], constraints=constraints, padmm=padmm)
    return dataclasses.replace(config, dvi=kj.DVIConfig(**dvi))


def slots_of(r, k, capacity):
    """Recorded contacts of step k in `capacity` slots."""
    slots = {f.name: np.array(getattr(no_contacts(capacity, jnp.float64), f.name)) for f in dataclasses.fields(kj.Contacts)}
    if "contact/start" in r.series:
        rows, shapes = r.rows("contact", k), len(r.model.shape_type)
        n = len(rows["gapfunc"])
        given = dict(active=True, distance=rows["gapfunc"][:, 3], normal=rows["gapfunc"][:, :3])
        given |= dict(point_a=rows["position_A"], point_b=rows["position_B"], body_a=rows["bid_AB"][:, 0], body_b=rows["bid_AB"][:, 1])
        given |= dict(key=rows["gid_AB"] @ [shapes, 1], mu=rows["material"][:, 0], restitution=rows["material"][:, 1])
        given |= dict(stiffness=rows["stiffness"], damping=rows["damping"])
        for name, value in given.items():
            slots[name][:n] = value
        slots["found"] = np.int32(n)
    return kj.Contacts(**slots)


def stacked(trees):
    return jax.tree.map(lambda *x: jnp.asarray(np.stack(x)), *trees)


@functools.partial(jax.jit, static_argnames="config")
def follow(model, start, inputs, mode, *, dt, config):
    """(last state, states after every step and convergence flags); `mode` says where each step starts and where its contacts come from."""

    def advance(state, at):
        before, control, contacts = at
        state = jax.tree.map(lambda a, b: jnp.where(mode == RECORDED_STATE, a, b), before, state)
        if model.layout.pairs and contacts.active.size:
            pose = evaluation_pose(model.topology, state.q, state.u, dt, config.integrator)
            own = kj.collide(model, kj.replace(state, q=pose), config)
            contacts = jax.tree.map(lambda a, b: jnp.where(mode == OWN_CONTACTS, a, b), own, contacts)
        state, info = kj.step(model, state, control, dt=dt, config=config, contacts=contacts)
        return state, (state.q, state.u, state.joint_q, info.status.converged, info.status.contacts_dropped)

    return jax.lax.scan(advance, start, inputs)


def group(name):
    """Recordings that are padded to one size, so that one compiled program follows them all."""
    if name in NAMES:
        return NAMES
    alone = ("compliant_euler", "pyramid10_euler")
    return [name] if name in alone else [n for n in TOUCHING if n not in alone and n.endswith(name.split("_")[-1])]


@functools.cache
def worlds_of(name):
    r = recorded(name)
    return from_newton(r.model, max_contacts=r.slots or None, collisions=r.slots > 0).bucket


@functools.cache
def common(names):
    return kj.common_layout([first(worlds_of(n).model) for n in names])


def first(tree):
    return jax.tree.map(lambda x: np.asarray(x[0]), tree)


def padded(small, large):
    """`small` in the first entries of arrays as large as those of `large`."""
    return jax.tree.map(lambda a, b: np.concatenate([a, np.asarray(b)[len(a) :]]) if np.ndim(a) else a, small, large)


@functools.cache
def followed(name, backend="padmm"):
    """A function of the mode, and the states that the backend's recording has after each step."""
    r, bucket = recorded(name), worlds_of(name)
    steps = range(r.about["steps"])
    model = kj.pad_to(first(bucket.model), common(tuple(group(name))))
    still, idle = kj.initial_state(model), kj.zero_control(model)
    rows = lambda names, k: SimpleNamespace(**{n: r[n][k] for n in names})
    state = lambda given: kj.replace(padded(first(bucket.state(given)), still), reactions=still.reactions)
    control = lambda k: first(bucket.control(rows(("joint_f", "joint_target_q", "joint_target_qd"), k), rows(("body_f",), k)))
    states = [state(SimpleNamespace(**{k[8:]: v for k, v in r.series.items() if k.startswith("initial/")}))]
    states += [state(rows(("body_q", "body_qd", "joint_q"), k)) for k in steps]
    contacts = [slots_of(r, k, model.layout.rows.nc) for k in steps]
    inputs = stacked(states[:-1]), stacked([padded(control(k), idle) for k in steps]), stacked(contacts)
    advance = functools.partial(follow, model, dt=r.about["dt"], config=settings(r.about, backend))
    ends = states[1:] if backend == "padmm" else [state(dvi_row(r, k)) for k in steps]
    return functools.partial(in_parts, advance, jax.tree.map(jnp.asarray, states[0]), inputs), stacked(ends)


def dvi_row(r, k):
    return SimpleNamespace(**{name: r.series[f"dvi/{name}"][k] for name in ("body_q", "body_qd", "joint_q")})


def in_parts(advance, start, inputs, mode):
    """The whole path, a few steps at a time: recordings of any length share one program."""
    parts, state = [], start
    for k in range(0, len(inputs[0].q), PART):
        state, seen = advance(state, jax.tree.map(lambda x, k=k: x[k : k + PART], inputs), mode)
        parts.append(seen)
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def largest(a, b):
    """Largest difference in each step."""
    return np.abs(np.asarray(a) - np.asarray(b)).reshape(len(a), -1).max(axis=1, initial=0)


@pytest.mark.parametrize("name", NAMES + TOUCHING)
def test_a_single_step_from_every_recorded_state_gives_the_recorded_velocity(name):
    run, reference = followed(name)
    q, u, joint_q, converged, _ = run(RECORDED_STATE)
    error = largest(u, reference.u)
    ended = np.asarray(converged) & (recorded(name)["status/converged"] > 0)
    assert error[ended].max(initial=0) < STEP
    assert error.max() < UNCONVERGED.get(name, STEP)
    assert largest(joint_q, reference.joint_q).max() < recorded(name).about["dt"] * error.max() + 5e-6  # plus single precision


@pytest.mark.parametrize("name", NAMES + TOUCHING)
def test_a_path_with_the_recorded_contacts_ends_where_it_was_recorded(name):
    run, reference = followed(name)
    q, u, _, _, _ = run(OWN_STATE)
    position, velocity = PATHS.get(name, PATH)
    assert largest(q, reference.q).max() < position
    assert largest(u, reference.u).max() < velocity


@pytest.mark.parametrize("name", TOUCHING)
def test_a_path_with_our_own_contacts_ends_where_it_was_recorded(name):
    run, reference = followed(name)
    q, u, _, _, dropped = run(OWN_CONTACTS)
    position, velocity = PATHS.get(name, PATH)
    assert not np.any(dropped)
    assert largest(q, reference.q).max() < position
    assert largest(u, reference.u).max() < velocity


# m and quaternion, m/s and rad/s. Sweeps that have not converged depend on the order of the contacts, which is not Newton's; `slide` has
# many solutions besides, and takes the one of its order.
DVI_PATH = (5e-6, 5e-4)
DVI_PATHS = {"compliant_euler": (5e-6, 2e-3), "slide_euler": (3e-4, 2e-2)}


@pytest.mark.parametrize("name", NAMES + TOUCHING)
def test_a_path_with_dvi_ends_where_the_recorded_one_ended(name):
    run, reference = followed(name, "dvi")
    q, u, _, _, _ = run(OWN_CONTACTS if name in TOUCHING else OWN_STATE)
    position, velocity = DVI_PATHS.get(name, DVI_PATH)
    assert largest(q, reference.q).max() < position
    assert largest(u, reference.u).max() < velocity


def test_the_four_bar_agrees_with_the_solver_of_newton_that_converges():
    position = np.asarray(followed("fourbar_euler")[0](OWN_STATE)[0])[:, :, :3]
    dvi = np.asarray(followed("fourbar_euler", "dvi")[1].q)[:, :, :3]
    assert np.abs(position - dvi).max() < 1e-6  # [m], where the recorded PADMM path is off by 5e-5


@pytest.mark.parametrize("name", [n for n in TOUCHING if n.endswith("euler")])
def test_newtons_contacts_convert_to_the_recorded_ones(name):
    r = recorded(name)
    bucket = worlds_of(name)
    config = settings(r.about, "padmm")
    initial = {k[8:]: v for k, v in r.series.items() if k.startswith("initial/")}["body_q"]
    for k in np.linspace(0, r.about["steps"] - 1, 8).astype(int):
        before = SimpleNamespace(body_q=initial if k == 0 else r["body_q"][k - 1])
        ours = jax.tree.map(lambda x: np.asarray(x[0]), bucket.contacts(newton_contacts(r, k), before, config))
        theirs, shown = slots_of(r, k, r.slots), np.flatnonzero(ours.active)
        assert ours.found == theirs.found == len(shown)
        for i in shown:  # the order has no meaning: the nearest of the same pair
            same = np.flatnonzero(theirs.active & (theirs.key == ours.key[i]))
            j = same[np.argmin(np.abs(theirs.point_b[same] - ours.point_b[i]).sum(1))]
            for field in ("distance", "normal", "point_a", "point_b", "body_a", "body_b", "mu", "restitution"):
                np.testing.assert_allclose(
                    getattr(ours, field)[i], getattr(theirs, field)[j], atol=3e-6, err_msg=field
                )  # single precision of a metre


def newton_contacts(r, k):
    """Newton's contact arrays of step k, with stale rows behind the live ones."""
    rows = r.rows("newton_contact", k)
    count, room = len(rows["normal"]), np.diff(r.series["newton_contact/start"]).max() + 3
    stale = {name: np.concatenate([value, np.ones((room - count, *value.shape[1:]), value.dtype)]) for name, value in rows.items()}
    return SimpleNamespace(rigid_contact_count=np.array([count], np.int32), **{f"rigid_contact_{name}": v for name, v in stale.items()})
