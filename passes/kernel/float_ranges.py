"""What is known of the size of a float of a kernel from the ops that compute it."""

from __future__ import annotations

import math

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.ir import SSAValue

from ...dialects import scalar

#: ops with results that are 0, positive or NaN
_NOT_NEGATIVE = (math_dialect.ExpOp, math_dialect.Exp2Op, math_dialect.AbsFOp, math_dialect.SqrtOp)


def is_at_least_one(value: SSAValue) -> bool:
    """Whether a float is certainly at least 1, or NaN, at a glance: a constant, or one and something not negative."""
    op = value.owner
    if isinstance(op, arith.AddfOp):
        pairs = ((op.lhs, op.rhs), (op.rhs, op.lhs))
        return any(is_at_least_one(one) and _is_not_negative(other) for one, other in pairs)
    return _constant(value) >= 1.0


def is_lost_when_tiny(value: SSAValue) -> bool:
    """Whether a float only enters sums with a constant of at least 1, in which numbers below the normal ones vanish."""
    sums = [use.operation for use in value.uses]
    return all(isinstance(op, arith.AddfOp) and max(_constant(v) for v in op.operands) >= 1.0 for op in sums)


def _is_not_negative(value: SSAValue) -> bool:
    op = value.owner
    if isinstance(op, arith.MulfOp) and op.lhs is op.rhs:
        return True
    if isinstance(op, scalar.INSERTED_CONVERSIONS):
        return _is_not_negative(op.operands[0])
    return isinstance(op, _NOT_NEGATIVE) or _constant(value) >= 0.0


def _constant(value: SSAValue) -> float:
    number = scalar.number_of(value)
    return -math.inf if number is None else number
