"""What a Newton model may contain that this solver does not simulate."""

import warnings

import numpy as np

from .arrays import Arrays

COUNTS = {
    "particles": "particle_count",
    "springs": "spring_count",
    "triangles": "tri_count",
    "edges": "edge_count",
    "tetrahedra": "tet_count",
    "muscles": "muscle_count",
}
JOINTS = {"DISTANCE joints": 5, "ROD joints": 7}
IGNORED = {"equality constraints": "equality_constraint_count", "mimic constraints": "constraint_mimic_count", "tendons": "tendon_count"}


def _counted(model, names):
    counts = {what: int(getattr(model, name, 0) or 0) for what, name in names.items()}
    return {what: n for what, n in counts.items() if n}


def refuse_unsupported(model, arrays: Arrays) -> None:
    """ValueError that lists everything of `model` that has no counterpart; one warning for what `SolverKamino` ignores as well."""
    found = _counted(model, COUNTS)
    found |= {what: n for what, code in JOINTS.items() if (n := int((arrays.joint_type == code).sum()))}
    if found:
        listed = ", ".join(f"{n} {what}" for what, n in found.items())
        raise ValueError(f"the model has parts that are not simulated: {listed}; leave them out, or simulate them with another solver")
    ignored = _counted(model, IGNORED)
    ignored["joints switched off by joint_enabled (they stay on)"] = int((arrays.joint_enabled == 0).sum())
    ignored["springs (joint_stiffness)"] = int(np.count_nonzero(arrays.joint_stiffness))
    listed = ", ".join(f"{n} {what}" for what, n in ignored.items() if n)
    if listed:
        warnings.warn(f"ignored, as by SolverKamino: {listed}", stacklevel=3)
