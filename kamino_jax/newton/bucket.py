"""Worlds of one layout: a stacked model, and the traffic between its states and Newton's."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from ..config import Config
from ..model import Model
from ..pytree import replace
from ..start import initial_state, zero_control
from ..state import Contacts, Control, State
from .contacts import Rigid, Surfaces, contacts_from_newton
from .convert import Index, NewtonState, control_from_newton, motion_from_newton, motion_to_newton
from .interop import assign, to_jax

MOTION = ("body_q", "body_qd", "joint_q", "joint_qd")
# Newton's arrays: what their first axis counts, and the shape of an entry.
ARRAYS = {
    "body_q": ("body", (7,)),
    "body_qd": ("body", (6,)),
    "body_f": ("body", (6,)),
    "joint_q": ("coordinate", ()),
    "joint_target_q": ("coordinate", ()),
    "joint_qd": ("dof", ()),
    "joint_f": ("dof", ()),
    "joint_target_qd": ("dof", ()),
}


@dataclasses.dataclass(frozen=True, eq=False)
class Bucket:
    """Some worlds of a Newton model, in Newton's order. Index arrays point into Newton's arrays."""

    worlds: tuple[int, ...]
    model: Model  # stacked
    bodies: np.ndarray  # (W, nb)
    joints: np.ndarray  # (W, nj)
    coordinates: np.ndarray  # (W, nq)
    dofs: np.ndarray  # (W, nv)
    shapes: np.ndarray  # (W, ng)
    surfaces: Surfaces
    sizes: dict[str, int]  # of Newton's arrays: body, coordinate, dof

    @property
    def index(self) -> Index:
        """The index arrays on the device."""
        return Index(*(jnp.asarray(x, jnp.int32) for x in (self.bodies, self.coordinates, self.dofs)))

    def state(self, newton_state) -> State:
        """The worlds' State (W, ...) of a Newton state, without memory of reactions.

        Angles count from `joint_q_prev`, or from `joint_q` if the state has none.
        """
        reference = getattr(newton_state, "joint_q_prev", None)
        reference = newton_state.joint_q if reference is None else reference
        arrays = self._arrays(body_q=newton_state.body_q, body_qd=newton_state.body_qd, joint_q=reference)
        q, u, joint_q = jax.block_until_ready(motion_from_newton(self.model, self.index, *arrays))
        return replace(initial_state(self.model), q=q, u=u, joint_q=joint_q)

    def write_state(self, state: State, newton_state) -> None:
        """Write the worlds into a Newton state: body_q, body_qd, joint_q, joint_qd, and joint_q_prev where it exists."""
        old = NewtonState(*self._arrays(**{name: getattr(newton_state, name) for name in MOTION}))
        new = jax.block_until_ready(motion_to_newton(self.model, self.index, state.q, state.u, state.joint_q, old))
        for name in MOTION:
            if getattr(newton_state, name) is not None:
                assign(getattr(newton_state, name), getattr(new, name))
        if getattr(newton_state, "joint_q_prev", None) is not None:
            assign(newton_state.joint_q_prev, new.joint_q)

    def control(self, newton_control, newton_state=None) -> Control:
        """The worlds' Control (W, ...): joint efforts and targets, and `newton_state.body_f` as external wrenches."""
        names = ("joint_f", "joint_target_q", "joint_target_qd")
        given = {name: getattr(newton_control, name, None) for name in names}
        given["body_f"] = getattr(newton_state, "body_f", None)
        values = jax.block_until_ready(control_from_newton(self.model, self.index, *self._arrays(**given)))
        control = Control(*values)
        if given["joint_target_q"] is None:
            control = replace(control, q_ref=zero_control(self.model).q_ref)
        return control

    def contacts(self, newton_contacts, newton_state, config: Config = Config()) -> Contacts:
        """The worlds' contact slots (W, rows.nc) of Newton's contacts, for `step(..., contacts=...)`.

        `found` counts all contacts of a world, also those beyond its slots (see `Status.contacts_dropped`); if Newton itself ran out
        of rows, it exceeds the slots of every world.
        """
        rigid = _rigid(newton_contacts)
        (body_q,) = self._arrays(body_q=newton_state.body_q)
        capacity = self.model.layout.rows.nc
        slots = contacts_from_newton(self.surfaces, rigid, body_q, capacity=capacity, config=config, dtype=self.model.dtype)
        return jax.block_until_ready(slots)

    def _arrays(self, **given):
        """JAX arrays under Newton's names; None becomes zeros."""
        for name, value in given.items():
            family, entry = ARRAYS[name]
            yield jnp.zeros((self.sizes[family], *entry), self.model.dtype) if value is None else to_jax(value, entry)


def _rigid(contacts) -> Rigid:
    """Newton's contact arrays side by side."""
    get = lambda name, entry=(): to_jax(getattr(contacts, f"rigid_contact_{name}"), entry)
    both = lambda name, entry=(): jnp.stack([get(f"{name}0", entry), get(f"{name}1", entry)], axis=1)
    special = getattr(contacts, "rigid_contact_stiffness", None) is not None
    margin = both("margin")
    return Rigid(
        count=get("count"),
        shape=both("shape"),
        point=both("point", (3,)),
        offset=both("offset", (3,)),
        normal=get("normal", (3,)),
        margin=margin,
        stiffness=get("stiffness") if special else jnp.zeros_like(margin[:, 0]),
        damping=get("damping") if special else jnp.zeros_like(margin[:, 0]),
    )
