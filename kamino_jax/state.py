"""What moves: State (all that the next step needs), Control, Contacts, and Info (what it does not need)."""

from typing import Any

from jax import Array

from .pytree import pytree
from .status import Status


@pytree
class Reactions:
    """Last reactions, as a hint to the next solve; never physics."""

    force: Array  # (nd,) [N, N m] constraint impulse / dt, contact rows in their frames
    velocity: Array  # (nd,) [m/s, rad/s] constraint velocity
    key: Array  # (nc,) geom pair of each contact, -1 if the slot was empty
    point: Array  # (nc, 3) [m] contact point on body B
    frame: Array  # (nc, 3, 3) rows t, o, n


@pytree
class State:
    """Poses and twists of the centres of mass in the world frame."""

    q: Array  # (nb, 7) [m, -] position, quaternion x y z w
    u: Array  # (nb, 6) [m/s, rad/s] linear, angular
    joint_q: Array  # (nq,) joint coordinates; remembers the turns of an angle
    reactions: Reactions


@pytree
class Control:
    """Inputs of one step."""

    tau: Array  # (nv,) [N, N m] joint efforts; on free joints the world wrench about the follower's centre of mass
    q_ref: Array  # (nq,) drive position targets
    u_ref: Array  # (nv,) drive velocity targets
    w_ext: Array  # (nb, 6) [N, N m] external wrenches about the centres of mass, world axes


@pytree
class Contacts:
    """Contact slots. Body B is always a body, body A may be the world (-1); the normal points from A to B."""

    active: Array  # (nc,) bool
    distance: Array  # (nc,) [m] surface distance minus margins, negative when overlapping
    normal: Array  # (nc, 3) unit, also on empty slots
    point_a: Array  # (nc, 3) [m] surface point of A, world frame
    point_b: Array  # (nc, 3) [m]
    body_a: Array  # (nc,) int32
    body_b: Array  # (nc,) int32
    key: Array  # (nc,) int32 identifies the geom pair
    mu: Array  # (nc,)
    restitution: Array  # (nc,)
    stiffness: Array  # (nc,) [N/m] 0: hard
    damping: Array  # (nc,) [N s/m]
    found: Array  # () int32 contacts found, also those that did not fit


@pytree
class Info:
    """What a step found out."""

    status: Status
    contacts: Contacts
    lam: Array  # (nd,) [N s, N m s] constraint impulses
    v_plus: Array  # (nd,) [m/s, rad/s] constraint velocities D λ + v_f, biases included
    metrics: Any = None  # StepMetrics, if Config.compute_solution_metrics
    history: Any = None  # per-iteration residuals, if Config.padmm.history
    gradient: Any = None  # GradientHealth, if Config.gradient.health
