"""A sphere against a sphere, a capsule, a cylinder, a box: one contact each."""

import jax.numpy as jnp
from jax import Array, lax

from .shapes import Shape, direction, dot, rotate, rotate_back, sign, unit_x


def _contact(sphere: Shape, outward: Array, height: Array):
    """Contact of a sphere whose centre stands at signed distance `height` over a surface with unit normal `outward`."""
    radius = sphere.size[0]
    midpoint = sphere.p - 0.5 * (height + radius) * outward
    return (height - radius)[None], -outward, midpoint[None]


def sphere_sphere(a: Shape, b: Shape):
    """D = |p_b - p_a| - r_a - r_b; along world x if the centres coincide."""
    radius = b.size[0]
    length, towards = direction(b.p - a.p, a.size[0] + radius, unit_x(a.p))
    return _contact(a, -towards, length - radius)


def sphere_capsule(sphere: Shape, capsule: Shape):
    """D = distance of the centre to the segment - radii; along the capsule's x axis if the centre is on the segment."""
    radius, half, axis = capsule.size[0], capsule.size[1], capsule.R[:, 2]
    offset = sphere.p - capsule.p
    nearest = jnp.clip(dot(offset, axis), -half, half) * axis
    length, outward = direction(offset - nearest, sphere.size[0] + radius + half, -capsule.R[:, 0])
    return _contact(sphere, outward, length - radius)


def sphere_cylinder(sphere: Shape, cylinder: Shape):
    """Signed distance of the centre to a cylinder, a rectangle in (ρ, |z|): ρ - r, |z| - h, or to the rim outside of both."""
    radius, half = cylinder.size[0], cylinder.size[1]
    x = rotate_back(cylinder.R, sphere.p - cylinder.p)
    in_plane = x * jnp.array([1, 1, 0], x.dtype)
    rho, radial = direction(in_plane, radius, -unit_x(x))
    up = sign(lax.stop_gradient(x[2]))
    excess = jnp.stack([rho - radius, up * x[2] - half])
    beyond = jnp.all(lax.stop_gradient(excess) > 0)
    on_side = lax.stop_gradient(excess[0] >= excess[1])
    face = jnp.where(on_side, jnp.array([1, 0], x.dtype), jnp.array([0, 1], x.dtype))
    rim, towards_rim = direction(jnp.where(beyond, excess, face), radius, face)
    height = jnp.where(beyond, rim, jnp.where(on_side, excess[0], excess[1]))
    mix = jnp.where(beyond, towards_rim, face)
    local = mix[0] * radial + mix[1] * up * jnp.array([0, 0, 1], x.dtype)
    return _contact(sphere, rotate(cylinder.R, local), height)


def sphere_box(sphere: Shape, box: Shape):
    """Distance of the centre to the box, or minus the depth below the nearest face (-x, +x, -y, +y, -z, +z) inside."""
    half = box.size
    x = rotate_back(box.R, sphere.p - box.p)
    side = jnp.where(lax.stop_gradient(x) > 0, 1, -1)
    depth = half - side * x
    excess = jnp.where(lax.stop_gradient(depth) < 0, x - side * half, 0)
    face = jnp.arange(3) == jnp.argmin(lax.stop_gradient(depth))
    outward = jnp.where(face, side, 0).astype(x.dtype)
    square = dot(excess, excess)
    info = jnp.finfo(x.dtype)
    outside = lax.stop_gradient(square) > info.tiny / info.eps  # the square of the excess has all its digits
    length = jnp.sqrt(jnp.where(outside, square, 1))
    height = jnp.where(outside, length, -jnp.sum(jnp.where(face, depth, 0)))
    local = jnp.where(outside, excess / length, outward)
    return _contact(sphere, rotate(box.R, local), height)
