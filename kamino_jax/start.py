"""Where a simulation begins: the state in which a model was built, and a control that does nothing."""

import jax.numpy as jnp

from .model import Model
from .state import Control, Reactions, State


def initial_state(model: Model) -> State:
    """The state that the model was built in, without memory of earlier reactions. Stacked models give stacked states."""
    worlds, rows, dtype = model.start.q.shape[:-2], model.layout.rows, model.dtype
    reactions = Reactions(
        force=jnp.zeros((*worlds, rows.nd), dtype),
        velocity=jnp.zeros((*worlds, rows.nd), dtype),
        key=jnp.full((*worlds, rows.nc), -1, jnp.int32),
        point=jnp.zeros((*worlds, rows.nc, 3), dtype),
        frame=jnp.broadcast_to(jnp.eye(3, dtype=dtype), (*worlds, rows.nc, 3, 3)),
    )
    return State(q=model.start.q, u=model.start.u, joint_q=model.start.joint_q, reactions=reactions)


def zero_control(model: Model) -> Control:
    """No efforts, no external wrenches; drives aim at the model's targets at rest. Stacked models give stacked controls."""
    worlds, dtype = model.start.q.shape[:-2], model.dtype
    return Control(
        tau=jnp.zeros((*worlds, model.layout.nv), dtype),
        q_ref=model.start.q_ref,
        u_ref=jnp.zeros((*worlds, model.layout.nv), dtype),
        w_ext=jnp.zeros_like(model.start.u),
    )
