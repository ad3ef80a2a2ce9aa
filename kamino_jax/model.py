"""What a world is made of: int32 wiring (`Topology`) apart from float parameters (`Bodies`, `Joints`, `Geoms`).

Any float leaf may be differentiated, randomised or edited (`replace`) without recompiling. Body -1 is the world.
"""

import dataclasses

from jax import Array

from .layout import Layout
from .pytree import pytree, static

# What a joint DoF's drive follows. Newton's JointTargetMode, as data.
DRIVE_NONE, DRIVE_POSITION, DRIVE_VELOCITY, DRIVE_POSITION_VELOCITY, DRIVE_EFFORT = range(5)
# Where a DoF's command acts: on the bodies, in its dynamic row, in its effort row.
PATH_WRENCH, PATH_DYNAMIC, PATH_EFFORT = range(3)


@dataclasses.dataclass(frozen=True, eq=False)
class Names:
    """Names of the entities, for the host. Equal to any other `Names`: a name never causes a compilation."""

    bodies: tuple[str, ...] = ()
    joints: tuple[str, ...] = ()
    geoms: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()  # kind of each geom: "box", "sphere", ...

    def __eq__(self, other):
        return isinstance(other, Names)

    def __hash__(self):
        return 0

    def index(self, family: str, name: str) -> int:
        """Index of a body, joint or geom; `family` is "bodies", "joints" or "geoms". KeyError with the known names otherwise."""
        known = getattr(self, family)
        if name not in known:
            raise KeyError(f"no {family[:-1]} named {name!r}; there are {', '.join(known) or 'none'}")
        return known.index(name)


@pytree
class Topology:
    """Wiring of one world, int32 and bool. Padded entries are switched off by the masks."""

    moves: Array  # (nb,) bool: forces move the body; not kinematic, not massless
    turns: Array  # (nb,) bool: torques turn it; not kinematic, no singular inertia
    base: Array  # (nj,) body that carries the joint frame
    follower: Array  # (nj,) body that moves in it
    kind: Array  # (nj,) joint type code
    row: Array  # (rows.nj,) 6 joint + axis: the joint-space row behind each joint row; axes Tx Ty Tz Rx Ry Rz
    row_dof: Array  # (rows.nj,) DoF of each dynamic, friction, effort and limit row; 0 on kinematic rows
    row_on: Array  # (rows.nj,) bool, False on padding
    dof: Array  # (nv,) 6 joint + axis of each DoF
    coordinate: Array  # (nq,) 10 joint + entry of (Tx Ty Tz, Rx Ry Rz, quaternion x y z w) of each coordinate
    entry: Array  # (nj, 10) the inverse of `coordinate`: coordinate behind each entry, nq where there is none
    mode: Array  # (nv,) DRIVE_* of each DoF
    path: Array  # (nv,) PATH_* of each DoF
    mechanism: Array  # (nb,) the same number for bodies that joints connect, the world aside
    position: Array  # (nj,) place of each joint in the order of elimination
    column: Array  # (nj, fill), see `Elimination`
    slot: Array  # (nj, fill, fill)
    geom_body: Array  # (ng,)
    pair: Array  # (pairs, 2) geoms of each candidate pair, in collider order
    pair_flip: Array  # (pairs,) bool: contact body A is the collider's second geom (static geoms always stand on side A)
    pair_on: Array  # (pairs,) bool, False on padding


@pytree
class Bodies:
    """Mass properties; `Topology.moves` and `turns` say which bodies they act on."""

    mass: Array  # (nb,) [kg]
    inertia: Array  # (nb, 3, 3) [kg m²] about the centre of mass, body axes
    com: Array  # (nb, 3) [m] centre of mass in the body frame


@pytree
class Joints:
    """Joint frames and per-DoF parameters [N, N m, m, rad, s]."""

    X_B: Array  # (nj, 7) joint frame in the base body's frame, DoF axes included
    X_F: Array  # (nj, 7) joint frame in the follower body's frame
    handedness: Array  # (nj,) -1 for left-handed gimbals, else 1
    q_min: Array  # (nv,) lower limit, -inf if none
    q_max: Array  # (nv,) upper limit, inf if none
    limit_stiffness: Array  # (nv,) [N/m, N m/rad] used with limit_compliance
    limit_damping: Array  # (nv,)
    armature: Array  # (nv,) [kg, kg m²]
    damping: Array  # (nv,) [N s/m, N m s/rad]
    friction: Array  # (nv,) [N, N m] Coulomb friction level
    kp: Array  # (nv,) drive stiffness
    kd: Array  # (nv,) drive damping
    effort_max: Array  # (nv,) [N, N m] inf if unbounded


@pytree
class Geoms:
    """Collision shapes."""

    X: Array  # (ng, 7) pose in the body frame (world frame for static geoms)
    size: Array  # (ng, 3) [m] sphere r | capsule, cylinder r, half length | box half extents | ellipsoid radii | plane unused
    margin: Array  # (ng,) [m] thickness: contacts act at this distance
    gap: Array  # (ng,) [m] detection distance beyond the margin
    mu: Array  # (ng,) friction coefficient
    restitution: Array  # (ng,)
    stiffness: Array  # (ng,) [N/m] used with contact_compliance
    damping: Array  # (ng,) [N s/m]


@pytree
class Start:
    """The configuration that the model was built in, and the default drive targets."""

    q: Array  # (nb, 7) CoM poses
    u: Array  # (nb, 6) CoM twists
    joint_q: Array  # (nq,) joint coordinates: reference for angles beyond a turn
    q_ref: Array  # (nq,) drive targets


@pytree
class Model:
    """One world. `jax.vmap` over a stacked Model (`stack`) gives many."""

    layout: Layout = static()
    names: Names = static()
    topology: Topology
    bodies: Bodies
    joints: Joints
    geoms: Geoms
    gravity: Array  # (3,) [m/s²]
    start: Start

    @property
    def dtype(self):
        """Precision of the model and of everything computed from it."""
        return self.bodies.mass.dtype
