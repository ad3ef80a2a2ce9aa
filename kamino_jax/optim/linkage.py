"""Kinematic design: parameters of a mechanism whose traced point passes through targets.

Poses are found by Newton's method on the joint residuals, g(q, p) = 0, one driven position after the other so that the branch is kept.
Their derivative is that of the implicit function, dq = -J⁺ dg, by one more Newton step with J held fixed.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..joints.kinematics import coordinates, joint_kinematics
from ..model import Model
from ..pytree import once, pytree
from .descent import Report
from .least_squares import levenberg_marquardt
from .parameters import coordinates_of

NEWTON_STEPS = 8  # from one position to the next
LONGEST = 0.5  # [m, rad] that one Newton step may move
EXTRA = 2  # rounds more to reach the first position


@pytree
class Linkage:
    """A mechanism with its drive and its traced point, as functions of the parameters (the `build` of `design_linkage`)."""

    model: Model  # start.q near the first position
    values: Array  # (T,) [m, rad] the driven coordinate
    point: Array  # (3,) [m] traced point in its body's frame


@pytree
class Closure:
    """Poses that satisfy the joints at every driven position, or come nearest."""

    q: Array  # (T, nb, 7)
    residual: Array  # (T, rows) [m, rad] of the kinematic rows and of the driven coordinate

    @property
    def gap(self) -> Array:
        """Largest residual of every position (T,) [m, rad]; above rounding where the loops do not close."""
        return jnp.max(jnp.abs(self.residual), axis=1)


@pytree
class LinkageDesign:
    """The best design."""

    parameters: Any
    linkage: Linkage
    path: Array  # (T, 3) [m] of the traced point
    q: Array  # (T, nb, 7)
    gap: Array  # (T,) [m, rad] loop closure error
    closes: bool  # every gap is within the closure tolerance
    rms: Array  # () [m] distance to the targets, root mean square
    history: Array  # (iterations + 1,)
    iterations: int
    converged: bool


def _corrected(q: Array, g: Array, J: Array) -> Array:
    """Poses (nb, 7) after the Newton step dx = -J⁺ g (6 nb,), no displacement and no rotation of it above `LONGEST`."""
    H = jnp.matmul(J.T, J, precision="highest")
    H = H + 10 * jnp.finfo(J.dtype).eps * jnp.trace(H) * jnp.eye(H.shape[0], dtype=J.dtype)  # damped by rounding
    dx = -jnp.linalg.solve(H, J.T @ g)
    dx = dx * jax.lax.stop_gradient(jnp.minimum(1, LONGEST / jnp.maximum(jnp.max(jnp.abs(dx)), LONGEST)))
    return once(spatial.advance(q, dx.reshape(-1, 6), jnp.ones((), dx.dtype)))


def _closure(model: Model, q: Array, driven: int, value: Array) -> tuple[Array, Array]:
    """(g, J): position error (rows + 1,) [m, rad] of the kinematic rows and the driven coordinate, and J (rows + 1, 6 nb) = dg/dx.

    J is the joints' own; it is the derivative of g where g = 0 and near it elsewhere, which is all that Newton's method needs.
    """
    top, rows, nb = model.topology, model.layout.rows, q.shape[0]
    near = model.start.joint_q.at[driven].set(value)
    kinematics = joint_kinematics(model, q, jnp.zeros((nb, 6), q.dtype), near, "continuous")
    entry = top.coordinate[driven]
    axis = jnp.concatenate([top.row[rows.kinematic], (6 * (entry // 10) + entry % 10)[None]])
    on = jnp.concatenate([top.row_on[rows.kinematic], jnp.ones(1, bool)])
    loops = kinematics.residual.reshape(-1)[top.row[rows.kinematic]]
    g = jnp.concatenate([loops, (coordinates(top, kinematics)[driven] - value)[None]])
    column = jnp.eye(nb + 1, nb, dtype=q.dtype)  # the world's row, -1, is empty
    ends = jnp.stack([column[top.base], column[top.follower]], axis=1)[axis // 6]
    J = jnp.einsum("rek,reb->rbk", kinematics.J.reshape(-1, 2, 6)[axis], ends).reshape(len(axis), 6 * nb)
    return once((jnp.where(on, g, 0), jnp.where(on[:, None], J, 0)))


def close_loops(model: Model, values: Array, driven: int = 0) -> Closure:
    """Poses of one world at each value (T,) of a driven coordinate, starting from `model.start.q`; differentiable once.

    Each position starts from the one before, so the values should move in steps that keep the branch (15 degrees, say). The driven
    coordinate (an index into the joint coordinates, of a hinge or slider) must determine the mechanism; what it leaves free stays near
    the start. Where the loops cannot close, the residual does not vanish and says so.
    """
    frozen, fixed = jax.lax.stop_gradient((model, values))

    def follow(q, value):
        def improve(_, q):
            g, J = _closure(frozen, q, driven, value)
            return _corrected(q, g, J)

        q = jax.lax.fori_loop(0, NEWTON_STEPS, improve, q)
        return q, q

    towards = jnp.concatenate([jnp.repeat(fixed[:1], EXTRA), fixed])
    solved = jax.lax.scan(follow, frozen.start.q, towards)[1][EXTRA:]

    def attach(q, value):
        g, J = _closure(model, q, driven, value)
        return _corrected(q, g, jax.lax.stop_gradient(J))

    q = jax.vmap(attach)(jax.lax.stop_gradient(solved), values)
    return Closure(q, jax.vmap(lambda q, value: _closure(model, q, driven, value)[0])(q, values))


def trace(model: Model, q: Array, body: int, point: Array) -> Array:
    """World positions (T, 3) [m] of a point in a body's frame, from poses q (T, nb, 7) of the centres of mass."""
    arm = point - model.bodies.com[body]
    return jax.vmap(lambda pose: pose[:3] + spatial.quat_rotate(pose[3:], arm))(q[:, body])


def _find(model: Model, body: str, driven: str) -> tuple[int, int]:
    """(body, driven coordinate) by name."""
    try:
        b, j = model.names.index("bodies", body), model.names.index("joints", driven)
    except KeyError as error:
        raise ValueError(error.args[0]) from None
    owned = [k for k, c in enumerate(model.topology.coordinate.tolist()) if c // 10 == j]
    if len(owned) != 1:
        raise ValueError(f"joint {driven!r} has {len(owned)} coordinates; the driven joint must have one")
    return b, owned[0]


def design_linkage(
    build: Callable[[Any], Linkage],
    parameters: Any,
    targets: Array,
    *,
    body: str,
    driven: str,
    positive: Any = False,
    closure_weight: float = 1.0,
    prior: float = 0.0,
    closure_tolerance: float | None = None,
    iterations: int = 100,
    tolerance: float | None = None,
    report: Report | None = None,
) -> LinkageDesign:
    """Minimise ½ Σ |x_k(p) - target_k|² + ½ closure_weight² |g|² + ½ prior² |θ - θ_0|² over parameters p, by Levenberg-Marquardt.

    Steps into designs that do not close raise the cost through the residual g of the joints and are refused.

    Args:
        build: p -> `Linkage`, traceable: edits joint frames (`Joints.X_B`, `X_F`), drive values, traced point of a finished model.
        parameters: where the search starts, any tree of numbers; it should close.
        targets: (T, 3) [m] of the traced point, one per driven value.
        body, driven: names of the body with the traced point, and of the driven joint (of one coordinate).
        positive: parameters fitted by their logarithm, True, False, or a tree of them like `parameters`.
        prior: [m] weight of staying near the start, in the parameters θ that are fitted (logarithms of positive ones); keeps designs
            compact where long links trace nearly the same path.
        closure_tolerance: [m, rad] gap up to which the design counts as closed; None: √ε, 1.5e-8 in double precision.
        tolerance: relative decrease or step at which to stop (None: ε^⅔).
        report: called with (iteration, cost).

    Raises:
        ValueError: unknown names, a driven joint of several coordinates, targets that do not match the driven values, parameters that
            are not positive.
    """
    first = build(parameters)
    dtype = first.model.dtype
    b, coordinate = _find(first.model, body, driven)
    targets = jnp.asarray(targets, dtype)
    if targets.shape != (*first.values.shape, 3):
        raise ValueError(f"targets has shape {targets.shape}; build gives {first.values.shape[0]} driven values, so it must be (T, 3)")
    theta, meaning = coordinates_of(parameters, positive, dtype)

    def residual(x, targets):
        linkage = once(build(meaning.tree(x)))
        closure = close_loops(linkage.model, linkage.values, coordinate)
        path = trace(linkage.model, closure.q, b, linkage.point)
        errors = [(path - targets).reshape(-1), closure_weight * closure.residual.reshape(-1), prior * (x - theta)]
        return jnp.concatenate(errors), (linkage, closure, path)

    found = levenberg_marquardt(residual, theta, targets, iterations=iterations, tolerance=tolerance, report=report)
    linkage, closure, path = found.aux
    closed = float(jnp.finfo(dtype).eps) ** 0.5 if closure_tolerance is None else closure_tolerance
    rms = jnp.sqrt(jnp.mean(jnp.sum((path - targets) ** 2, axis=1)))
    closes = bool(jnp.max(closure.gap) <= closed)
    parameters = meaning.tree(found.x)
    return LinkageDesign(
        parameters, linkage, path, closure.q, closure.gap, closes, rms, found.history, found.iterations, found.converged and closes
    )
