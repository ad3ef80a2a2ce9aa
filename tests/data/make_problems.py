"""Makes problems.npz from a folder of recorded frictional problems: python make_problems.py FOLDER [FC3D_FOLDER].

FOLDER holds problems.npz of recorded PADMM steps (every problem with its float64 solution); problems of licensed robots stay out.
FC3D_FOLDER holds converted problems of Siconos (Apache-2.0); those of at most MAX_CONTACTS contacts are kept.
"""

import pathlib
import sys

import numpy as np

LICENSED = ("dr_",)
UNUSED = ("warm_start_v_aug", "newton_lam", "newton_iterations", "newton_converged", "newton_twist_error", "v_f_float32", "bias_friction")
MAX_CONTACTS = 9
HERE = pathlib.Path(__file__).parent


def recorded(folder):
    """The problems without what the tests do not read."""
    with np.load(folder / "problems.npz") as data:
        names = [str(n) for n in data["names"] if not str(n).startswith(LICENSED)]
        keep = [k for k in data.files if "/" in k and k.split("/")[0] in names and k.split("/")[1] not in UNUSED]
        return {"names": np.array(names)} | {k: data[k] for k in keep}


def siconos(folder):
    """Small problems D, v_f, mu by file name."""
    out = {}
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as data:
            if len(data["mu"]) <= MAX_CONTACTS:
                out |= {f"{file.stem}/{k}": data[k] for k in ("D", "v_f", "mu")}
    return out | {"names": np.array(sorted({k.split("/")[0] for k in out}))}


if __name__ == "__main__":
    np.savez_compressed(HERE / "problems.npz", **recorded(pathlib.Path(sys.argv[1])))
    if len(sys.argv) > 2:
        np.savez_compressed(HERE / "fc3d.npz", **siconos(pathlib.Path(sys.argv[2])))
