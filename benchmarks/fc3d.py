"""Real frictional-contact problems: python benchmarks/fc3d.py FOLDER [--out FILE].

FOLDER holds .npz files with D (3 nc, 3 nc), v_f (3 nc,), mu (nc,), rows (t, o, n) a contact. Per problem: natural map, iterations,
time of plain and accelerated PADMM from a cold start in float64, with the best penalty out of a few. A target for later solvers.
"""

import argparse
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
from _harness import commit, emit, median_seconds, parser

import kamino_jax as kj
from kamino_jax.delassus import DenseDelassus, Dual
from kamino_jax.layout import Rows
from kamino_jax.solvers import padmm
from kamino_jax.solvers.backend import Guess
from kamino_jax.solvers.metrics import natural_map

PENALTIES = (1.0, 0.03)
TARGET = 1e-8
FORMS = {"accelerated": {}, "plain": dict(use_acceleration=False)}


def load(file):
    """The problem in dual form; D is symmetrised, D = B Bᵀ."""
    with np.load(file) as data:
        D, v_f, mu = (np.asarray(data[k], float) for k in ("D", "v_f", "mu"))
    values, vectors = np.linalg.eigh(0.5 * (D + D.T))
    B, n = vectors * np.sqrt(np.maximum(values, 0)), len(values)
    none = jnp.zeros(0)
    return Dual(
        Rows(nc=n // 3), DenseDelassus(jnp.asarray(B), jnp.zeros(n)), jnp.asarray(v_f), none, none, jnp.asarray(mu), jnp.ones(n, bool)
    )


def attempt(dual, budget, **form):
    """(natural map, iterations, seconds) of one setting."""
    small = dict(primal_tolerance=1e-10, dual_tolerance=1e-10, compl_tolerance=1e-10, max_iterations=budget)
    config = kj.Config(padmm=kj.PADMMConfig(**small, **form))
    zero = jnp.zeros_like(dual.v_f)

    @jax.jit
    def solve(dual):
        end = padmm.solve(dual, Guess(zero, zero), config)
        return jnp.max(jnp.abs(natural_map(dual, end.lam, dual.D.mv(end.lam) + dual.v_f))), end.iterations

    residual, k = jax.block_until_ready(solve(dual))
    seconds = median_seconds(lambda: jax.block_until_ready(solve(dual)), repeats=1)
    return float(residual), int(k), seconds


def main():
    p = parser(__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("folder", type=pathlib.Path)
    p.add_argument("--work", type=float, default=3e9, help="budget of one attempt: iterations times squared rows")
    args = p.parse_args()
    jax.config.update("jax_enable_x64", True)
    for file in sorted(args.folder.glob("*.npz"), key=lambda f: f.stat().st_size)[: 3 if args.smoke else None]:
        dual = load(file)
        n = len(dual.v_f)
        budget = int(np.clip(args.work / n**2, 500, 20_000))
        for name, form in FORMS.items():
            runs = [(*attempt(dual, budget, rho_0=rho, **form), rho) for rho in PENALTIES]
            reached = [r for r in runs if r[0] <= TARGET]
            residual, k, seconds, rho = min(reached, key=lambda r: r[2]) if reached else min(runs)
            emit(
                args.out,
                benchmark="fc3d",
                problem=file.stem,
                contacts=n // 3,
                form=name,
                rho=rho,
                natural_map=residual,
                solved=residual <= TARGET,
                iterations=k,
                seconds=seconds,
                commit=commit(),
            )


if __name__ == "__main__":
    main()
