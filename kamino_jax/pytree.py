"""Frozen dataclasses that JAX sees as pytrees.

A field marked `static()` is part of the compilation key: it must be hashable (ints, strings, tuples of them), never an array.
"""

import dataclasses
from typing import TypeVar, dataclass_transform

import jax

T = TypeVar("T")


def static(**kwargs):
    """Mark a field as compile-time constant."""
    return dataclasses.field(metadata={"static": True}, **kwargs)


@dataclass_transform(frozen_default=True, field_specifiers=(static, dataclasses.field))
def pytree(cls: type[T]) -> type[T]:
    """Frozen dataclass, registered as a pytree."""
    return jax.tree_util.register_dataclass(dataclasses.dataclass(frozen=True)(cls))


replace = dataclasses.replace


def once(tree: T) -> T:
    """The same values, computed once.

    XLA on the CPU inlines an intermediate result into every operation that reads it, again and again along a chain: compile time
    and work multiply. This stops it where a stage of the computation ends (five chained quaternion products: 3.1 s to compile without,
    0.3 s with, and faster to run). Transparent to derivatives and `vmap`.
    """
    return jax.lax.optimization_barrier(tree)
