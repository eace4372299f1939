"""What the emitter knows of a value: its text, its dtype, and over which dimensions of the program's tile it varies."""

from __future__ import annotations

from ...records import dataclass

Dims = tuple[int, ...]
"""Dimensions of the tile along which a value varies, ascending. A value has size 1 in the others; one that varies
along none is a scalar."""


@dataclass(frozen=True)
class Value:
    """A Triton expression.

    text:    a name, or a Python literal
    dtype:   Triton's dtype without `tl.`
    dims:    see `Dims`
    literal: whether `text` is a Python literal
    """

    text: str
    dtype: str
    dims: Dims = ()
    literal: bool = False

    def __str__(self) -> str:
        return self.text


def union(*values: Value | Dims) -> Dims:
    """The dimensions along which something made from all of these varies."""
    found: set[int] = set()
    for value in values:
        found.update(value.dims if isinstance(value, Value) else value)
    return tuple(sorted(found))
