"""Values with a derivative of their own, kept through every transformation and order.

`jax.custom_jvp` loses its rule (until JAX 0.12) where the body of a scan is split into what all steps share and what they do not: a
Hessian of a rollout would then differentiate what the rule stands for. The rule of a primitive stays.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

T = TypeVar("T")


def attach(rule: Callable, inputs: T, values: tuple[Array, ...], **static) -> tuple[Array, ...]:
    """`values` as they are, with the derivative that a rule gives; costs nothing unless differentiated.

    Args:
        rule: module-level function `rule(inputs, tangents, values, **static)` that returns (values, their tangents). Values that are to be
            differentiated again it returns attached.
        inputs: pytree by which the values are differentiated.
        static: hashable settings of the rule.
    """
    leaves, tree = jax.tree.flatten(inputs)
    return tuple(attached.bind(*leaves, *values, rule=rule, tree=tree, static=tuple(static.items()), batches=()))


def _values(*args, tree, **_):
    return list(args[tree.num_leaves :])


def _flat_rule(rule: Callable, tree, static: tuple) -> Callable:
    """`rule` on leaves; integers get the empty tangents that `jax.jvp` wants."""

    def flat(leaves, tangents, values):
        tangents = [np.zeros(x.shape, jax.dtypes.float0) if t is None else t for x, t in zip(leaves, tangents, strict=True)]
        return rule(tree.unflatten(leaves), tree.unflatten(tangents), values, **dict(static))

    return flat


def _jvp(primals, tangents, *, rule, tree, static, batches):
    n, primals = tree.num_leaves, [jnp.asarray(x) for x in primals]  # some may be literals
    floats = [jnp.issubdtype(x.dtype, jnp.inexact) for x in primals]
    moved = tuple(ad.instantiate_zeros(t) if on else None for t, on in zip(tangents, floats, strict=True))
    flat = _flat_rule(rule, tree, static)
    for axes in batches:
        flat = jax.vmap(flat, in_axes=(axes[:n], axes[:n], axes[n:]))
    return flat(tuple(primals[:n]), moved[:n], tuple(primals[n:]))


def _batched(args, dims, *, tree, batches, **params):
    """Arrays with their batch in front; values without one are repeated, since their derivatives have it."""
    args = [jnp.asarray(x) for x in args]
    size = next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    front = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    values = [jnp.broadcast_to(x, (size, *x.shape)) if d is None else x for x, d in zip(front, dims, strict=True)][tree.num_leaves :]
    axes = (*(None if d is None else 0 for d in dims[: tree.num_leaves]), *(0 for _ in values))
    out = attached.bind(*front[: tree.num_leaves], *values, tree=tree, batches=(*batches, axes), **params)
    return out, [0] * len(values)


attached = Primitive("attached")
attached.multiple_results = True
attached.def_impl(_values)
attached.def_abstract_eval(_values)
mlir.register_lowering(attached, mlir.lower_fun(_values, multiple_results=True))
ad.primitive_jvps[attached] = _jvp
batching.primitive_batchers[attached] = _batched
