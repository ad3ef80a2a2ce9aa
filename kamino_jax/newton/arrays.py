"""A Newton model as plain numpy arrays under Newton's names."""

import dataclasses
from types import SimpleNamespace

import numpy as np

REQUIRED = None


class Arrays(SimpleNamespace):
    """The arrays of `FIELDS`, `gravity` (n, 3), `shape_contact_pairs` (n, 2), the labels, and `world_count`."""


@dataclasses.dataclass(frozen=True)
class Field:
    """One array: what its first axis counts, the shape of an entry, and the value if the model lacks it."""

    family: str
    entry: tuple[int, ...] = ()
    default: float | None = 0.0
    dtype: type = float


def _integers(family, default=REQUIRED, entry=()):
    return Field(family, entry, default, np.int64)


FIELDS = {
    "body_world": _integers("body", -1),
    "body_q": Field("body", (7,), REQUIRED),
    "body_qd": Field("body", (6,)),
    "body_com": Field("body", (3,)),
    "body_mass": Field("body", (), REQUIRED),
    "body_inv_mass": Field("body", (), REQUIRED),
    "body_inertia": Field("body", (3, 3), REQUIRED),
    "body_inv_inertia": Field("body", (3, 3), REQUIRED),
    "body_flags": _integers("body", 1),
    "joint_world": _integers("joint", -1),
    "joint_type": _integers("joint"),
    "joint_parent": _integers("joint"),
    "joint_child": _integers("joint"),
    "joint_dof_dim": _integers("joint", REQUIRED, (2,)),
    "joint_enabled": _integers("joint", 1),
    "joint_X_p": Field("joint", (7,), REQUIRED),
    "joint_X_c": Field("joint", (7,), REQUIRED),
    "joint_q": Field("coordinate"),
    "joint_target_q": Field("coordinate"),
    "joint_axis": Field("dof", (3,), REQUIRED),
    "joint_limit_lower": Field("dof", (), -1e10),
    "joint_limit_upper": Field("dof", (), 1e10),
    "joint_limit_ke": Field("dof"),
    "joint_limit_kd": Field("dof"),
    "joint_target_mode": _integers("dof", 0),
    "joint_target_ke": Field("dof"),
    "joint_target_kd": Field("dof"),
    "joint_effort_limit": Field("dof", (), np.inf),
    "joint_armature": Field("dof"),
    "joint_damping": Field("dof"),
    "joint_friction": Field("dof"),
    "joint_stiffness": Field("dof"),
    "shape_world": _integers("shape", -1),
    "shape_body": _integers("shape"),
    "shape_type": _integers("shape"),
    "shape_transform": Field("shape", (7,), REQUIRED),
    "shape_scale": Field("shape", (3,), REQUIRED),
    "shape_margin": Field("shape"),
    "shape_gap": Field("shape"),
    "shape_material_mu": Field("shape", (), 0.5),
    "shape_material_restitution": Field("shape"),
    "shape_material_ke": Field("shape"),
    "shape_material_kd": Field("shape"),
}
# Where an infinity is a legal value; it is a mistake everywhere else.
UNBOUNDED = ("joint_limit_lower", "joint_limit_upper", "joint_effort_limit")


def to_numpy(value) -> np.ndarray:
    """Host array of a Warp array (anything with `.numpy()`) or of an array-like."""
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def read(model) -> Arrays:
    """The arrays of a `newton.Model`, or of any object with its attribute names and numpy arrays.

    Raises:
        ValueError: an array that is missing, of the wrong shape, or not finite, by name.
    """
    starts = {name: _start_table(model, name) for name in ("joint_q_start", "joint_qd_start")}
    counts = {family: _length(model, name) for family, name in (("body", "body_q"), ("joint", "joint_type"), ("shape", "shape_type"))}
    counts |= {"coordinate": int(starts["joint_q_start"][-1]), "dof": int(starts["joint_qd_start"][-1])}
    fields = {name: _read_field(model, name, field, counts[field.family]) for name, field in FIELDS.items()}
    return Arrays(
        world_count=max(1, int(getattr(model, "world_count", 1) or 1)),
        gravity=to_numpy(getattr(model, "gravity", [[0, 0, -9.81]])).astype(float).reshape(-1, 3),
        shape_contact_pairs=_pairs(model),
        **{f"{family}_label": _labels(model, family, counts[family]) for family in ("body", "joint", "shape")},
        **starts,
        **fields,
    )


def _length(model, name):
    value = getattr(model, name, None)
    return 0 if value is None else len(to_numpy(value))


def _start_table(model, name):
    value = getattr(model, name, None)
    if value is None:
        return np.zeros(1, np.int64)
    return to_numpy(value).astype(np.int64)


def _read_field(model, name, field, count):
    value = getattr(model, name, None)
    shape = (count, *field.entry)
    if value is None:
        if field.default is REQUIRED and count:
            raise ValueError(f"the model has no {name}; it is needed for its {count} {field.family} entries")
        return np.full(shape, 0 if field.default is REQUIRED else field.default, field.dtype)
    array = to_numpy(value).astype(field.dtype)
    if array.size != np.prod(shape):
        raise ValueError(f"{name} has shape {array.shape}; {shape} was expected")
    array = array.reshape(shape)
    bad = np.isnan(array) if name in UNBOUNDED else ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"{name} has a NaN or Inf at entry {int(np.argwhere(bad)[0, 0])}")
    return array


def _pairs(model):
    value = getattr(model, "shape_contact_pairs", None)
    return np.zeros((0, 2), np.int64) if value is None else to_numpy(value).astype(np.int64).reshape(-1, 2)


def _labels(model, family, count):
    given = getattr(model, f"{family}_label", None)
    return [f"{family}_{i}" for i in range(count)] if given is None else [str(label) for label in given]
