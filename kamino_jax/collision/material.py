"""Contacts whose normals and points are held fixed to the bodies: the tangent of contact geometry.

To first order in the motion of smooth surfaces d = n · (x_B - x_A) with n and the material points frozen gives the derivative of the
distance exactly; what it leaves out is how normal and contact points wander over the surfaces.
"""

import jax
import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..pytree import replace
from ..state import Contacts


def _carried(point: Array, body: Array, q: Array) -> Array:
    """World points (nc, 3) as functions of the poses q (nb + 1, 7) of the bodies that carry them."""
    pose, frozen = q[body], jax.lax.stop_gradient(q)[body]
    arm = spatial.quat_rotate(spatial.quat_conjugate(frozen[:, 3:]), point - frozen[:, :3])
    return pose[:, :3] + spatial.quat_rotate(pose[:, 3:], arm)


def material_contacts(contacts: Contacts, q: Array) -> Contacts:
    """The same contacts at poses q (nb, 7), differentiated as points that bodies carry; material coefficients keep their derivatives."""
    poses = jnp.concatenate([q, jnp.array([[0, 0, 0, 0, 0, 0, 1]], q.dtype)])
    frozen = jax.lax.stop_gradient(contacts)
    world = q.shape[0]
    carried = lambda point, body: _carried(point, jnp.where(body < 0, world, body), poses)
    a, b = carried(frozen.point_a, contacts.body_a), carried(frozen.point_b, contacts.body_b)
    moved = jnp.sum(frozen.normal * ((b - frozen.point_b) - (a - frozen.point_a)), axis=1)
    distance = frozen.distance + jnp.where(contacts.active, moved, 0)
    return replace(contacts, distance=distance, normal=frozen.normal, point_a=a, point_b=b)
