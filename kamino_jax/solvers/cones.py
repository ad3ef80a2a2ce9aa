"""The sets of the problem: projections, De Saxcé shift, complementarity.

Contact vectors are (..., 3) = (t, o, n), normal last. K_μ = {|λ_t| <= μ λ_n}; its dual K_μ* = {μ |v_t| <= v_n}.
"""

import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..layout import Rows


def _rescale(x: Array, length: Array, tangent: Array, normal: Array) -> Array:
    """(tangent x_t/|x_t|, normal)."""
    return jnp.concatenate([(tangent / jnp.where(length > 0, length, 1))[..., None] * x[..., :2], normal[..., None]], axis=-1)


def project_cone(x: Array, mu: Array) -> Array:
    """Euclidean projection on K_μ. The order of tests makes μ = 0 the ray t = 0, n >= 0."""
    length, n = spatial.norm(x[..., :2]), x[..., 2]
    normal = (mu * length + n) / (1 + mu * mu)
    face = _rescale(x, length, mu * normal, normal)
    inside, polar = (length <= mu * n)[..., None], (mu * length <= -n)[..., None]
    return jnp.where(polar, 0, jnp.where(inside, x, face))


def project_dual_cone(x: Array, mu: Array) -> Array:
    """Euclidean projection on K_μ*. The order of tests makes μ = 0 the half space n >= 0."""
    length, n = spatial.norm(x[..., :2]), x[..., 2]
    g = (length + mu * n) / (1 + mu * mu)
    face = _rescale(x, length, g, mu * g)
    inside, polar = (mu * length <= n)[..., None], (length <= -mu * n)[..., None]
    return jnp.where(inside, x, jnp.where(polar, 0, face))


def contacts_of(rows: Rows, x: Array) -> Array:
    """Contact part of a row vector, (nc, 3)."""
    return x[rows.contact].reshape(-1, 3)


def joint_bounds(rows: Rows, lower: Array, upper: Array) -> tuple[Array, Array]:
    """Intervals of all joint rows (rows.nj,): the whole line, the given bounds, the half line."""
    infinite = jnp.full(rows.bilateral.stop, jnp.inf, lower.dtype)
    half = jnp.zeros(rows.nl, lower.dtype)
    return jnp.concatenate([-infinite, lower, half]), jnp.concatenate([infinite, upper, half + jnp.inf])


def project(rows: Rows, x: Array, bounds: tuple[Array, Array], mu: Array) -> Array:
    """Projection of impulses on R x box x R+ x cones; `bounds` from `joint_bounds`."""
    joints = jnp.clip(x[: rows.nj], *bounds)
    return jnp.concatenate([joints, project_cone(contacts_of(rows, x), mu).reshape(-1)])


def project_dual(rows: Rows, v: Array, mu: Array) -> Array:
    """Projection of velocities on the dual sets: 0 on bilateral rows, R+ on limits, dual cones; bounded rows have none and stay."""
    half = jnp.maximum(v[rows.limit], 0)
    cone = project_dual_cone(contacts_of(rows, v), mu).reshape(-1)
    return jnp.concatenate([jnp.zeros_like(v[rows.bilateral]), v[rows.bounded], half, cone])


def de_saxce(rows: Rows, v: Array, mu: Array) -> Array:
    """Γ(v): μ |v_t| on contact normals, 0 elsewhere."""
    shift = mu * spatial.norm(contacts_of(rows, v)[:, :2])
    zero = jnp.zeros_like(shift)
    return jnp.concatenate([jnp.zeros(rows.nj, v.dtype), jnp.stack([zero, zero, shift], axis=1).reshape(-1)])


def natural_map(rows: Rows, lam: Array, v: Array, bounds: tuple[Array, Array], mu: Array) -> Array:
    """The velocity v on bilateral rows, λ - Proj_C(λ - v - Γ(v)) elsewhere, (nd,): zero at solutions in any scaling of the rows."""
    residual = lam - project(rows, lam - v - de_saxce(rows, v, mu), bounds, mu)
    return residual.at[rows.bilateral].set(v[rows.bilateral])


def complementarity(rows: Rows, lam: Array, v: Array, lower: Array, upper: Array) -> Array:
    """Violations per bounded row, limit and contact, (nf + ne + nl + nc,) [J]; v includes the De Saxcé shift."""
    x, z = lam[rows.bounded], v[rows.bounded]
    box = (x - lower) * jnp.maximum(z, 0) + (upper - x) * jnp.maximum(-z, 0)
    contact = jnp.sum(contacts_of(rows, lam * v), axis=1)
    return jnp.concatenate([jnp.abs(box), jnp.abs(lam[rows.limit] * v[rows.limit]), jnp.abs(contact)])


def violations(rows: Rows, lam: Array, v: Array, bounds: tuple[Array, Array], mu: Array) -> tuple[Array, Array, Array]:
    """Largest (distance of λ from its sets, distance of v + Γ(v) from the dual sets, complementarity); boxes have no dual set."""
    v = v + de_saxce(rows, v, mu)
    largest = lambda x: jnp.max(jnp.abs(x), initial=0)
    box = slice(rows.bilateral.stop, rows.bounded.stop)
    return (
        largest(lam - project(rows, lam, bounds, mu)),
        largest(v - project_dual(rows, v, mu)),
        largest(complementarity(rows, lam, v, bounds[0][box], bounds[1][box])),
    )
