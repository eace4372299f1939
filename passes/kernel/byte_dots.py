"""Sums of products of bfloat16 and integers of a byte, as one intrinsic of a target computes them."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float32Type, IntegerType
from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.scalar import CastOp, WidenOp
from ...records import dataclass
from .digit_dots import is_plain_sum

_STEP = 32
"""Elements that one step takes."""
_BYTE = 8


@dataclass(frozen=True)
class ByteDot:
    """The sum over `length` elements side by side of x times an integer of a byte."""

    length: int
    x: kernel.LoadOp
    byte: kernel.LoadOp


def byte_dots(op: kernel.ReduceOp) -> list[ByteDot] | None:
    """What a vector reduction computes if all its results are such sums."""
    length, last = op.hi.data.as_int(), op.body.block.last_op
    is_vector = op.mapping.data == "vector" and is_plain_sum(op)
    if not is_vector or length is None or length % _STEP or length <= 0 or last is None:
        return None
    found: list[ByteDot] = []
    for value in last.operands:
        product = value.owner
        if not isinstance(product, arith.MulfOp):
            return None
        dot = _dot(product.lhs, product.rhs, length, op) or _dot(product.rhs, product.lhs, length, op)
        if dot is None:
            return None
        found.append(dot)
    return found


def _dot(left: SSAValue, right: SSAValue, length: int, op: kernel.ReduceOp) -> ByteDot | None:
    widen, cast = left.owner, right.owner
    if not isinstance(widen, WidenOp) or not isinstance(cast, CastOp):
        return None
    source = cast.source_element
    is_byte = isinstance(source, IntegerType) and source.width.data == _BYTE
    if widen.source_element != BFloat16Type() or not is_byte or cast.target_element != Float32Type():
        return None
    x, byte = widen.operands[0].owner, cast.operands[0].owner
    if not isinstance(x, kernel.LoadOp) or not isinstance(byte, kernel.LoadOp):
        return None
    is_row = all(_runs_along(load, op.axis.data) and load.parent_op() is op for load in (x, byte))
    return ByteDot(length, x, byte) if is_row else None


def _runs_along(load: kernel.LoadOp, axis: str) -> bool:
    """Whether a plain load reads neighbours along an axis."""
    step = load.map.data[0].coefficient(axis)
    return load.mask is None and not load.dynamic and step is not None and step.as_int() == 1
