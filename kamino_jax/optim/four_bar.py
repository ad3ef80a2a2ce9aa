"""The planar four-bar: closed form, Grashof's rule, a start for its synthesis, and the synthesis itself.

With crank a, coupler b, rocker c and ground d along +x from the crank pivot, crank at angle θ:

    B = a (cos θ, sin θ),   D = (d, 0),   e = D - B,   C = B + s e/|e| + h e⊥/|e|,   s = (b² - c² + |e|²)/(2 |e|),   h = √(b² - s²)

It closes where b² >= s². Planes are x and z of the world; angles run from +x to +z.
"""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..builder import ModelBuilder
from ..model import Model
from ..pytree import pytree, replace
from .descent import Report
from .linkage import Linkage, LinkageDesign, design_linkage

LINKS = ("crank", "coupler", "rocker")
POSITIVE = dict(lengths=True, point=False, pivot=False, tilt=False, phase=False)


@pytree
class FourBar:
    """Ten numbers. The pin between coupler and rocker lies left of the line from the crank pin to the rocker's pivot."""

    lengths: Array  # (4,) [m] crank, coupler, rocker, ground
    point: Array  # (2,) [m] traced point, along the coupler from the crank pin, and left of it
    pivot: Array  # (2,) [m] crank pivot in the world
    tilt: Array  # () [rad] of the ground link
    phase: Array  # () [rad] added to the given crank angles, from the ground link


@pytree
class FourBarPath:
    """Positions of a four-bar in the frame of its ground link; unit vectors."""

    B: Array  # (T, 2) [m] crank pin
    C: Array  # (T, 2) [m] coupler-rocker pin
    point: Array  # (T, 2) [m] traced point
    closes: Array  # (T,) bool; elsewhere the links are drawn stretched along e


def _left(v: Array) -> Array:
    """Vectors (..., 2) turned by 90 degrees."""
    return jnp.stack([-v[..., 1], v[..., 0]], axis=-1)


def _turn(angle: Array, v: Array) -> Array:
    """Vectors (..., 2) turned by an angle."""
    return jnp.cos(angle) * v + jnp.sin(angle) * _left(v)


def _root(square: Array) -> Array:
    """√ of the positive part, with a finite derivative everywhere."""
    positive = square > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, square, 1)), 0)


def ground_frame_path(bar: FourBar, angles: Array) -> FourBarPath:
    """Closed form in the frame of the ground link."""
    a, b, c, d = bar.lengths
    theta = bar.phase + angles
    B = a * jnp.stack([jnp.cos(theta), jnp.sin(theta)], axis=-1)
    e = jnp.stack([d, jnp.zeros_like(d)]) - B
    span = _root(jnp.sum(e * e, axis=-1))
    e = e / jnp.where(span > 0, span, 1)[:, None]
    s = (b * b - c * c + span * span) / (2 * jnp.where(span > 0, span, 1))
    h = _root(b * b - s * s)
    C = B + s[:, None] * e + h[:, None] * _left(e)
    along = (C - B) / b
    return FourBarPath(B, C, B + bar.point[0] * along + bar.point[1] * _left(along), (s * s <= b * b) & (span > 0))


def four_bar_path(bar: FourBar, angles: Array) -> tuple[Array, Array]:
    """(traced points (T, 2) [m] in the world's x-z plane, whether each position closes (T,)) at crank angles (T,) [rad]."""
    path = ground_frame_path(bar, angles)
    return bar.pivot + _turn(bar.tilt, path.point), path.closes


def grashof(lengths: Array, margin: float = 0.0) -> Array:
    """Whether the crank turns all the way: the crank (or the ground link) is shortest, and shortest + longest <= the other two.

    With a margin, shortest + longest must be smaller by that share.
    """
    longest, shortest, total = jnp.max(lengths), jnp.min(lengths), jnp.sum(lengths)
    turns = jnp.minimum(lengths[0], lengths[3]) <= shortest
    return turns & ((1 + margin) * (shortest + longest) <= total - shortest - longest)


def _similarity(path: Array, targets: Array) -> tuple[Array, Array, Array]:
    """(scale, angle, shift) of the turn, stretch and move that take a path (T, 2) nearest the targets (T, 2)."""
    p, t = path - jnp.mean(path, axis=0), targets - jnp.mean(targets, axis=0)
    square = jnp.sum(p * p)
    real, imaginary = jnp.sum(p * t), jnp.sum(_left(p) * t)
    scale = jnp.sqrt(real**2 + imaginary**2) / jnp.where(square > 0, square, 1)
    angle = spatial.atan2(imaginary, real)
    return scale, angle, jnp.mean(targets, axis=0) - scale * _turn(angle, jnp.mean(path, axis=0))


def _candidate(key: Array, targets: Array, angles: Array, margin: float) -> tuple[FourBar, Array]:
    """(a random four-bar laid over the targets, the mean square distance left); infinite where it is no crank-rocker."""
    k1, k2, k3 = jax.random.split(key, 3)
    links = jnp.exp(jax.random.uniform(k1, (3,), targets.dtype, math.log(1.1), math.log(6.0)))
    point = links[0] * jax.random.uniform(k2, (2,), targets.dtype, -1.5, 2.0)
    phase = jax.random.uniform(k3, (), targets.dtype, 0, 2 * math.pi)
    one, zero = jnp.ones(1, targets.dtype), jnp.zeros((), targets.dtype)
    bar = FourBar(jnp.concatenate([one, links]), point, jnp.zeros(2, targets.dtype), zero, phase)
    path, closes = four_bar_path(bar, angles)
    scale, tilt, pivot = _similarity(path, targets)
    bar = FourBar(scale * bar.lengths, scale * point, pivot, tilt, phase)
    error = jnp.mean(jnp.sum((four_bar_path(bar, angles)[0] - targets) ** 2, axis=1))
    good = jnp.all(closes) & grashof(bar.lengths, margin) & (scale > 0)
    return bar, jnp.where(good, error, jnp.inf)


def four_bar_start(targets: Array, angles: Array, *, key: Array, candidates: int = 4096, margin: float = 0.1) -> FourBar:
    """The best of many random crank-rockers, each moved, turned and scaled onto the targets in closed form.

    Args:
        targets: (T, 2) [m] in the x-z plane. angles: (T,) [rad] crank angles up to a constant.
        margin: by which Grashof's rule is kept, so that the crank also turns after small changes.

    Raises:
        ValueError: shapes that do not match, fewer than 3 targets, or no candidate that closes.
    """
    targets, angles = _checked(targets, angles)
    bars, errors = jax.jit(jax.vmap(lambda k: _candidate(k, targets, angles, margin)))(jax.random.split(key, candidates))
    best = jnp.argmin(errors)
    if not bool(jnp.isfinite(errors[best])):
        raise ValueError(f"none of {candidates} random four-bars closes with a margin of {margin}; ask for more candidates or less margin")
    return jax.tree.map(lambda x: x[best], bars)


def _checked(targets: Array, angles: Array) -> tuple[Array, Array]:
    targets, angles = jnp.asarray(targets), jnp.asarray(angles)
    if targets.shape != (*angles.shape, 2) or angles.ndim != 1 or angles.shape[0] < 3:
        raise ValueError(f"targets {targets.shape} and angles {angles.shape} must be (T, 2) and (T,) with at least 3 positions")
    return targets, angles


def four_bar_model(dtype=None) -> Model:
    """Crank, coupler and rocker without shapes, frames at their first pins with x along the link; every link 1 m until placed."""
    builder = ModelBuilder()
    for name in LINKS:
        builder.add_body(name, mass=1.0, inertia=(0.1, 0.1, 0.1))
    axis, at = dict(axis=(0, -1, 0)), lambda x: (x, 0.0, 0.0)
    builder.add_revolute(None, "crank", name="ground_crank", parent_position=at(0.0), **axis)
    builder.add_revolute("crank", "coupler", name="crank_coupler", parent_position=at(1.0), **axis)
    builder.add_revolute("coupler", "rocker", name="coupler_rocker", parent_position=at(1.0), child_position=at(1.0), **axis)
    builder.add_revolute(None, "rocker", name="ground_rocker", parent_position=at(1.0), **axis)
    return builder.finalize(dtype=dtype)


def _space(v: Array) -> Array:
    """Points (..., 2) of the x-z plane in space."""
    return jnp.stack([v[..., 0], jnp.zeros_like(v[..., 0]), v[..., 1]], axis=-1)


def _pose(origin: Array, along: Array) -> Array:
    """Pose (7,) of a link with its first pin at `origin` and its x axis along a vector, both (2,)."""
    half = 0.5 * spatial.atan2(along[1], along[0])
    zero = jnp.zeros_like(half)
    return jnp.concatenate([_space(origin), jnp.stack([zero, -jnp.sin(half), zero, jnp.cos(half)])])


def place(model: Model, bar: FourBar, angles: Array) -> Linkage:
    """The model of `four_bar_model` with these dimensions, standing in its first position."""
    a, b, c, d = bar.lengths
    zero = jnp.zeros_like(a)
    ground = _turn(bar.tilt, jnp.stack([d, zero]))
    base = jnp.stack([bar.pivot, jnp.stack([a, zero]), jnp.stack([b, zero]), bar.pivot + ground])
    follower = jnp.stack([jnp.zeros_like(bar.pivot), jnp.zeros_like(bar.pivot), jnp.stack([c, zero]), jnp.zeros_like(bar.pivot)])
    joints = replace(
        model.joints,
        X_B=jnp.concatenate([_space(base), model.joints.X_B[:, 3:]], axis=1),
        X_F=jnp.concatenate([_space(follower), model.joints.X_F[:, 3:]], axis=1),
    )
    path = ground_frame_path(bar, angles[:1])
    A, B, C, D = jnp.zeros(2, a.dtype), path.B[0], path.C[0], jnp.stack([d, zero])
    world = lambda v: _turn(bar.tilt, v)
    q = jnp.stack([_pose(bar.pivot + world(p), world(end - p)) for p, end in ((A, B), (B, C), (D, C))])
    start = replace(model.start, q=jax.lax.stop_gradient(q))
    return Linkage(replace(model, joints=joints, start=start), bar.tilt + bar.phase + angles, _space(bar.point))


def design_four_bar(
    targets: Array,
    angles: Array,
    *,
    start: FourBar | None = None,
    key: Array | None = None,
    iterations: int = 200,
    report: Report | None = None,
    **options,
) -> LinkageDesign:
    """Four-bar whose traced point passes through targets at given crank angles; `parameters` of the result is a `FourBar`.

    Args:
        targets: (T, 2) [m] in the x-z plane. angles: (T,) [rad] crank angles, up to a constant that is found too.
        start: where the search starts; None: `four_bar_start(targets, angles, key=key)`.
        options: further ones of `design_linkage`.

    Raises:
        ValueError: shapes that do not match, or neither a start nor a key.
    """
    targets, angles = _checked(targets, angles)
    if start is None and key is None:
        raise ValueError("give start=..., a FourBar, or key=... for a random search for one")
    start = four_bar_start(targets, angles, key=key) if start is None else start
    model = four_bar_model(targets.dtype)
    build: Callable[[FourBar], Linkage] = lambda bar: place(model, bar, angles)
    options = dict(positive=FourBar(**POSITIVE), iterations=iterations, report=report) | options
    return design_linkage(build, start, _space(targets), body="coupler", driven="ground_crank", **options)
