"""Settings are checked when they are made: each check names the owner, the field and the rule."""

import math


def refuse(owner, name, value, rule):
    """ValueError that names the owner, the field, the value and the rule."""
    raise ValueError(f"{type(owner).__name__}.{name} is {value!r}; it must be {rule}")


def number(owner, names, rule, low=-math.inf, high=math.inf, *, open_low=False, open_high=False, finite=True):
    """Refuses fields that are no numbers (TypeError) or out of their range (ValueError)."""
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise TypeError(f"{type(owner).__name__}.{name} is {value!r}; it must be a number")
        above = value > low if open_low else value >= low
        below = value < high if open_high else value <= high
        if not (above and below) or (finite and not math.isfinite(value)):
            refuse(owner, name, value, rule)


def count(owner, names, low=1):
    """Refuses fields that are no integers from `low` on."""
    for name in names:
        value = getattr(owner, name)
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            refuse(owner, name, value, f"an integer >= {low}")


def choice(owner, name, known):
    """Refuses a field that is not one of the known values."""
    value = getattr(owner, name)
    if value not in known:
        refuse(owner, name, value, f"one of {', '.join(map(repr, known))}")


def flag(owner, names):
    """Refuses fields that are neither True nor False."""
    for name in names:
        if not isinstance(getattr(owner, name), bool):
            raise TypeError(f"{type(owner).__name__}.{name} is {getattr(owner, name)!r}; it must be True or False")
