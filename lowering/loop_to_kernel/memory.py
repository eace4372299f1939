"""Where a tensor's elements lie: linear indices, extents of buffers, strided views."""

from __future__ import annotations

from functools import lru_cache

from ...dialects.aten.types import TensorType
from ...dialects.kernel import BufferType
from ...dialects.loop import ViewOp
from ...dialects.sym import ONE, Expr, MapAttr, Ranges
from ...errors import UnsupportedError, UserError
from ...passes.common import strided_views
from ...passes.common.strided_views import extent, strides_agree, strides_and_offset

Rename = tuple[tuple[str, Expr], ...]

#: of an index, which is signed
_ADDRESS_BITS = 63


@lru_cache(maxsize=8192)
def linear_index(index_map: MapAttr, strides: tuple[Expr, ...]) -> Expr:
    """Where an element lies behind the first one; UserError where that takes more than the 64 bits of an address."""
    expr = strided_views.linear_index(index_map, strides)
    if any(coefficient.bit_length() > _ADDRESS_BITS for _, coefficient in expr.terms):
        place = ", ".join(map(str, index_map.data))
        raise UserError(f"the element at [{place}] lies beyond all memory", "correct the index or the strides")
    return expr


@lru_cache(maxsize=8192)
def renamed(expr: Expr, rename: Rename) -> Expr:
    """`expr` in kernel axes, given as (axis of a member, what it is in the kernel) pairs."""
    return expr.subs(dict(rename))


@lru_cache(maxsize=4096)
def buffer_type(tensor: TensorType) -> BufferType:
    """The buffer in which a kernel sees a tensor."""
    return BufferType.get(tensor.element, extent(tensor))


def row_strides(sizes: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Row-major strides of a local buffer of the given sizes."""
    strides: list[Expr] = []
    step = ONE
    for size in reversed(sizes):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def strided_view(view: ViewOp, ranges: Ranges) -> Expr:
    """Offset in elements of a view that `loop-eliminate-views` left; its type has the strides already.

    Raises UnsupportedError for a map that these strides do not express.
    """
    source, out = view.source.type, view.out.type
    assert isinstance(source, TensorType) and isinstance(out, TensorType)
    found = strides_and_offset(source, view.axes, view.map, ranges)
    if found is None or not strides_agree(out.shape, found[0], out.strides, ranges):
        text = ", ".join(map(str, view.map.data))
        raise UnsupportedError(f"the view [{text}] of {source} has not the strides of {out}; it needs a copy")
    return found[1]
