"""Geometry of one joint: relative pose, residual, coordinates, rates and the Jacobian of its six joint-space axes.

With body pose (r, R), CoM-relative anchors b (base) and f (follower), joint frames Q_B, Q_F in the world and p = r_B + b:

    d = r_F + f - p,  t = Q_Bᵀ d,  ρ = quaternion of Q_Bᵀ Q_F
    v = Q_Bᵀ (v_F - v_B + ω_F × f - ω_B × (b + d)),   w = Q_Bᵀ (ω_F - ω_B)

An axis is a world direction n: rows [n, (p - r) × n] (linear) and [0, n] (angular) on the follower and their negatives on the base. Both
blocks use the base-side anchor p. Rows, rates and coordinates of every type are picked from these six axes (`kinds.py`).
Source: Newton `SolverKamino` (kinematics of joints, Jacobians), restated.
"""

import jax
import jax.numpy as jnp
from jax import Array

from .. import spatial
from ..model import Bodies, Joints, Model, Topology
from ..pytree import once, pytree
from .kinds import KINDS

TWO_PI = 2 * jnp.pi


@pytree
class Frames:
    """Joint frames of one joint in the world."""

    t: Array  # (3,) [m] anchor separation in the base joint frame
    rho: Array  # (4,) relative rotation
    R: Array  # (3, 3) its matrix
    Q: Array  # (3, 3) base joint frame
    p: Array  # (3,) [m] joint point
    r_B: Array  # (3,) [m] base CoM
    r_F: Array  # (3,) [m] follower CoM


@pytree
class Kinematics:
    """All joints at one pose and twist; `values`, `rates` and `residual` are joint-space, axis by axis."""

    residual: Array  # (nj, 6) [m, rad] position error
    values: Array  # (nj, 6) [m, rad] DoF values: translation, angles (rotation vector of ball and free joints)
    rho: Array  # (nj, 4) relative quaternion, sign nearest the reference
    rates: Array  # (nj, 6) [m/s, rad/s]
    J: Array  # (nj, 6, 2, 6) axis rows on (base, follower)


def frames(X_B: Array, X_F: Array, com_B: Array, com_F: Array, q_B: Array, q_F: Array) -> Frames:
    """Joint frames of one joint from its two CoM poses."""
    p = q_B[:3] + spatial.quat_rotate(q_B[3:], X_B[:3] - com_B)
    anchor = q_F[:3] + spatial.quat_rotate(q_F[3:], X_F[:3] - com_F)
    base, follower = once((spatial.quat_multiply(q_B[3:], X_B[3:]), spatial.quat_multiply(q_F[3:], X_F[3:])))
    Q, rho = once((spatial.quat_matrix(base), spatial.quat_multiply(spatial.quat_conjugate(base), follower)))
    t = jnp.sum((anchor - p)[:, None] * Q, axis=0)
    return once(Frames(t=t, rho=rho, R=spatial.quat_matrix(rho), Q=Q, p=p, r_B=q_B[:3], r_F=q_F[:3]))


def _pick(layout_kinds, kind, default, table):
    """The table's entry of this joint's kind; entries of kinds that do not occur are never traced."""
    out = default
    for names, value in table:
        present = [n for n in names if n in layout_kinds]
        if present and len(present) == len(layout_kinds):
            return value()
        if present:
            match = jnp.any(jnp.asarray([KINDS[n].code for n in present], jnp.int32) == kind)
            out = jnp.where(match, value(), out)
    return out


def angular_residual(layout_kinds, kind: Array, x: Frames) -> Array:
    """Angular part of the position residual, (3,) [rad]."""
    zero = jnp.zeros_like(x.t)
    return _pick(
        layout_kinds,
        kind,
        zero,
        [
            (("revolute", "cylindrical"), lambda: jnp.stack([zero[0], -x.R[2, 0], x.R[1, 0]])),  # e_x × n_x
            (("prismatic", "cartesian", "fixed"), lambda: spatial.quat_log(x.rho)),
            (("universal",), lambda: jnp.stack([zero[0], zero[0], -x.R[0, 1]])),
        ],
    )


def _universal_angles(R: Array) -> Array:
    n_x, n_y = R[:, 0], R[:, 1]
    sine = -n_x[2] * n_y[1] + n_x[1] * n_y[2]  # (e_x × n_x) · n_y
    return jnp.stack([spatial.atan2(n_y[2], n_y[1]), spatial.atan2(sine, n_x[0]), jnp.zeros_like(sine)])


def _gimbal_angles(R: Array, handedness: Array) -> Array:
    """Intrinsic x-y-z angles of R = Rx(a) Ry(b) Rz(± c)."""
    first = spatial.atan2(-R[1, 2], R[2, 2])
    second = spatial.atan2(R[0, 2], spatial.norm(R[1:, 2]))
    return jnp.stack([first, second, handedness * spatial.atan2(-R[0, 1], R[0, 0])])


def _hinge_angle(rho: Array) -> Array:
    rho = jnp.where(rho[3] < 0, -rho, rho)
    return 2 * spatial.atan2(rho[0], rho[3])


def raw_angles(layout_kinds, kind: Array, x: Frames, handedness: Array) -> Array:
    """Angles before unwrapping, (3,) [rad]."""
    zero = jnp.zeros_like(x.t)
    return _pick(
        layout_kinds,
        kind,
        zero,
        [
            (("revolute",), lambda: zero.at[0].set(_hinge_angle(x.rho))),
            (("cylindrical",), lambda: zero.at[0].set(spatial.quat_log(x.rho)[0])),
            (("universal",), lambda: _universal_angles(x.R)),
            (("gimbal", "gimbal_left_handed"), lambda: _gimbal_angles(x.R, handedness)),
            (("spherical", "free"), lambda: spatial.quat_log(x.rho)),
        ],
    )


def unwrap(angle: Array, reference: Array) -> Array:
    """The angle plus the whole turns that bring it nearest the reference."""
    return angle + TWO_PI * jax.lax.stop_gradient(jnp.round((reference - angle) / TWO_PI))


def _unwrap_gimbal(angles: Array, reference: Array, handedness: Array) -> Array:
    """Of the two triples of the same rotation, the one nearest the reference."""
    other = jnp.stack([angles[0] + jnp.pi, jnp.pi - angles[1], angles[2] + handedness * jnp.pi])
    first, second = unwrap(angles, reference), unwrap(other, reference)
    distance = lambda c: jnp.sum((c - reference) ** 2)
    return jnp.where(distance(second) < distance(first), second, first)


def angles(layout_kinds, kind: Array, x: Frames, handedness: Array, reference: Array, correction: str) -> Array:
    """Joint angles, (3,) [rad], unwrapped from the reference angles: `correction` is "twopi", "continuous" or "none"."""
    raw = raw_angles(layout_kinds, kind, x, handedness)
    near = unwrap(raw, reference)
    hinged = {"twopi": lambda: jnp.fmod(near, TWO_PI), "continuous": lambda: near, "none": lambda: raw}[correction]
    return _pick(
        layout_kinds,
        kind,
        raw,
        [
            (("revolute", "cylindrical", "universal"), hinged),
            (("gimbal", "gimbal_left_handed"), lambda: _unwrap_gimbal(raw, reference, handedness)),
        ],
    )


def _universal_basis(R: Array) -> Array:
    """Columns e_x, a, e_x × a with a the part of n_y that is normal to e_x."""
    a = spatial.normalize(R[:, 1] * jnp.asarray([0, 1, 1], R.dtype))
    zero, one = jnp.zeros_like(a[0]), jnp.ones_like(a[0])
    return jnp.stack([jnp.stack([one, zero, zero]), jnp.stack([zero, a[1], -a[2]]), jnp.stack([zero, a[2], a[1]])])


def _gimbal_basis(c: Array, handedness: Array) -> Array:
    """Reciprocal basis of the Euler axes A0 = e_x, A1 = Rx(c0) e_y, A2 = ± Rx(c0) Ry(c1) e_z; singular at c1 = ±90°."""
    s0, c0, s1, c1 = jnp.sin(c[0]), jnp.cos(c[0]), jnp.sin(c[1]), jnp.cos(c[1])
    zero, one = jnp.zeros_like(s0), jnp.ones_like(s0)
    A0, A1 = jnp.stack([one, zero, zero]), jnp.stack([zero, c0, s0])
    A2 = handedness * jnp.stack([s1, -s0 * c1, c0 * c1])
    volume = jnp.sum(A0 * spatial.cross(A1, A2))
    volume = jnp.where(volume == 0, jnp.finfo(c.dtype).tiny, volume)
    return jnp.stack([spatial.cross(A1, A2), spatial.cross(A2, A0), spatial.cross(A0, A1)], axis=1) / volume


def angular_basis(layout_kinds, kind: Array, x: Frames, c: Array, handedness: Array) -> Array:
    """Angular directions of the axes in the base joint frame, columns of (3, 3)."""
    return _pick(
        layout_kinds,
        kind,
        jnp.eye(3, dtype=c.dtype),
        [
            (("universal",), lambda: _universal_basis(x.R)),
            (("gimbal", "gimbal_left_handed"), lambda: _gimbal_basis(c, handedness)),
        ],
    )


def axis_rows(Q: Array, T: Array, arm_B: Array, arm_F: Array) -> Array:
    """Jacobian of the six axes on (base, follower), (6, 2, 6): linear axes are columns of Q, angular ones of Q T; arm = p - r."""
    n, a = Q.T, (Q @ T).T
    linear = lambda arm: jnp.concatenate([n, spatial.cross(arm[None], n)], axis=1)
    angular = jnp.concatenate([jnp.zeros_like(a), a], axis=1)
    return jnp.concatenate([jnp.stack([-linear(arm_B), linear(arm_F)], 1), jnp.stack([-angular, angular], 1)])


def jacobian(layout_kinds, kind: Array, x: Frames, T: Array) -> Array:
    """Axis rows of one joint, (6, 2, 6). A free joint has world axes about the follower's centre of mass."""
    Q, p = x.Q, x.p
    if "free" in layout_kinds:
        free = kind == KINDS["free"].code
        Q, p = jnp.where(free, jnp.eye(3, dtype=Q.dtype), Q), jnp.where(free, x.r_F, p)
    return axis_rows(Q, T, p - x.r_B, p - x.r_F)


def relative_rates(x: Frames, T: Array, u_B: Array, u_F: Array) -> Array:
    """Rates of the six axes, (6,) [m/s, rad/s]: d t/dt, and the relative angular velocity on the reciprocal axes."""
    point = x.p + x.Q @ x.t  # the follower's anchor
    v = u_F[:3] - u_B[:3] + spatial.cross(u_F[3:], point - x.r_F) - spatial.cross(u_B[3:], point - x.r_B)
    return jnp.concatenate([v @ x.Q, (u_F[3:] - u_B[3:]) @ x.Q @ T])


def nearest_sign(rho: Array, reference: Array) -> Array:
    """ρ or -ρ, whichever is nearer the reference."""
    return jnp.where(jnp.sum(rho * reference) < 0, -rho, rho)


def with_world(a: Array, world: Array) -> Array:
    """Appends the world's row, so that index -1 reads it."""
    return jnp.concatenate([a, jnp.broadcast_to(world, (1, *a.shape[1:])).astype(a.dtype)])


def all_frames(topology: Topology, bodies: Bodies, joints: Joints, q: Array) -> Frames:
    """Frames of all joints."""
    q, com = with_world(q, jnp.asarray([0, 0, 0, 0, 0, 0, 1])), with_world(bodies.com, jnp.zeros(3))
    B, F = topology.base, topology.follower
    return jax.vmap(frames)(joints.X_B, joints.X_F, com[B], com[F], q[B], q[F])


def entries(topology: Topology, joint_q: Array) -> Array:
    """Coordinates by joint: (nj, 10), zero where a joint has no such entry."""
    return jnp.concatenate([joint_q, jnp.zeros(1, joint_q.dtype)])[topology.entry]


def joint_kinematics(model: Model, q: Array, u: Array, reference: Array, correction: str) -> Kinematics:
    """Residuals, coordinates, rates and Jacobians of all joints.

    Args:
        model: one world.
        q, u: CoM poses (nb, 7) and twists (nb, 6).
        reference: joint coordinates (nq,) near which angles and quaternion signs are chosen.
        correction: "twopi", "continuous" or "none".
    """
    top, present = model.topology, model.layout.joint_kinds
    x = all_frames(top, model.bodies, model.joints, q)
    u = with_world(u, jnp.zeros(6))

    def one(kind, x, handedness, ref, u_B, u_F):
        c = once(angles(present, kind, x, handedness, ref[3:6], correction))
        T = once(angular_basis(present, kind, x, c, handedness))
        residual = jnp.concatenate([x.t, angular_residual(present, kind, x)])
        rho = nearest_sign(x.rho, ref[6:])
        rates, J = relative_rates(x, T, u_B, u_F), jacobian(present, kind, x, T)
        return once(Kinematics(residual, jnp.concatenate([x.t, c]), rho, rates, J))

    near = entries(top, reference)
    return jax.vmap(one)(top.kind, x, model.joints.handedness, near, u[top.base], u[top.follower])


def coordinates(topology: Topology, kinematics: Kinematics) -> Array:
    """Joint coordinates (nq,) [m, rad, -] in the order of the model's coordinates."""
    return jnp.concatenate([kinematics.values, kinematics.rho], axis=1).reshape(-1)[topology.coordinate]


def dof_rates(topology: Topology, kinematics: Kinematics) -> Array:
    """Joint rates (nv,) [m/s, rad/s]."""
    return kinematics.rates.reshape(-1)[topology.dof]
