"""Checks of what the user hands in. Every refusal names the owner (body, joint or shape), the value and the remedy."""

from collections.abc import Iterable
from typing import NoReturn

import numpy as np

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def refuse(owner: str, problem: str) -> NoReturn:
    """ValueError "owner: problem"."""
    raise ValueError(f"{owner}: {problem}")


def numbers(owner: str, name: str, value, shape: tuple[int, ...], *, infinite: bool = False) -> np.ndarray:
    """`value` as a float array of the given shape; refuses other types (TypeError), other shapes, NaN, and Inf unless `infinite`."""
    wanted = _wording(shape)
    try:
        raw = np.asarray(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{owner}: {name} is {value!r}; it must be {wanted} known now, not traced or ragged") from error
    if raw.dtype.kind not in "iuf":
        raise TypeError(f"{owner}: {name} is {value!r}; it must be {wanted}")
    if raw.shape != shape:
        refuse(owner, f"{name} has shape {raw.shape}; it must be {wanted}")
    bad = np.isnan(raw) if infinite else ~np.isfinite(raw)
    if bad.any():
        refuse(owner, f"{name} is {value!r}; it must be {'without NaN' if infinite else 'finite'}")
    return raw.astype(float)


def _wording(shape):
    if shape == ():
        return "a number"
    return f"{shape[0]} numbers" if len(shape) == 1 else f"an array of shape {shape}"


def not_negative(owner: str, name: str, value, shape: tuple[int, ...] = (), *, infinite: bool = False) -> np.ndarray:
    """Like `numbers`, and >= 0."""
    array = numbers(owner, name, value, shape, infinite=infinite)
    if (array < 0).any():
        refuse(owner, f"{name} is {value!r}; it must be >= 0")
    return array


def positive(owner: str, name: str, value, shape: tuple[int, ...] = ()) -> np.ndarray:
    """Like `numbers`, and > 0."""
    array = numbers(owner, name, value, shape)
    if (array <= 0).any():
        refuse(owner, f"{name} is {value!r}; it must be > 0")
    return array


def direction(owner: str, name: str, value) -> np.ndarray:
    """Unit vector along `value`: three numbers, or one of "x", "y", "z"."""
    if isinstance(value, str):
        if value not in AXES:
            refuse(owner, f"{name} is {value!r}; give 'x', 'y', 'z' or three numbers")
        return np.array(AXES[value])
    vector = numbers(owner, name, value, (3,))
    length = np.linalg.norm(vector)
    if length == 0:
        refuse(owner, f"{name} has length 0; give a direction, e.g. (1, 0, 0)")
    return vector / length


def rotation(owner: str, name: str, value) -> np.ndarray:
    """Unit quaternion (x, y, z, w) along `value`."""
    quaternion = numbers(owner, name, value, (4,))
    length = np.linalg.norm(quaternion)
    if length == 0:
        refuse(owner, f"{name} is a zero quaternion; the identity is (0, 0, 0, 1), in the order x, y, z, w")
    return quaternion / length


def pose(owner: str, label: str, position, quaternion) -> np.ndarray:
    """Pose (7,) from a position and a quaternion; `label` is put before "position" and "rotation" in messages."""
    where = numbers(owner, f"{label}position", position, (3,))
    return np.concatenate([where, rotation(owner, f"{label}rotation", quaternion)])


def flag(owner: str, name: str, value) -> bool:
    """True or False, nothing that merely looks like it."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{owner}: {name} is {value!r}; it must be True or False")
    return bool(value)


def new_name(family: str, name, taken: Iterable[str]) -> str:
    """`name`, or "family_n" if None. TypeError unless a string, ValueError if empty or taken."""
    taken = list(taken)
    if name is None:
        count = len(taken)
        while f"{family}_{count}" in taken:
            count += 1
        return f"{family}_{count}"
    if not isinstance(name, str):
        raise TypeError(f"{family} name is {name!r}; it must be a string")
    if not name:
        raise ValueError(f"{family} name is empty; leave it out to get an automatic name")
    if name in taken:
        refuse(f"{family} {name!r}", "the name is taken; names are unique within bodies, joints and shapes")
    return name


def known_options(owner: str, given: dict, known: Iterable[str]) -> None:
    """TypeError on a keyword that does not exist."""
    known = list(known)
    for name in given:
        if name not in known:
            raise TypeError(f"{owner}: unknown option {name!r}; there are {', '.join(sorted(known))}")
