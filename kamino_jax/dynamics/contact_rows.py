"""Contact rows: Jacobian, bias, restitution and compliance.

With the contact frame (t, o, n) and the surface points x_A, x_B: J_B = [R, -R S(x_B - r_B)], J_A = -[R, -R S(x_A - r_A)], the velocity of B
relative to A. Normal bias for the gap φ = distance outside the dead zone δ:

    v_b = max(-speed, c min(0, φ)) + max(0, φ)/h        (0 if ε >= 1)

so an overlap is left at c|φ| and a positive gap may just close. Source: Newton `SolverKamino`, contact constraints.
"""

import jax
import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..collision.frames import contact_frame
from ..config import ConstraintsConfig
from ..pytree import once, pytree
from ..recovery import compliant_rate, hard_rate
from ..state import Contacts


@pytree
class ContactRows:
    """Three rows per contact slot; zero where the slot is empty."""

    J: Array  # (nc, 3, 2, 6)
    body: Array  # (nc, 2)
    r_B: Array  # (nc, 3) [m] centre of mass of body B
    frame: Array  # (nc, 3, 3) rows t, o, n
    v_b: Array  # (nc,) normal bias [m/s]
    eps: Array  # (nc,) restitution
    E: Array  # (nc,) normal compliance


def _point_rows(axes: Array, arm: Array) -> Array:
    """Velocity of a point at `arm` from the centre of mass along three axes, (3, 6)."""
    return jnp.concatenate([axes, spatial.cross(arm[None], axes)], axis=1)


def normal_bias(contacts: Contacts, h: Array, config: ConstraintsConfig, f: float) -> tuple[Array, Array, Array]:
    """(v_b [m/s], ε, E [1/kg]) of the normal rows, each (nc,)."""
    if config.contact_compliance:
        c, E = compliant_rate(config.gamma, config.contact_recovery_time, h, f, contacts.stiffness, contacts.damping)
    else:
        c, E = hard_rate(config.gamma, config.contact_recovery_time, h), jnp.zeros_like(contacts.distance)
    phi = jnp.sign(contacts.distance) * jnp.maximum(jnp.abs(contacts.distance) - config.delta, 0)
    bias = jnp.maximum(c * jnp.minimum(phi, 0), -config.contact_recovery_speed) + jnp.maximum(phi, 0) / h
    eps = jnp.where(E > 0, 0, contacts.restitution)
    return jnp.where(eps >= 1, 0, bias), eps, E


def contact_rows(contacts: Contacts, r: Array, h: Array, config: ConstraintsConfig, f: float) -> ContactRows:
    """Rows of all slots; r: centres of mass (nb + 1, 3) with the world last."""
    frame = once(jax.vmap(contact_frame)(contacts.normal))
    body = jnp.stack([contacts.body_a, contacts.body_b], axis=1)
    body = jnp.where(body < 0, r.shape[0] - 1, body)
    rows_A = jax.vmap(_point_rows)(frame, contacts.point_a - r[body[:, 0]])
    r_B = r[body[:, 1]]
    rows_B = jax.vmap(_point_rows)(frame, contacts.point_b - r_B)
    on = contacts.active
    J = jnp.where(on[:, None, None, None], jnp.stack([-rows_A, rows_B], axis=2), 0)
    v_b, eps, E = normal_bias(contacts, h, config, f)
    return ContactRows(J, body, r_B, frame, jnp.where(on, v_b, 0), jnp.where(on, eps, 0), jnp.where(on, E, 0))
