"""Recorded paths of Newton's SolverKamino (PADMM, single precision), followed from their arrays alone.

Three ways to follow a path: step by step from the recorded previous state with the recorded contacts; as a whole with the recorded
contacts; and as a whole with our own contact detection. Newton rounds to 1.2e-7 per operation and stops its solver at 1e-6 N s, 1e-6 m/s.
"""

import dataclasses
import functools
import json
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
SINGLE = jnp.float32


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
        return int(np.diff(self.series["contact/start"]).max()) if "contact/start" in self.series else 0


@functools.cache
def recorded(name):
    with np.load(FILE) as data:
        fields = {key.split("/", 1)[1]: data[key] for key in data.files if key.startswith(f"{name}/")}
    model = SimpleNamespace(**{key[6:]: value for key, value in fields.items() if key.startswith("model/")})
    return Recording(json.loads(str(fields["meta"])), model, {k: v for k, v in fields.items() if not k.startswith("model/")})


def settings(about):
    given = about["constraints"]
    constraints = {k: given[k] for k in ("alpha", "beta", "gamma", "delta", "contact_compliance")}
    padmm = dict(primal_tolerance=1e-9, dual_tolerance=1e-9, compl_tolerance=1e-9, max_iterations=1000)
    return tight(integrator=about["integrator"], constraints=constraints, padmm=padmm)


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
    """States after every step and convergence flags; `mode` says where each step starts and where its contacts come from."""

    def advance(state, at):
        before, control, contacts = at
        state = jax.tree.map(lambda a, b: jnp.where(mode == RECORDED_STATE, a, b), before, state)
        if model.layout.pairs and contacts.active.size:
            pose = evaluation_pose(model.bodies, state.q, state.u, dt, config.integrator)
            own = kj.collide(model, kj.replace(state, q=pose), config)
            contacts = jax.tree.map(lambda a, b: jnp.where(mode == OWN_CONTACTS, a, b), own, contacts)
        state, info = kj.step(model, state, control, dt=dt, config=config, contacts=contacts)
        return state, (state.q, state.u, state.joint_q, info.status.converged, info.status.contacts_dropped)

    return jax.lax.scan(advance, start, inputs)[1]


@functools.cache
def followed(name):
    """A function of the mode, for one recording."""
    r = recorded(name)
    steps = range(r.about["steps"])
    worlds = from_newton(r.model, max_contacts=r.slots or None, collisions=r.slots > 0)
    bucket, model = worlds.bucket, jax.tree.map(lambda x: x[0], worlds.model)
    initial = {k[8:]: v for k, v in r.series.items() if k.startswith("initial/")}
    rows = lambda names, k: SimpleNamespace(**{n: r[n][k] for n in names})
    first = lambda tree: jax.tree.map(lambda x: np.asarray(x[0]), tree)
    states = [first(bucket.state(SimpleNamespace(**initial)))]
    states += [first(bucket.state(rows(("body_q", "body_qd", "joint_q"), k))) for k in steps]
    controls = [first(bucket.control(rows(("joint_f", "joint_target_q", "joint_target_qd"), k), rows(("body_f",), k))) for k in steps]
    contacts = [slots_of(r, k, model.layout.rows.nc) for k in steps]
    inputs = stacked(states[:-1]), stacked(controls), stacked(contacts)
    config, dt = settings(r.about), r.about["dt"]
    run = functools.partial(follow, model, jax.tree.map(jnp.asarray, states[0]), inputs, dt=dt, config=config)
    return run, stacked(states[1:])
