"""Capacities of one world: everything that fixes array shapes and code paths, and nothing else.

A `Layout` is part of the compilation key. Two worlds with equal layouts share one program, whatever their wiring and numbers.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Rows:
    """Constraint rows by family, in the order in which they stand: dynamic | kinematic | friction | effort | limit | contact."""

    njd: int = 0  # dynamic joint rows: armature, damping, unbounded drives
    njk: int = 0  # kinematic joint rows
    nf: int = 0  # joint friction rows
    ne: int = 0  # effort-limited drives
    nl: int = 0  # joint limits, one per limited DoF
    nc: int = 0  # contact slots, three rows (t, o, n) each

    @property
    def nj(self) -> int:
        """Rows that belong to joints (all but contacts)."""
        return self.njd + self.njk + self.nf + self.ne + self.nl

    @property
    def nd(self) -> int:
        """All rows."""
        return self.nj + 3 * self.nc

    @property
    def dynamic(self) -> slice:
        return slice(0, self.njd)

    @property
    def kinematic(self) -> slice:
        return slice(self.njd, self.njd + self.njk)

    @property
    def bilateral(self) -> slice:
        return slice(0, self.njd + self.njk)

    @property
    def friction(self) -> slice:
        return slice(self.bilateral.stop, self.bilateral.stop + self.nf)

    @property
    def effort(self) -> slice:
        return slice(self.friction.stop, self.friction.stop + self.ne)

    @property
    def bounded(self) -> slice:
        return slice(self.bilateral.stop, self.effort.stop)

    @property
    def limit(self) -> slice:
        return slice(self.bounded.stop, self.nj)

    @property
    def contact(self) -> slice:
        return slice(self.nj, self.nd)


@dataclasses.dataclass(frozen=True)
class Layout:
    """Counts of one world."""

    nb: int  # bodies
    nj: int  # joints
    ng: int  # geoms (collision shapes)
    nq: int  # joint coordinates
    nv: int  # joint DoFs
    rows: Rows
    fill: int = 0  # most later joints that the elimination of one joint touches
    joint_kinds: tuple[str, ...] = ()  # kinds that occur, sorted; code of other kinds is not traced
    pairs: tuple[tuple[str, int], ...] = ()  # (collider, number of geom pairs), e.g. ("plane_box", 4)
