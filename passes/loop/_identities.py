"""Identities of monoids as constants of a body."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.loop import MONOIDS

FLOATS = (BFloat16Type, Float16Type, Float32Type, Float64Type)

#: monoids for which seeing an element again changes nothing
IDEMPOTENT = frozenset(("max", "min", "any", "all", "argmax", "argmin"))

#: identity of each value of the other monoids
NUMBERS: dict[str, tuple[float, ...]] = {
    "sum": (0,), "prod": (1,), "xor": (0,), "welford": (0, 0, 0), "logsumexp": (float("-inf"), 0),
    "softmax_sum": (float("-inf"), 0, 0),
}  # fmt: skip


def constant(number: float, scalar: Attribute) -> Operation:
    """A constant of a type that `has_constants`."""
    if isinstance(scalar, IntegerType):
        value: Attribute = IntegerAttr(int(number), scalar)
    else:
        assert isinstance(scalar, FLOATS)
        value = FloatAttr(float(number), scalar)
    return arith.ConstantOp.create(properties={"value": value}, result_types=(scalar,))


def has_constants(values: Sequence[SSAValue]) -> bool:
    """Whether arith has constants of the types of all values."""
    return all(isinstance(v.type, (IntegerType, *FLOATS)) for v in values)


def constant_identity(names: Sequence[str], values: Sequence[SSAValue], ops: list[Operation]) -> list[SSAValue] | None:
    """Identities of the named monoids for values of their types, made by ops appended to `ops`.

    None when all are idempotent. An idempotent monoid beside others gets the value itself.
    """
    if all(name in IDEMPOTENT for name in names):
        return None
    found: list[SSAValue] = []
    for name in names:
        for position in range(MONOIDS[name].arity):
            value = values[len(found)]
            if name in IDEMPOTENT:
                found.append(value)
                continue
            op = constant(NUMBERS[name][position], value.type)
            ops.append(op)
            found.append(op.results[0])
    return found
