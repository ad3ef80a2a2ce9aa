"""Checks of array shapes and precision where the user's arrays enter a step (at trace time, so free at run time)."""

import jax
import jax.numpy as jnp

from .model import Model
from .state import Contacts, Control, State


def _expected(model: Model) -> dict[str, tuple[int, ...]]:
    n = model.layout
    nd, nc = n.rows.nd, n.rows.nc
    return {
        "model.bodies.mass": (n.nb,),
        "model.gravity": (3,),
        "state.q": (n.nb, 7),
        "state.u": (n.nb, 6),
        "state.joint_q": (n.nq,),
        "state.reactions.force": (nd,),
        "state.reactions.velocity": (nd,),
        "state.reactions.key": (nc,),
        "state.reactions.point": (nc, 3),
        "state.reactions.frame": (nc, 3, 3),
        "control.tau": (n.nv,),
        "control.q_ref": (n.nq,),
        "control.u_ref": (n.nv,),
        "control.w_ext": (n.nb, 6),
        "contacts.active": (nc,),
        "contacts.distance": (nc,),
        "contacts.normal": (nc, 3),
        "contacts.point_a": (nc, 3),
        "contacts.point_b": (nc, 3),
        "contacts.body_a": (nc,),
        "contacts.body_b": (nc,),
    }


def _refuse(name: str, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    remedy = "check how it was built"
    if shape[1:] == expected and len(shape) == len(expected) + 1:
        remedy = "it has a leading axis: `step` takes one world, use jax.vmap(step, ...) for many"
    elif name.startswith("contacts"):
        remedy = "finalize the model with max_contacts equal to the number of slots"
    raise ValueError(f"{name} has shape {shape}, but the model needs {expected}: {remedy}")


def checked(model: Model, state: State, control: Control, contacts: Contacts | None) -> tuple[State, Control, Contacts | None]:
    """The same pytrees in the model's precision.

    Raises:
        ValueError: an array whose shape does not fit the model, by name.
    """
    roots = {"model": model, "state": state, "control": control, "contacts": contacts}
    for name, expected in _expected(model).items():
        root, *path = name.split(".")
        leaf = roots[root]
        for field in path if leaf is not None else ():
            leaf = getattr(leaf, field)
        if leaf is not None and jnp.shape(leaf) != expected:
            _refuse(name, jnp.shape(leaf), expected)

    def cast(leaf):
        leaf = jnp.asarray(leaf)
        return leaf.astype(model.dtype) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    return jax.tree.map(cast, (state, control, contacts))
