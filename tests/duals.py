"""Problems in dual form with known solutions."""

import jax.numpy as jnp
import numpy as np

from kamino_jax.delassus import DenseDelassus, Dual
from kamino_jax.layout import Rows

DTYPE = jnp.zeros(()).dtype


def dual(D, v_f, mu=(), lower=(), upper=(), **rows) -> Dual:
    """A problem from a dense positive definite D."""
    array = lambda x: jnp.asarray(np.asarray(x, float), DTYPE)
    B = np.linalg.cholesky(np.asarray(D, float))
    n = len(B)
    return Dual(
        Rows(**rows), DenseDelassus(array(B), array(np.zeros(n))), array(v_f), array(lower), array(upper), array(mu), jnp.ones(n, bool)
    )


def coupled():
    """Two sliding contacts on a full D, built from their solution."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(6, 6))
    D = A @ A.T / 6 + np.eye(6)
    lam, v = np.array([-0.3, -0.4, 1, 0.6, -0.8, 2]), np.array([3, 4, 0, -3, 4, 0.0])
    return dual(D, v - D @ lam, mu=(0.5, 0.5), nc=2), lam


KNOWN = {
    "slides along x": (dual(np.eye(3), (10, 0, -1), mu=[0.5], nc=1), (-0.5, 0, 1)),
    "sticks": (dual(np.eye(3), (0.1, -0.2, -1), mu=[0.5], nc=1), (-0.1, 0.2, 1)),
    "slides obliquely": (dual(np.eye(3), (6, 8, -1), mu=[0.5], nc=1), (-0.3, -0.4, 1)),
    "opens": (dual(np.eye(3), (1, 0, 2), mu=[0.5], nc=1), (0, 0, 0)),
    "is frictionless": (dual(np.eye(3), (10, 2, -1), mu=[0.0], nc=1), (0, 0, 1)),
    "mixes families": (
        dual(np.eye(5), (-4, -2, 10, 0, -1), mu=[0.5], lower=[-0.25], upper=[0.25], nf=1, nl=1, nc=1),
        (0.25, 2, -0.5, 0, 1),
    ),
    "couples two contacts": coupled(),
}
