"""The law that each row follows at a solution, linearised: sticking, sliding, open, at a bound.

In preconditioned units (impulse y, velocity s) the solution is the root of the natural map F = y - Proj_C(x), x = y - s - Γ(s), with
F = s on bilateral rows. Its derivative, row by row and up to an invertible factor, reads

    K dy + V ds = c

with c the share of moving bounds and friction coefficients. A joint row is blended by z in [0, 1], 1 while its constraint holds:
K = 1 - z, V = z. A contact is seen in the plane of its slip e and normal n, where the edge u of the cone and the edge q of its polar are
orthogonal, so that Proj(x) = max(u·x, 0) u + min(q·x, 0) q:

    u = (μ, 1)/√(1+μ²):   (1 - z_u) u·dy + z_u ds_n/√(1+μ²) = 0
    q = (1, -μ)/√(1+μ²):  (1 - z_q) (q·dy - y_n dμ/√(1+μ²)) + z_q q·(ds + dΓ) = 0
    b = n × e:            (1 - z_b) b·dy + z_b b·ds = 0

Sticking is z = (1, 1, 1), open (0, 0, 0), sliding (1, 0, μ y_n/|x_t|). With κ > 0 the maxima are smoothed, φ(a) = (a + √(a² + 4κ))/2, a
point of the central path y s = κ [J] of interior-point methods: rows blend from one law into another.
"""

import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..pytree import pytree
from . import cones
from .scaling import Scaled


@pytree
class RowBlocks:
    """Block-diagonal matrix over rows."""

    joint: Array  # (nj,)
    contact: Array  # (nc, 3, 3)

    def __matmul__(self, x: Array) -> Array:
        """Product with x (nd, ...)."""
        nj = self.joint.shape[0]
        head = self.joint.reshape((nj,) + (1,) * (x.ndim - 1)) * x[:nj]
        tail = jnp.einsum("cij,cj...->ci...", self.contact, x[nj:].reshape((-1, 3) + x.shape[1:]), precision="highest")
        return jnp.concatenate([head, tail.reshape(x[nj:].shape)])


@pytree
class Modes:
    """Linearised laws of all rows at one solution."""

    K: RowBlocks
    V: RowBlocks
    inverse: RowBlocks  # (K + V (E + σ))⁻¹
    bound_share: tuple[Array, Array]  # (nf + ne,) how much of a row's impulse moves with its lower and upper bound
    mu_share: Array  # (nc, 3) c of a contact per dμ
    frame: RowBlocks  # rows u, b, q of contacts
    margin: Array  # (nd,) distance of each row from its next change of law, preconditioned units; inf where it has none


def _positive(a: Array, kappa: float) -> tuple[Array, Array]:
    """(φ(a), φ'(a)) of the smoothed max(a, 0); exactly that and its derivative (0 at 0) if κ = 0."""
    if kappa == 0:
        return jnp.maximum(a, 0), (a > 0).astype(a.dtype)
    root = jnp.sqrt(a * a + 4 * kappa)
    return 0.5 * (a + root), 0.5 * (1 + a / root)


def _joint_blends(scaled: Scaled, x: Array, kappa: float) -> tuple[Array, tuple[Array, Array], Array]:
    """(z, shares of the lower and upper bounds, margin) of joint rows."""
    rows = scaled.rows
    bounded, limit = x[rows.bounded], x[rows.limit]
    _, above = _positive(bounded - scaled.lower, kappa)
    _, beyond = _positive(bounded - scaled.upper, kappa)
    _, closed = _positive(limit, kappa)
    z = jnp.concatenate([jnp.ones(rows.bilateral.stop, x.dtype), above - beyond, closed])
    nearest = jnp.minimum(jnp.abs(bounded - scaled.lower), jnp.abs(scaled.upper - bounded))
    margin = jnp.concatenate([jnp.full(rows.bilateral.stop, jnp.inf, x.dtype), nearest, jnp.abs(limit)])
    return z, (1 - above, beyond), margin


@pytree
class Slip:
    """The plane of slip of every contact."""

    e: Array  # (nc, 2) direction of x_t
    edge: Array  # (nc,) u·x
    polar: Array  # (nc,) q·x, positive outside the cone
    length: Array  # (nc,) |x_t|


def slip_plane(x: Array, mu: Array) -> Slip:
    """Coordinates of x (nc, 3) = (t, o, n)."""
    length, c = spatial.norm(x[:, :2]), jnp.sqrt(1 + mu * mu)
    e = jnp.where((length > 0)[:, None], x[:, :2] / jnp.where(length > 0, length, 1)[:, None], jnp.array([1, 0], x.dtype))
    return Slip(e, (mu * length + x[:, 2]) / c, (length - mu * x[:, 2]) / c, length)


def _contact_blends(slip: Slip, mu: Array, kappa: float) -> tuple[Array, Array, Array]:
    """(z_u, z_q, z_b); the q direction is smoothed by μ² κ, so that tangential impulse vanishes with slip."""
    c = jnp.sqrt(1 + mu * mu)
    if kappa == 0:
        open_ = slip.edge <= 0
        stuck = ~open_ & (slip.polar <= 0)
        share = mu * slip.edge / (c * jnp.where(slip.length > 0, slip.length, 1))
        return tuple(z.astype(mu.dtype) for z in (~open_, stuck, jnp.where(open_, 0, jnp.where(stuck, 1, share))))
    y_u, z_u = _positive(slip.edge, kappa)
    root = jnp.sqrt(slip.polar**2 + 4 * kappa * mu * mu)
    safe = jnp.where(root > 0, root, 1)
    z_q = jnp.where(root > 0, 0.5 * (1 - slip.polar / safe), 1)
    tangent = (mu * y_u - 0.5 * (root - slip.polar)) / c
    at_rest = (mu * mu * z_u + z_q) / (c * c)
    z_b = jnp.where(slip.length > 0, jnp.clip(tangent / jnp.where(slip.length > 0, slip.length, 1), 0, 1), at_rest)
    return z_u, z_q, z_b


def _contact_frames(slip: Slip, mu: Array) -> tuple[Array, Array]:
    """Rows u, b, q of contacts in (t, o, n), (nc, 3, 3), and the same rows times 1 + Γ'."""
    c, zero = jnp.sqrt(1 + mu * mu)[:, None], jnp.zeros_like(mu)
    e = jnp.concatenate([slip.e, zero[:, None]], axis=1)
    b = jnp.stack([-slip.e[:, 1], slip.e[:, 0], zero], axis=1)
    n, mu = jnp.broadcast_to(jnp.array([0, 0, 1], mu.dtype), e.shape), mu[:, None]
    frame = jnp.stack([(mu * e + n) / c, b, (e - mu * n) / c], axis=1)
    # slip opposes x_t, so dΓ = -μ e·ds on the normal
    return frame, jnp.stack([n / c, b, ((1 + mu * mu) * e - mu * n) / c], axis=1)


def modes(scaled: Scaled, y: Array, s: Array, active: Array, *, kappa: float, sigma: float) -> Modes:
    """Laws of all rows at impulses y and velocities s (nd,); inactive rows stay at zero.

    Args:
        kappa: smoothing [J]; 0: the exact derivative, one-sided at a change of law.
        sigma: compliance that stands in for a hard constraint's own when its block is inverted.
    """
    rows, mu = scaled.rows, scaled.mu
    x = y - s - cones.de_saxce(rows, s, mu)
    z, shares, margin = _joint_blends(scaled, x[: rows.nj], kappa)
    z = jnp.where(active[: rows.nj], z, 0)
    e = scaled.operator.E + sigma
    slip = slip_plane(cones.contacts_of(rows, x), mu)
    on = active[rows.contact].reshape(-1, 3)[:, 2]
    blend = jnp.where(on[:, None], jnp.stack(_contact_blends(slip, mu, kappa), axis=1)[:, jnp.array([0, 2, 1])], 0)[:, :, None]
    frame, shifted = _contact_frames(slip, mu)
    K, V = (1 - blend) * frame, blend * shifted
    inverse = spatial.inverse3(K + V * cones.contacts_of(rows, e)[:, None, :])
    normal = cones.contacts_of(rows, y)[:, 2] / jnp.sqrt(1 + mu * mu)
    return Modes(
        K=RowBlocks(1 - z, K),
        V=RowBlocks(z, V),
        inverse=RowBlocks(1 / (1 - z + z * e[: rows.nj]), inverse),
        bound_share=shares,
        mu_share=jnp.stack([jnp.zeros_like(mu), jnp.zeros_like(mu), (1 - blend[:, 2, 0]) * normal], axis=1),
        frame=RowBlocks(jnp.ones_like(z), frame),
        margin=jnp.where(active, jnp.concatenate([margin, jnp.repeat(jnp.minimum(jnp.abs(slip.edge), jnp.abs(slip.polar)), 3)]), jnp.inf),
    )
