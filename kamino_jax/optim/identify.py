"""System identification: parameters of a model from recorded motion, by Levenberg-Marquardt on short segments.

A recording is cut into segments that restart from what was measured, so that the error of a prediction stays nearly linear in the
parameters however long or chaotic the motion is (multiple shooting with known nodes).
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax import Array

from ..config import Config
from ..linearize import difference
from ..model import Model
from ..pytree import pytree
from ..rollout import rollout
from ..state import Control, State
from .descent import Report, descend
from .least_squares import Normal, levenberg_marquardt, normal_equations
from .parameters import Coordinates, coordinates_of
from .problem import check_problem, motion

Measure = Callable[[State], Array]


@pytree
class Recording:
    """A recorded motion of T steps; several of them with one more leading axis (`stack`)."""

    states: State  # (T + 1, ...) before each step and after the last; or (1, ...) the start alone, with `measured` and one segment
    controls: Control  # (T, ...)
    measured: Any = None  # (T, m) after each step, what `measure` should give; None: read off the states


@pytree
class Identification:
    """Fitted parameters and how well the data determine them."""

    parameters: Any
    standard_errors: Any  # like parameters: s √diag (JᵀJ)⁻¹, s² = |r|²/(measurements - parameters)
    covariance: Array  # (n, n) of the raveled parameters
    condition: Array  # () of JᵀJ on a unit diagonal; above 1/ε the data leave some combination of parameters open
    rms: Array  # () root mean square of the residual, in units of `scale`
    history: Array  # (iterations + 1,) ½ |r|²
    iterations: int
    converged: bool


@pytree
class Segments:
    """Pieces of all recordings side by side."""

    start: State  # (S, ...)
    controls: Control  # (S, L, ...)
    target: Any  # (S, L, m), or the states after each step


def record(model: Model, state: State, controls: Control, *, dt: float, config: Config = Config()) -> Recording:
    """What an ideal instrument would record of one world under a control sequence."""
    check_problem(model, controls, dt, 0)
    trajectory = motion(model, state, controls, jnp.asarray(dt, model.dtype), config)
    return Recording(trajectory.states, controls)


def cut(recordings: Recording, segment: int | None, measure: Measure | None) -> Segments:
    """Segments of `segment` steps (None: the whole recording) of one recording or of a batch.

    Raises:
        ValueError: steps that the segment does not divide, too few states, or `measured` without `measure`.
    """
    if recordings.controls.tau.ndim == 2:
        recordings = jax.tree.map(lambda x: x[None], recordings)
    steps, known = recordings.controls.tau.shape[1], recordings.states.q.shape[1]
    length = steps if segment is None else segment
    if length < 1 or steps % length:
        raise ValueError(f"segment is {segment!r}; it must divide the {steps} steps of a recording")
    if known != steps + 1 and not (known == 1 and length == steps and recordings.measured is not None):
        raise ValueError(f"{known} states for {steps} steps: give {steps + 1}, or the start alone with measured=... and a single segment")
    if recordings.measured is not None and measure is None:
        raise ValueError("recordings have measured values, but no measure=... says what of a state they are")
    after = jax.tree.map(lambda x: x[:, 1:], recordings.states)
    target = recordings.measured
    if target is None:
        target = after if measure is None else jax.vmap(jax.vmap(measure))(after)
    count = recordings.controls.tau.shape[0] * (steps // length)
    pieces = lambda tree: jax.tree.map(lambda x: x.reshape(count, length, *x.shape[2:]), tree)
    starts = jax.tree.map(lambda x: x[:, :steps:length].reshape(count, *x.shape[2:]), recordings.states)
    return Segments(starts, pieces(recordings.controls), pieces(target))


def _residual(apply, measure, config) -> Callable:
    """Function of (θ, data) that gives the error (S L m,) of all predictions in units of the scale, and nothing else."""

    def one(model, segment, dt):
        look = (lambda state, info: state) if measure is None else (lambda state, info: measure(state))
        predicted = rollout(model, segment.start, segment.controls, dt=dt, config=config, record=look)[1]
        return jax.vmap(difference)(segment.target, predicted) if measure is None else predicted - segment.target

    def residual(theta, data):
        model, coordinates, segments, dt, scale = data
        fitted = apply(model, coordinates.tree(theta))
        return (jax.vmap(one, in_axes=(None, 0, None))(fitted, segments, dt) / scale).reshape(-1), None

    return residual


def _gradient(residual) -> Callable:
    """((½ |r|², normal equations), gradient) for an optimiser; forward mode, few unknowns."""

    def value_and_grad(theta, data):
        normal, _ = normal_equations(residual, theta, data)
        return (normal.cost, normal), normal.gradient

    return value_and_grad


def _uncertainty(normal: Normal, count: int, slope: Array) -> tuple[Array, Array]:
    """(covariance, condition) at a fit of `count` residuals; slope dp/dθ (n,)."""
    n, eps = slope.shape[0], jnp.finfo(slope.dtype).eps
    diagonal = jnp.diag(normal.curvature)
    scale = jnp.sqrt(jnp.where(diagonal > 0, diagonal, 1))
    w, V = jnp.linalg.eigh(normal.curvature / (scale[:, None] * scale[None, :]))
    safe = jnp.maximum(w, eps * w[-1])
    D = slope / scale
    variance = 2 * normal.cost / max(count - n, 1)
    return variance * (D[:, None] * ((V / safe) @ V.T) * D[None, :]), w[-1] / safe[0]


def _check(model, recordings, dt, iterations, scale) -> None:
    first = recordings.controls
    many = first.tau.ndim == 3
    check_problem(model, jax.tree.map(lambda x: x[0], first) if many else first, dt, iterations)
    if not bool(jnp.all(jnp.asarray(scale) > 0)):
        raise ValueError("scale must be positive: the expected error of each measured entry")


def identify(
    model: Model,
    apply: Callable[[Model, Any], Model],
    parameters: Any,
    recordings: Recording,
    *,
    dt: float,
    segment: int | None = None,
    measure: Measure | None = None,
    scale: Any = 1.0,
    positive: Any = False,
    optimizer: optax.GradientTransformation | None = None,
    iterations: int = 50,
    tolerance: float | None = None,
    config: Config = Config(),
    report: Report | None = None,
) -> Identification:
    """Minimise ½ |r(p)|² with r the errors of predicted motion over all segments, steps and measured entries.

    Args:
        apply: (model, p) -> the model that parameters p mean, e.g. with `replace` on its masses, friction, gains.
        parameters: where the search starts; any tree of numbers.
        recordings: one recording, or several of equal length stacked.
        dt: time step [s].
        segment: steps predicted from a measured state before the next one is taken; None: the whole recording from its start.
        measure: state -> (m,) what is compared; None: `difference` of the states, (12 nb,) [m, rad, m/s, rad/s].
        scale: expected error of each entry, a number or (m,); residuals are divided by it.
        positive: parameters fitted by their logarithm, True, False, or a tree of them like `parameters`.
        optimizer: an optax optimiser instead of Levenberg-Marquardt.
        tolerance: Levenberg-Marquardt: relative decrease or step (None: ε^⅔); optax: largest entry of the gradient (None: 1e-8).
        report: called with (iteration, cost).

    Raises:
        ValueError: recordings, segments or scale that do not fit, parameters that are not positive, no positive dt.
    """
    _check(model, recordings, dt, iterations, scale)
    segments = cut(recordings, segment, measure)
    theta, coordinates = coordinates_of(parameters, positive, model.dtype)
    data = (model, coordinates, segments, jnp.asarray(dt, model.dtype), jnp.asarray(scale, model.dtype))
    residual = _residual(apply, measure, config)
    if optimizer is None:
        found = levenberg_marquardt(residual, theta, data, iterations=iterations, tolerance=tolerance, report=report)
        normal = found.normal
    else:
        small = 1e-8 if tolerance is None else tolerance
        gradient = _gradient(residual)
        found = descend(gradient, theta, data, optimizer=optimizer, iterations=iterations, tolerance=small, report=report)
        normal = found.aux
    return _summary(found, normal, coordinates, jax.eval_shape(residual, theta, data)[0].size)


def _summary(found, normal: Normal, coordinates: Coordinates, count: int) -> Identification:
    covariance, condition = _uncertainty(normal, count, coordinates.slope(found.x))
    errors = coordinates.unravel(jnp.sqrt(jnp.maximum(jnp.diag(covariance), 0)))
    rms = jnp.sqrt(2 * normal.cost / count)
    return Identification(coordinates.tree(found.x), errors, covariance, condition, rms, found.history, found.iterations, found.converged)
