"""Integer arithmetic on index values, folded into index expressions; conditions decided by ranges.

A rule gets the operands of an op as expressions and gives the result, or None for what it cannot tell. With x, y
64-bit values that stand for integers (sizes, indices and sums of them, which do not overflow):

    addi x, y == x + y      select true, x, y == x       cmpi slt, x, y == true where ranges prove x < y
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation

from ...dialects import scalar
from ...dialects.sym import Expr, Ranges, bounds, const, prove_eq, prove_le, prove_lt, smax, smin

_LIMIT = 1 << 62
ArithmeticRule = Callable[[Expr, Expr, Ranges], Expr | None]


def _multiply(x: Expr, y: Expr, ranges: Ranges) -> Expr | None:
    product = x * y
    return product if x.is_constant or y.is_constant or fits(product, ranges) else None


def _floordiv(x: Expr, y: Expr, ranges: Ranges) -> Expr | None:
    return x // y if prove_lt(const(0), y, ranges) else None


def _remainder(x: Expr, y: Expr, ranges: Ranges) -> Expr | None:
    return x % y if prove_lt(const(0), y, ranges) else None


def _truncating_div(x: Expr, y: Expr, ranges: Ranges) -> Expr | None:
    return x // y if prove_le(const(0), x, ranges) and prove_lt(const(0), y, ranges) else None


def _truncating_rem(x: Expr, y: Expr, ranges: Ranges) -> Expr | None:
    return x % y if prove_le(const(0), x, ranges) and prove_lt(const(0), y, ranges) else None


ARITHMETIC: dict[type[Operation], ArithmeticRule] = {
    arith.AddiOp: lambda x, y, _: x + y,
    arith.SubiOp: lambda x, y, _: x - y,
    arith.MuliOp: _multiply,
    arith.MinSIOp: lambda x, y, _: smin(x, y),
    arith.MaxSIOp: lambda x, y, _: smax(x, y),
    arith.DivSIOp: _truncating_div,
    arith.RemSIOp: _truncating_rem,
    arith.FloorDivSIOp: _floordiv,
    scalar.FUNCTION_OPS["floordivi"]: _floordiv,
    scalar.FUNCTION_OPS["remainderi"]: _remainder,
}


def fits(expr: Expr, ranges: Ranges) -> bool:
    """Whether an expression is known to fit 64 bits."""
    lo, hi = bounds(expr, ranges)
    return lo is not None and hi is not None and lo >= -_LIMIT and hi <= _LIMIT


def is_small(expr: Expr) -> bool:
    """Whether no number in an expression is so large that 64-bit arithmetic could wrap, as the program's would."""
    return all(-_LIMIT <= coefficient <= _LIMIT for _, coefficient in expr.terms)


def _not(known: bool | None) -> bool | None:
    return None if known is None else not known


def _less(x: Expr, y: Expr, ranges: Ranges) -> bool | None:
    if prove_lt(x, y, ranges):
        return True
    return False if prove_le(y, x, ranges) else None


def _equal(x: Expr, y: Expr, ranges: Ranges) -> bool | None:
    if prove_eq(x, y, ranges):
        return True
    return False if prove_lt(x, y, ranges) or prove_lt(y, x, ranges) else None


#: number of the predicate of arith.cmpi -> what ranges tell of it; unsigned ones need more than we know
_COMPARISONS: dict[int, Callable[[Expr, Expr, Ranges], bool | None]] = {
    0: _equal,
    1: lambda x, y, r: _not(_equal(x, y, r)),
    2: _less,
    3: lambda x, y, r: _not(_less(y, x, r)),
    4: lambda x, y, r: _less(y, x, r),
    5: lambda x, y, r: _not(_less(x, y, r)),
}


#: what is true where a comparison is not. Of floats that of an ordered one is unordered: NaN < x is false
_OPPOSITE_INTEGERS = {0: 1, 2: 5, 3: 4, 6: 9, 7: 8}
_OPPOSITE_FLOATS = {0: 15, 1: 13, 2: 12, 3: 11, 4: 10, 5: 9, 6: 8, 7: 14}
_OPPOSITE = {
    kind: table | {second: first for first, second in table.items()}
    for kind, table in ((arith.CmpiOp, _OPPOSITE_INTEGERS), (arith.CmpfOp, _OPPOSITE_FLOATS))
}


def opposite_comparison(op: arith.CmpiOp | arith.CmpfOp) -> Operation:
    """A comparison that is true where another one is false."""
    predicate = IntegerAttr(_OPPOSITE[type(op)][op.predicate.value.data], i64)
    properties = {**op.properties, "predicate": predicate}
    return type(op).create(operands=tuple(op.operands), result_types=tuple(op.result_types), properties=properties)


def decide(predicate: int, x: Expr, y: Expr, ranges: Ranges) -> bool | None:
    """The value of a comparison, None where ranges do not decide it."""
    rule = _COMPARISONS.get(predicate)
    return rule(x, y, ranges) if rule is not None else None
