"""DoF axes of a joint as a rotation: the columns of A are the joint's local x, y, z. One-axis joints act along their local x."""

import numpy as np

from .validate import direction, numbers, refuse

# How many axes a kind takes; kinds with several default to x, y, z.
AXIS_COUNT = {
    "fixed": 0,
    "revolute": 1,
    "prismatic": 1,
    "cylindrical": 1,
    "universal": 2,
    "gimbal": 3,
    "gimbal_left_handed": 3,
    "spherical": 3,
    "cartesian": 3,
    "free": 3,
}
AXIS_TOLERANCE = 1e-6  # of unit length and of right angles, as in Newton


def resolve_axes(owner: str, kind: str, axis, axes) -> tuple[str, np.ndarray, float]:
    """Kind, axes matrix A (3, 3) and handedness. A gimbal with left-handed axes becomes "gimbal_left_handed".

    Raises:
        ValueError: a missing or surplus axis, length 0, or several axes that are not unit and orthogonal (right-handed, but for gimbals).
    """
    given = _collect(owner, kind, axis, axes)
    if kind == "fixed":
        return kind, np.eye(3), 1.0
    if AXIS_COUNT[kind] == 1:
        return kind, _single(owner, kind, given), 1.0
    rows = _several(owner, kind, given)
    if kind == "universal":
        return kind, np.column_stack([rows[0], rows[1], np.cross(rows[0], rows[1])]), 1.0
    left = np.linalg.det(rows) < 0
    if kind.startswith("gimbal"):
        if kind == "gimbal_left_handed" and not left:
            refuse(owner, "axes are right-handed; use kind 'gimbal', or turn the third axis around")
        A = np.column_stack([rows[0], rows[1], np.cross(rows[0], rows[1])])
        return ("gimbal_left_handed" if left else "gimbal"), A, -1.0 if left else 1.0
    if left:
        refuse(owner, f"the axes of a {kind} joint are left-handed; turn one of them around")
    return kind, rows.T, 1.0


def _collect(owner, kind, axis, axes):
    """The given axes as a list, or None."""
    if axis is not None and axes is not None:
        refuse(owner, "has both axis and axes; give axis=(x, y, z) for one, axes=(...) for several")
    if kind == "fixed":
        if axis is not None or axes is not None:
            refuse(owner, "a fixed joint has no axis; leave it out")
        return None
    if axis is not None and AXIS_COUNT[kind] > 1:
        refuse(owner, f"a {kind} joint takes {AXIS_COUNT[kind]} axes; give axes=(...)")
    if axis is not None:
        return [axis]
    return None if axes is None else list(axes)


def _single(owner, kind, given):
    if not given:
        refuse(owner, f"a {kind} joint needs an axis; give a direction, e.g. axis=(1, 0, 0)")
    units = [direction(owner, "axis", a) for a in given]
    # a cylindrical joint may name its sliding and its turning axis, but they are one
    if len(units) > (2 if kind == "cylindrical" else 1):
        refuse(owner, f"a {kind} joint has one axis; {len(units)} were given")
    if len(units) == 2 and np.abs(units[0] - units[1]).max() > AXIS_TOLERANCE:
        refuse(owner, "a cylindrical joint slides along and turns about the same axis; give one, or use two joints")
    x = units[0]
    # any unit vector away from x completes the basis; Newton takes this one
    away = np.eye(3)[(int(np.argmax(np.abs(x))) + 2) % 3]
    y = np.cross(away, x)
    y /= np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


def _several(owner, kind, given):
    """Rows of unit, mutually orthogonal axes."""
    count = AXIS_COUNT[kind]
    if given is None:
        given = np.diag([1.0, 1.0, -1.0 if kind == "gimbal_left_handed" else 1.0])[:count]
    if len(given) != count:
        refuse(owner, f"a {kind} joint takes {count} axes; {len(given)} were given")
    rows = []
    for a in given:
        direction(owner, "axis", a)  # refuses zero length by that name
        rows.append(direction(owner, "axis", a) if isinstance(a, str) else numbers(owner, "axis", a, (3,)))
    rows = np.array(rows)
    if np.abs(rows @ rows.T - np.eye(count)).max() > AXIS_TOLERANCE:
        refuse(owner, f"the axes of a {kind} joint must have unit length and be orthogonal, e.g. axes={('x', 'y', 'z')[:count]}")
    return rows
