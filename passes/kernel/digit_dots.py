"""Sums over numbers of 4 bits in groups with a scale each, as one intrinsic of a target computes them."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float32Type, IntegerType
from xdsl.ir import Block, SSAValue

from ...dialects import kernel
from ...dialects.aten.types import scalar_type
from ...dialects.scalar import CastOp, WidenOp, number_of
from ...dialects.sym import Expr, as_expr, symbol
from ...records import dataclass

_LANES = 16
"""Bytes that one step takes."""
_MOST_LANES = 128
_HALF, _LOW = 4, 15
_SHARED = (1, 2, 4)
_LARGEST_ZERO = 128
"""Numbers of 4 bits less so much, and less, are numbers of bfloat16."""


@dataclass(frozen=True)
class DigitDot:
    """Sum over groups g of scale[g] * sum over i of (x[g, 2i]*(low(byte[g, i]) - zero) + x[g, 2i+1]*(high - zero)).

    lanes, groups:  bytes of a group, and how many groups there are
    x, byte, scale: loads, with the steps of their places from group to group
    shared:         so many groups have one scale, and its step is from one to the next
    """

    lanes: int
    groups: int
    zero: int
    x: kernel.LoadOp
    byte: kernel.LoadOp
    scale: kernel.LoadOp
    steps: tuple[Expr, Expr, Expr]
    shared: int
    axes: tuple[str, str]


@dataclass(frozen=True)
class _Term:
    """x * (digit - zero) * scale."""

    x: kernel.LoadOp
    byte: kernel.LoadOp
    scale: kernel.LoadOp
    zero: float
    is_high: bool


def digit_dots(op: kernel.ReduceOp) -> list[DigitDot] | None:
    """What two reductions, over the bytes of a group in lanes and over the groups, compute if all are such sums."""
    inner = next((each for each in op.body.block.ops if isinstance(each, kernel.ReduceOp)), None)
    last = op.body.block.last_op
    if inner is None or last is None or len(list(op.body.block.ops)) != 2 or tuple(last.operands) != inner.results:
        return None
    lane, group = (op, inner) if op.mapping.data == "vector" else (inner, op)
    if (
        not is_plain_sum(op)
        or not is_plain_sum(inner)
        or lane.mapping.data != "vector"
        or group.mapping.data != "serial"
    ):
        return None
    lanes, groups = lane.hi.data.as_int(), group.hi.data.as_int()
    if lanes is None or groups is None or lanes % _LANES or not 0 < lanes <= _MOST_LANES:
        return None
    summed = inner.body.block.last_op
    assert summed is not None
    found: list[DigitDot] = []
    for value in summed.operands:
        terms = _terms(value)
        dot = None if terms is None else _dot(*terms, lanes, groups, (lane.axis.data, group.axis.data))
        if dot is None:
            return None
        found.append(dot)
    return found


def is_plain_sum(op: kernel.ReduceOp) -> bool:
    """Whether a reduction from 0 on sums floats, and nothing else is said of it."""
    is_sum = {each.data for each in op.combiners} == {"sum"} and op.lo.data.as_int() == 0
    extras = op.init or op.within or op.block is not None or op.group is not None or op.combine is not None
    return is_sum and not extras and all(result.type == Float32Type() for result in op.results)


def _dot(low: _Term, high: _Term, lanes: int, groups: int, axes: tuple[str, str]) -> DigitDot | None:
    """The terms of both halves of a byte as one sum, if their places fit together."""
    lane, group = axes
    if low.is_high:
        low, high = high, low
    same = low.byte is high.byte and _place(low.scale) == _place(high.scale) and low.scale.buffer is high.scale.buffer
    is_integer = low.zero == high.zero and low.zero == int(low.zero) and abs(low.zero) <= _LARGEST_ZERO
    if low.is_high or not high.is_high or not same or not is_integer or low.x.buffer is not high.x.buffer:
        return None
    if (_place(high.x) - _place(low.x)).as_int() != 1:
        return None
    loads = (low.x, low.byte, low.scale)
    strides = [_place(load).coefficient(lane) for load in loads[:2]]
    known = [None if step is None else step.as_int() for step in strides]
    shared, step = _scale_step(_place(low.scale), group)
    steps = [*(_place(load).coefficient(group) for load in loads[:2]), step]
    if known != [2, 1] or lane in _place(low.scale).free_symbols:
        return None
    found = [step for step in steps if step is not None and step.free_symbols.isdisjoint(axes)]
    if len(found) != len(loads):
        return None
    return DigitDot(lanes, groups, int(low.zero), *loads, (found[0], found[1], found[2]), shared, axes)


def _scale_step(place: Expr, group: str) -> tuple[int, Expr | None]:
    """How many groups have one scale, and the step from one to the next."""
    if group not in place.free_symbols:
        return 1, as_expr(0)
    for shared in _SHARED:
        first = place.subs({group: symbol(group) * shared})
        others = (place.subs({group: symbol(group) * shared + k}) for k in range(1, shared))
        step = first.coefficient(group)
        if step is not None and all(each == first for each in others):
            return shared, step
    return 1, None


def _place(load: kernel.LoadOp) -> Expr:
    return load.map.data[0]


def _terms(value: SSAValue) -> tuple[_Term, _Term] | None:
    op = value.owner
    if not isinstance(op, arith.AddfOp):
        return None
    first, second = _term(op.lhs), _term(op.rhs)
    return None if first is None or second is None else (first, second)


def _term(value: SSAValue) -> _Term | None:
    """A product of a number of 4 bits, a scale, and an element of x; these two are told apart by where they lie."""
    factors = _factors(value)
    digits = [found for each in factors if (found := _digit(each)) is not None]
    loads = [found for each in factors if (found := _element(each)) is not None]
    if len(factors) != len(digits) + len(loads) or len(digits) != 1 or len(loads) != _FACTORS:
        return None
    (byte, zero, is_high), (x, scale) = digits[0], loads
    lanes = _place(byte).free_symbols
    if len(_place(x).free_symbols & lanes) < len(_place(scale).free_symbols & lanes) or x.buffer.type != _buffer(x):
        x, scale = scale, x
    return _Term(x, byte, scale, zero, is_high) if x.buffer.type == _buffer(x) else None


_FACTORS = 2


def _buffer(load: kernel.LoadOp) -> object:
    """The type that the buffer of x has."""
    type_ = load.buffer.type
    return type_ if isinstance(type_, kernel.BufferType) and type_.element == BFloat16Type() else None


def _factors(value: SSAValue) -> list[SSAValue]:
    op = value.owner
    return [*_factors(op.lhs), *_factors(op.rhs)] if isinstance(op, arith.MulfOp) else [value]


def _element(value: SSAValue) -> kernel.LoadOp | None:
    """A plain load of a float32, or of a bfloat16 that is widened."""
    op = value.owner
    if isinstance(op, WidenOp) and op.source_element == BFloat16Type():
        op = op.value.owner
    if not isinstance(op, kernel.LoadOp) or op.mask is not None or op.dynamic:
        return None
    return op if op.value.type in (Float32Type(), scalar_type(BFloat16Type())) else None


def _digit(value: SSAValue) -> tuple[kernel.LoadOp, float, bool] | None:
    """The byte, what is taken off one of its halves, and whether that is the upper one."""
    op, zero = value.owner, 0.0
    if isinstance(op, arith.SubfOp):
        number = number_of(op.rhs)
        if number is None:
            return None
        op, zero = op.lhs.owner, float(number)
    if not isinstance(op, CastOp) or op.target_element != Float32Type() or not _is_unsigned(op):
        return None
    half = op.value.owner
    if isinstance(half, Block) or len(half.operands) != _FACTORS or not isinstance(half, arith.AndIOp | arith.ShRUIOp):
        return None
    is_high = isinstance(half, arith.ShRUIOp)
    byte, number = half.operands[0].owner, number_of(half.operands[1])
    if number != (_HALF if is_high else _LOW) or not isinstance(byte, kernel.LoadOp):
        return None
    return (byte, zero, is_high) if byte.mask is None and not byte.dynamic else None


def _is_unsigned(op: CastOp) -> bool:
    source = op.source_element
    return isinstance(source, IntegerType) and source.width.data == 2 * _HALF and op.value.type == scalar_type(source)
