"""States and controls of many worlds from Newton's flat arrays and back, on the device."""

import jax
import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..joints.kinematics import coordinates, dof_rates, joint_kinematics
from ..model import Model
from ..pytree import pytree


@pytree
class Index:
    """Where the entries of each world stand in Newton's arrays, int32."""

    bodies: Array  # (W, nb)
    coordinates: Array  # (W, nq)
    dofs: Array  # (W, nv)


@pytree
class NewtonState:
    """Newton's arrays of a state."""

    body_q: Array  # (B, 7) [m, -] body origin poses
    body_qd: Array  # (B, 6) [m/s, rad/s] twists of the centres of mass
    joint_q: Array  # (C,)
    joint_qd: Array  # (D,)


def _shift(q: Array, com: Array) -> Array:
    """Poses of points `com` in the frames q; unit quaternions."""
    rotation = spatial.normalize(q[..., 3:])
    return jnp.concatenate([q[..., :3] + spatial.quat_rotate(rotation, com), rotation], axis=-1)


@jax.jit
def motion_from_newton(models: Model, index: Index, body_q: Array, body_qd: Array, joint_q: Array) -> tuple[Array, Array, Array]:
    """Poses (W, nb, 7) and twists (W, nb, 6) of the centres of mass, and joint coordinates (W, nq) as they are given."""
    dtype = models.dtype
    q = _shift(body_q.astype(dtype)[index.bodies], models.bodies.com)
    return q, body_qd.astype(dtype)[index.bodies], joint_q.astype(dtype)[index.coordinates]


def _measure(model: Model, q: Array, u: Array, reference: Array) -> tuple[Array, Array]:
    kinematics = joint_kinematics(model, q, u, reference, "continuous")
    return coordinates(model.topology, kinematics), dof_rates(model.topology, kinematics)


@jax.jit
def motion_to_newton(models: Model, index: Index, q: Array, u: Array, joint_q: Array, old: NewtonState) -> NewtonState:
    """Newton's arrays with the entries of these worlds replaced."""
    joint_q, joint_qd = jax.vmap(_measure)(models, q, u, joint_q)
    put = lambda array, where, value: array.at[where].set(value.astype(array.dtype))
    return NewtonState(
        put(old.body_q, index.bodies, _shift(q, -models.bodies.com)),
        put(old.body_qd, index.bodies, u),
        put(old.joint_q, index.coordinates, joint_q),
        put(old.joint_qd, index.dofs, joint_qd),
    )


def _valid_quaternions(model: Model, q_ref: Array) -> Array:
    """Targets with the identity where a ball or free joint has a zero quaternion."""
    entry = model.topology.entry[:, 6:]  # (nj, 4), nq where a joint has no quaternion
    empty = jnp.all(jnp.append(q_ref, 0)[entry] == 0, axis=1) & (entry[:, 3] < q_ref.shape[0])
    where = jnp.where(empty, entry[:, 3], q_ref.shape[0])
    return q_ref.at[where].set(1, mode="drop")


@jax.jit
def control_from_newton(models: Model, index: Index, joint_f: Array, target_q: Array, target_qd: Array, body_f: Array):
    """Efforts (W, nv), position targets (W, nq), velocity targets (W, nv) and wrenches (W, nb, 6)."""
    cast = lambda x: x.astype(models.dtype)
    q_ref = jax.vmap(_valid_quaternions)(models, cast(target_q)[index.coordinates])
    return cast(joint_f)[index.dofs], q_ref, cast(target_qd)[index.dofs], cast(body_f)[index.bodies]
