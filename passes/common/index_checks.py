"""Accesses that are certain to lie outside of what they address.

Only what holds for every run is reported: an index that is a sum of multiples of axes with known ranges takes all
values between its smallest and its largest one's ends, so both ends are met. Masked accesses, dynamic indices and
sizes that are not known are left to what runs the program.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TypeAlias

from xdsl.ir import Operation

from ...dialects import kernel, loop
from ...dialects.aten import TensorType
from ...dialects.sym import Expr, MapAttr
from .scope import Facts, Range

ACCESSES = frozenset({loop.LoadOp, loop.ScatterOp, loop.ViewOp, kernel.LoadOp, kernel.StoreOp})
"""What `access_problem` looks at."""
#: number of the dimension, its size, the index: a constant and (coefficient, axis) pairs
_Linear: TypeAlias = tuple[int, int | None, int, tuple[tuple[int, str], ...]]


def access_problem(op: Operation, facts: Facts, ranges: Mapping[str, Range]) -> str | None:
    """What is wrong with the index of an access, where every enclosing axis has a point; None when nothing is known."""
    if isinstance(op, loop.LoadOp | kernel.LoadOp):
        if op.mask is not None:
            return None
        kind = op.source.type if isinstance(op, loop.LoadOp) else op.buffer.type
    elif isinstance(op, kernel.StoreOp):
        if op.mask is not None:
            return None
        kind = op.buffer.type
    elif isinstance(op, loop.ScatterOp | loop.ViewOp):
        if facts.is_empty or "masked" in op.properties:
            return None
        kind = op.source.type if isinstance(op, loop.ViewOp) else op.dest.type
        ranges = {**ranges, **dict(facts.axes)}
    else:
        return None
    sizes = kind.shape if isinstance(kind, TensorType) else ()
    if isinstance(kind, kernel.BufferType):
        sizes = (kind.extent,)
    for dim, size, start, steps in _linear_indices(op.map, sizes):
        low = high = start
        for step, name in steps:
            found = ranges.get(name)
            if found is None:
                break
            low += step * found[step < 0]
            high += step * found[step > 0]
        else:
            if low < 0 or (size is not None and high >= size):
                there = "" if size is None else f", of size {size}"
                return f"index {op.map.data[dim]} of dimension {dim}{there}, becomes {low if low < 0 else high}"
    return None


@lru_cache(maxsize=16384)
def _linear_indices(index_map: MapAttr, sizes: tuple[Expr, ...]) -> tuple[_Linear, ...]:
    """The indices of a map that are linear in symbols, with the sizes that they must stay below."""
    found: list[_Linear] = []
    for dim, (expr, size) in enumerate(zip(index_map.data, sizes, strict=False)):
        start, steps = 0, list[tuple[int, str]]()
        for monomial, coefficient in expr.terms:
            if not monomial:
                start = coefficient
            elif len(monomial) == 1 and monomial[0].kind == "symbol":
                steps.append((coefficient, monomial[0].name))
            else:
                break
        else:
            found.append((dim, size.as_int(), start, tuple(steps)))
    return tuple(found)
