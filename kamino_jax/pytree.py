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
