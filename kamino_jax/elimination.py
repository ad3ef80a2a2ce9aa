"""The order in which the bilateral rows of joints are eliminated: index data from the host."""

from jax import Array

from .pytree import pytree


@pytree
class Elimination:
    """Block columns in the order of elimination, six places per joint.

    Column k touches the later columns column[k, a]. Eliminating it changes, for a >= b, the block of column column[k, b] that stands in
    row column[k, a]: its entry slot[k, a, b], where entry 0 is the diagonal block and entry i + 1 belongs to row column[., i].
    """

    place: Array  # (bilateral rows,) int32: 6 column + place of each row; 6 nj for rows that are off
    column: Array  # (nj, fill) int32, nj where there is none
    slot: Array  # (nj, fill, fill) int32
