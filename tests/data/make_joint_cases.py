"""Makes joints.npz: python make_joint_cases.py FOLDER, where FOLDER holds `joints.py`, an independent NumPy program of joint geometry."""

import pathlib
import sys

import numpy as np

AXES = {"revolute": 1, "prismatic": 1, "cylindrical": 1, "universal": 2, "spherical": 3, "gimbal": 3, "cartesian": 3, "fixed": 0}


def random_case(joints, kind, left, rng):
    """Inputs on random poses, outputs of the reference there, and poses that close the joint."""
    turn = lambda: joints.exp(rng.normal(size=3))
    pose = lambda s: np.r_[rng.normal(size=3) * s, turn()]
    coms, poses, twists = rng.normal(size=(2, 3)) * 0.3, np.array([pose(1.0), pose(1.0)]), rng.normal(size=(2, 6))
    X_p, X_c = pose(0.5), pose(0.5)
    axes = joints.rotation(turn()).T
    axes[2] *= -1 if left else 1
    out = joints.joint(kind, list(axes), X_p, X_c, *poses, *twists, *coms)
    if kind == "spherical" and out["coordinates"][3] < 0:
        out["coordinates"] *= -1
    closed = joints.on_manifold(kind, list(axes), X_p, X_c, poses[0])
    keep = {k: out[k] for k in ("residual", "coordinates", "rates", "J", "J_dof")}
    return dict(
        coms=coms, poses=poses, twists=twists, X_p=X_p, X_c=X_c, axes=axes[: AXES[kind]], closed_poses=np.array([poses[0], closed]), **keep
    )


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    import joints

    rng, cases = np.random.default_rng(7), {}
    for kind in AXES:
        for left in (False, True) if kind == "gimbal" else (False,):
            name = "gimbal_left_handed" if left else kind
            cases |= {f"{name}/{k}": v for k, v in random_case(joints, kind, left, rng).items()}
    np.savez_compressed(pathlib.Path(__file__).parent / "joints.npz", **cases)
