"""Boxes: tiles of a matrix in memory, which a GPU's copy engine brings to a program as a whole (TMA)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import AnyFloat, IntegerType
from xdsl.ir import Attribute

from ...records import dataclass
from ..sym import ZERO, Expr, Ranges, bounds, const, symbol
from ..sym.polynomial import from_terms
from .loops import LoopBase, ReduceOp, loops_around
from .types import BufferType

if TYPE_CHECKING:
    from .memory import LoadOp

#: bytes that rows begin at multiples of, and that a row of a box has at least
ALIGNMENT = 16


@dataclass(frozen=True)
class Box:
    """A tile of a matrix, whose rows lie one behind the other.

    rows, length:  rows of the matrix, and elements of each
    row, column:   the place of an element, in terms of the axes in scope
    outer, inner:  the tiled axes along which rows and columns run
    """

    rows: int
    length: int
    row: Expr
    column: Expr
    outer: str
    inner: str


def box_of(op: LoadOp, length: int) -> Box | str:
    """What a load reads for each tile of a product as a box of a matrix with rows of so many elements, or why not.

    Beyond the ends of a matrix the engine gives zeros. Beyond the end of the depth there must be zeros, since matrix
    units add what is there; what is there beyond other ends reaches nothing that is stored.
    """
    loop = op.parent_op()
    if not isinstance(loop, ReduceOp) or loop.mapping.data != "matrix" or loop.combiners.data[0].data != "sum":
        return "it is no factor of a product on matrix units"
    if op.mask is not None or op.dynamic or op.half is not None:
        return "it is masked, looks something up, or is a half of an access"
    loops = [each for each in loops_around(loop) if _is_tiled(each) or each is loop]
    place = op.map.data[0]
    tiled = [each for each in loops if each.axis.data in place.free_symbols]
    parts = place.split([each.axis.data for each in tiled])
    if parts is None or len(tiled) != 2 or tiled[0] is not loop:
        return "its index is no sum of multiples of the depth and of another tiled axis"
    (coefficients, rest), step = parts, {each.axis.data: each for each in tiled}
    by_step = {coefficient.as_int(): axis for axis, coefficient in coefficients.items()}
    if set(by_step) != {1, length}:
        return f"its elements do not lie side by side along one axis, and {length} elements apart along the other one"
    outer, inner = step[by_step[length]], step[by_step[1]]
    return _placed(op, length, rest, (outer, inner))


def _placed(op: LoadOp, length: int, rest: Expr, axes: tuple[LoopBase, LoopBase]) -> Box | str:
    """The box with the part of the index that is the same for all elements of a tile."""
    outer, inner = axes
    assert isinstance(op.buffer.type, BufferType)
    extent, element = op.buffer.type.extent.as_int(), _bytes(op.buffer.type.element)
    if extent is None or extent % length or not element or length * element % ALIGNMENT:
        return f"rows of {length} elements do not make up its buffer, or begin at no multiples of {ALIGNMENT} bytes"
    if _tile(inner) * element < ALIGNMENT or max(map(_tile, axes)) > _MOST:
        return f"a side of its tile is longer than {_MOST} elements, or shorter than {ALIGNMENT} bytes"
    above = from_terms({m: c // length for m, c in rest.terms if not c % length})
    beside = from_terms({m: c for m, c in rest.terms if c % length})
    around = [(each.axis.data, each.hi.data) for each in loops_around(op.parent_op())]
    least, most = bounds(beside + symbol(inner.axis.data), Ranges.of_axes(around))
    if least is None or most is None or least < 0 or most >= length:
        return f"it may leave a row of {length} elements"
    ends = {outer: (above, extent // length), inner: (beside, length)}
    depth, (start, end) = next((loop, end) for loop, end in ends.items() if loop is op.parent_op())
    steps = (depth.hi.data - depth.lo.data).as_int()
    if (steps is None or steps % _tile(depth)) and (start is not ZERO or depth.hi.data is not const(end)):
        return "beyond the depth are other elements of its matrix"
    row, column = above + symbol(outer.axis.data), beside + symbol(inner.axis.data)
    return Box(extent // length, length, row, column, outer.axis.data, inner.axis.data)


#: longest side of a box that the engine copies at once
_MOST = 256


def _is_tiled(loop: LoopBase) -> bool:
    return _tile(loop) > 1


def _tile(loop: LoopBase) -> int:
    return 1 if loop.tile is None else loop.tile.value.data


def _bytes(element: Attribute) -> int:
    return element.bitwidth // 8 if isinstance(element, IntegerType | AnyFloat) else 0  # pyright: ignore
