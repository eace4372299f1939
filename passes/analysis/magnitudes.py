"""How large values can be, given how large others are: bounds of nests that hold whatever the elements are.

A `Bound` says of a tensor that none of its elements is NaN and that none is larger than a number, which is known when
the weights are: it is a sum, a product or what a convolution makes of other bounds. It comes from tensors whose largest
magnitude a program measures.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Callable, Mapping
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import BFloat16Type, Float32Type, Float64Type, FloatAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import CallOp
from ...dialects.loop import GenerateOp, LoadOp, ReduceOp, yielded
from ...dialects.scalar import CastOp, NarrowOp, WidenOp
from ...dialects.sym import AxesAttr
from ...records import dataclass

INFINITE = numbers.inf
_WIDE = (Float32Type(), Float64Type(), BFloat16Type())
"""Elements with the exponents of float32 or more: what is far below its largest number does not overflow."""


@dataclass(frozen=True, eq=False)
class Bound:
    """A number: `constant`, or what is made of `parts`.

    kind: "constant"; "measured", of a tensor that the program looks at; "sum", "product"; "convolution", of an image
          that is bounded by the one part, by `call`
    depth:    how many convolutions are between a tensor that was measured and this
    """

    kind: str
    parts: tuple[Bound, ...] = ()
    constant: float = 0.0
    call: CallOp | None = None
    depth: int = 0


def fixed_bound(number: float) -> Bound:
    """The bound that is a number."""
    return Bound("constant", constant=number)


def bound_of_sum(a: Bound, b: Bound) -> Bound:
    """A bound of the sum of two values, and of one or the other."""
    if "constant" in (a.kind, b.kind):
        if a.kind == b.kind:
            return fixed_bound(a.constant + b.constant)
        known, other = (a, b) if a.kind == "constant" else (b, a)
        if known.constant == 0:
            return other
    return Bound("sum", (a, b), depth=max(a.depth, b.depth))


def bound_of_product(a: Bound, b: Bound) -> Bound:
    """A bound of the product of two values."""
    if "constant" in (a.kind, b.kind):
        if a.kind == b.kind:
            return fixed_bound(a.constant * b.constant)
        known, other = (a, b) if a.kind == "constant" else (b, a)
        if known.constant == 1:
            return other
    return Bound("product", (a, b), depth=max(a.depth, b.depth))


def bound_of_convolution(image: Bound, call: CallOp) -> Bound:
    """A bound of what a convolution makes of an image, in front of what it does to that."""
    return Bound("convolution", (image,), call=call, depth=image.depth + 1)


def bound_of_either(a: Bound | None, b: Bound | None) -> Bound | None:
    """A bound of a value that is one of two."""
    if a is None or b is None or a is b:
        return a if a is b else None
    return bound_of_sum(a, b)


@dataclass(frozen=True)
class Range:
    """What a scalar can be: no NaN, from `low` to `high`, and of a magnitude up to `size`, infinite if that is None."""

    low: float = -INFINITE
    high: float = INFINITE
    size: Bound | None = None


def bound_of(nest: Operation, bounds: Mapping[SSAValue, Bound]) -> tuple[Bound | None, list[Bound]]:
    """The bound of a nest's only result, by those of the tensors that it reads; None where it may have none.

    It holds if the others, of values on the way that the result's own does not tell of, are finite.
    """
    if type(nest) is not GenerateOp or len(nest.results) != 1:
        return None, []
    reader = _Reader(bounds)
    found = reader.range_of(yielded(nest.body)[0])
    return (None, []) if found is None or found.size is None else (found.size, list(dict.fromkeys(reader.dropped)))


class _Reader:
    """Finds ranges of the scalars of a body; None is a value that may be NaN."""

    def __init__(self, bounds: Mapping[SSAValue, Bound]) -> None:
        self.bounds = bounds
        self.dropped: list[Bound] = []
        """Bounds that a range does not tell of, though it holds only if they are finite: of x in tanh(x)."""
        self._known: dict[SSAValue, Range | None] = {}

    def range_of(self, value: SSAValue) -> Range | None:
        if value not in self._known:
            self._known[value] = found = self._find(value)
            if found is not None and (found.size is None or found.size.kind == "constant"):
                self.dropped += self._sizes_below(value)
        return self._known[value]

    def _sizes_below(self, value: SSAValue) -> list[Bound]:
        op = value.owner
        assert isinstance(op, Operation)
        below = yielded(op.body) if type(op) is ReduceOp else op.operands
        found = [self._known[each] for each in below if each in self._known]
        own = [self.bounds[op.source]] if type(op) is LoadOp and op.source in self.bounds else []
        sizes = [*own, *(each.size for each in found if each is not None and each.size is not None)]
        return [size for size in sizes if size.kind != "constant"]

    def _find(self, value: SSAValue) -> Range | None:
        op = value.owner
        if isinstance(op, Block) or value.type not in _WIDE:
            return None
        if type(op) is LoadOp:
            return self._load(op)
        if type(op) is ReduceOp:
            return self._reduce(op)
        if isinstance(op, arith.ConstantOp):
            number = op.value.value.data if isinstance(op.value, FloatAttr) else numbers.nan
            return None if numbers.isnan(number) else _fixed(float(number))
        if isinstance(op, arith.SelectOp):
            return self._select(op)
        rule = _RULES.get(type(op))
        given = [self.range_of(operand) for operand in op.operands]
        if rule is None or None in given:
            return None
        return rule(*cast("list[Range]", given))

    def _load(self, op: LoadOp) -> Range | None:
        bound = self.bounds.get(op.source)
        if bound is None:
            return None
        found = Range(size=bound)
        other = None if op.other is None else self.range_of(op.other)
        return found if op.other is None else None if other is None else _one_of(found, other)

    def _reduce(self, op: ReduceOp) -> Range | None:
        if len(op.combiners) != 1 or len(op.results) != 1:
            return None
        found = self.range_of(yielded(op.body)[0])
        count = 1
        for size in cast(AxesAttr, op.axes).sizes:
            known = size.as_int()
            if known is None or known == 0:
                return None
            count *= known
        name = op.combiners.data[0].data
        if found is None or name in ("max", "min"):
            return found
        return _scaled(found, float(count)) if name == "sum" and found.size is not None else None

    def _select(self, op: arith.SelectOp) -> Range | None:
        """One of two; the larger or the smaller one where a comparison of just these decides."""
        left, right = (self.range_of(operand) for operand in op.operands[1:])
        if left is None or right is None:
            return None
        compared = op.operands[0].owner
        joined = _one_of(left, right)
        if not isinstance(compared, arith.CmpfOp) or set(compared.operands) != set(op.operands[1:]):
            return joined
        is_less = compared.predicate.value.data in _LESS
        if not is_less and compared.predicate.value.data not in _MORE:
            return joined
        takes_less = is_less == (compared.operands[0] is op.operands[1])
        pick = min if takes_less else max
        return _sized(pick(left.low, right.low), pick(left.high, right.high), joined.size)


_MORE, _LESS = (2, 3), (4, 5)
"""Ordered comparisons: oge and ogt, ole and olt."""


def _fixed(number: float) -> Range:
    return Range(number, number, fixed_bound(abs(number)) if numbers.isfinite(number) else None)


def _sized(low: float, high: float, size: Bound | None) -> Range:
    """A range whose ends, where both are numbers, are a bound too."""
    if numbers.isfinite(low) and numbers.isfinite(high):
        size = fixed_bound(max(abs(low), abs(high)))
    return Range(low, high, size)


def _one_of(a: Range, b: Range) -> Range:
    return _sized(min(a.low, b.low), max(a.high, b.high), bound_of_either(a.size, b.size))


def _scaled(a: Range, factor: float) -> Range:
    size = None if a.size is None else bound_of_product(a.size, fixed_bound(factor))
    return _sized(a.low * factor, a.high * factor, size)


def _add(a: Range, b: Range) -> Range | None:
    if a.size is None and b.size is None and not (min(a.low, b.low) > -INFINITE or max(a.high, b.high) < INFINITE):
        return None  # infinities of both signs are NaN together
    size = None if a.size is None or b.size is None else bound_of_sum(a.size, b.size)
    low, high = a.low + b.low, a.high + b.high
    return (
        None if numbers.isnan(low + high) and not (low == -INFINITE and high == INFINITE) else _sized(low, high, size)
    )


def _negate(a: Range) -> Range:
    return Range(-a.high, -a.low, a.size)


def _subtract(a: Range, b: Range) -> Range | None:
    return _add(a, _negate(b))


def _multiply(a: Range, b: Range) -> Range | None:
    if a.size is None or b.size is None:
        return None  # zero times infinity
    low = 0.0 if min(a.low, b.low) >= 0 else -INFINITE
    return _sized(low, INFINITE, bound_of_product(a.size, b.size))


def _divide(a: Range, b: Range) -> Range | None:
    if a.size is None or b.low <= 0 or b.low == INFINITE:
        return None
    low = 0.0 if a.low >= 0 else -INFINITE
    high = a.high / b.low if a.high >= 0 else 0.0
    return _sized(low, high, bound_of_product(a.size, fixed_bound(1 / b.low)))


def _exponential(a: Range) -> Range:
    low = 0.99 * numbers.exp(a.low) if -_LARGE < a.low < _LARGE else 0.0
    return _sized(low, 1.01 * numbers.exp(a.high) if a.high < _LARGE else INFINITE, None)


_LARGE = 80.0
"""A number whose exponential float32 can hold."""


def _magnitude(a: Range) -> Range:
    return _sized(0.0, max(abs(a.low), abs(a.high)), a.size)


def _larger(a: Range, b: Range) -> Range:
    return _sized(max(a.low, b.low), max(a.high, b.high), bound_of_either(a.size, b.size))


def _smaller(a: Range, b: Range) -> Range:
    return _sized(min(a.low, b.low), min(a.high, b.high), bound_of_either(a.size, b.size))


def _same(a: Range) -> Range:
    return a


def _unit(a: Range) -> Range:
    return _sized(-1.0, 1.0, None)


_RULES: Mapping[type[Operation], Callable[..., Range | None]] = {
    arith.AddfOp: _add, arith.SubfOp: _subtract, arith.MulfOp: _multiply, arith.DivfOp: _divide, arith.NegfOp: _negate,
    arith.MaximumfOp: _larger, arith.MinimumfOp: _smaller, math.ExpOp: _exponential, math.AbsFOp: _magnitude,
    math.TanhOp: _unit, math.ErfOp: _unit, WidenOp: _same, NarrowOp: _same, CastOp: _same,
}  # fmt: skip
