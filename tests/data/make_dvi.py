"""Makes dvi.npz: python make_dvi.py FOLDER, with FOLDER holding recordings/solves.npz and the float64 reference programs of DVI.

Recorded single solves of Newton's SolverKamino (DVI) with every input, its answer `newton_lam`, and the answer `lam` of the reference
programs from the same start on the same schedule: 24 alternations of 2 sweeps, or one or twenty corrections of gradient descent.
"""

import pathlib
import sys

import numpy as np

KEPT = ("J", "inv_mass", "inv_inertia", "twist", "free_twist", "bias", "restitution", "bias_friction", "compliance", "mu", "lower", "upper")
KEPT += ("bilateral", "bounded", "friction", "limits", "contacts", "dynamic", "warm_start_lam", "schur", "colour_of_entity")


def answer(name, r, load, dvi_pgs, dvi_apgd):
    """The reference's impulses."""
    problem = load.problem(r) | dict(bias_friction=r["bias_friction"].astype(float))
    if "apgd" in name:
        return dvi_apgd.solve(problem, r["warm_start_lam"], schur=bool(r["schur"]), max_corrections=20 if "20" in name else 1)["lam"]
    color, order = (r.get(k, np.zeros(0, int)) for k in ("colour_of_entity", "entity_order"))
    colors = [[int(e) for e in order if color[e] == c] for c in range(int(color.max(initial=-1)) + 1)]
    return dvi_pgs.solve(problem, r["warm_start_lam"], schur=bool(r["schur"]), colours=colors)["lam"]


def main(folder):
    sys.path[:0] = [str(folder), str(folder / "recordings")]
    import dvi_apgd
    import dvi_pgs
    import load

    out = {"names": []}
    for name, r in load.group(folder / "recordings" / "solves.npz").items():
        if name.startswith("dvi_"):
            short = name.removeprefix("dvi_")
            out["names"].append(short)
            out |= {f"{short}/{k}": r[k] for k in KEPT if k in r}
            out |= {f"{short}/newton_lam": r["lam"], f"{short}/lam": answer(name, r, load, dvi_pgs, dvi_apgd)}
    np.savez_compressed(pathlib.Path(__file__).with_name("dvi.npz"), **out)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
