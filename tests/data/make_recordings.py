"""Packs recorded PADMM trajectories of Newton's SolverKamino into recordings.npz. Run: python make_recordings.py FOLDER.

FOLDER holds <scene>_padmm_<integrator>.npz: Newton's model arrays under model/, the start under initial/, inputs and results of every step,
and the contacts in ragged groups (rows start[k] : start[k + 1] belong to step k). Kept, as <scene>_<integrator>/<field>: what
`tests/test_recordings.py` reads. Series that never change are kept as one entry.
"""

import json
import pathlib
import sys

import numpy as np

SKIPPED = ("dr_",)  # large robots with meshes
SERIES = ("joint_f", "joint_target_q", "joint_target_qd", "body_f", "body_q", "body_qd", "joint_q", "joint_qd", "status/converged")
CONTACT = ("start", "bid_AB", "gid_AB", "position_A", "position_B", "gapfunc", "material", "stiffness", "damping")
UNUSED = (
    "articulation_start",
    "articulation_world",
    "joint_articulation",
    "joint_qd",
    "joint_f",
    "joint_velocity_limit",
    "joint_target_qd",
)
UNUSED += (
    "shape_flags",
    "shape_collision_group",
    "shape_collision_filter_pairs",
    "shape_material_mu_torsional",
    "shape_material_mu_rolling",
)
PATH = ("body_q", "body_qd", "joint_q")  # of the DVI run of the same scene, kept beside the PADMM run under dvi/
GROUPS = ("constraints", "dynamics", "materials")


def kept(name: str) -> bool:
    family, _, field = name.partition("/")
    if family == "model":
        return field not in UNUSED
    return name in SERIES or family in ("initial", "newton_contact") or (family == "contact" and field in CONTACT)


def squeezed(name: str, value: np.ndarray) -> np.ndarray:
    """Series that do not change as one step."""
    return value[:1] if name in SERIES and len(value) and (value == value[:1]).all() else value


def pack(file: pathlib.Path) -> dict[str, np.ndarray]:
    with np.load(file) as data:
        meta = json.loads(str(data["meta"]))
        out = {name: squeezed(name, data[name]) for name in data.files if kept(name)}
    about = {k: meta[k] for k in ("scene", "integrator", "dt", "steps", "newton")} | {k: meta["config"][k] for k in GROUPS}
    dvi = file.with_name(file.name.replace("padmm", "dvi"))
    with np.load(dvi) as data:
        out |= {f"dvi/{field}": data[field] for field in PATH}
    return {"meta": np.array(json.dumps(about)), **out}


def main(folder: str) -> None:
    packed = {}
    for file in sorted(pathlib.Path(folder).glob("*_padmm_*.npz")):
        if not file.name.startswith(SKIPPED):
            name = file.stem.replace("_padmm_", "_")
            packed |= {f"{name}/{field}": value for field, value in pack(file).items()}
    np.savez_compressed(pathlib.Path(__file__).with_name("recordings.npz"), **packed)


if __name__ == "__main__":
    main(sys.argv[1])
