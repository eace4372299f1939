"""Values of a body that are functions of one axis, as tables of all their values.

A float32 number computed of an index is not an index expression, yet it has few values where its axis has few points:
the table of an op is the op on the tables of its operands, one numpy array each, with the rounding and wrapping that
the op has. What could differ between machines has no table: conversions out of range, zero divisors, `max` of zeros
of both signs, functions that are not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, f32, f64, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import scalar
from ...dialects.sym import Expr, Ranges
from ._integer_folding import fits

#: points of an axis, and how far a function may be from the indices and constants that it is computed of
MAX_POINTS, MAX_DEPTH = 8192, 64

#: a numpy array of one value for each point, or of one value
Table = Any
_DTYPES: dict[Attribute, str] = {f32: "float32", f64: "float64", i64: "int64", i32: "int32", i1: "bool"}
_INTEGERS = (i64, i32)


class AxisPoints(NamedTuple):
    """An axis and its number of points; constants have the axis "" of one point."""

    name: str
    points: int


_CONSTANT = AxisPoints("", 1)


class AxisTables:
    """Tables of the values of one body, computed when asked for. `known` has the values that are expressions."""

    def __init__(self, known: Mapping[SSAValue, Expr]) -> None:
        self.known = known
        self.axes: dict[SSAValue, AxisPoints | None] = {}
        self.tables: dict[SSAValue, Table | None] = {}

    def axis(self, value: SSAValue, ranges: Ranges, depth: int = 0) -> AxisPoints | None:
        """The one axis that a value is a function of; None where it may depend on anything else."""
        if value not in self.axes:
            expr = self.known.get(value)
            found = self._axis_of_op(value, ranges, depth) if expr is None else _axis_of(expr, ranges)
            self.axes[value] = found
        return self.axes[value]

    def _axis_of_op(self, value: SSAValue, ranges: Ranges, depth: int) -> AxisPoints | None:
        op = value.owner
        if not isinstance(op, Operation) or not _has_table(op) or depth == MAX_DEPTH:
            return None
        found = _CONSTANT
        for operand in op.operands:
            axis = self.axis(operand, ranges, depth + 1)
            if axis is None or (axis is not _CONSTANT and found not in (_CONSTANT, axis)):
                return None
            found = found if axis is _CONSTANT else axis
        return found

    def table(self, value: SSAValue, ranges: Ranges) -> Table | None:
        """The values of a function of one axis in the order of its points, or one value where all are equal."""
        if self.axis(value, ranges) is None:
            return None
        if value not in self.tables:
            self.tables[value] = self._computed(value, ranges)
        return self.tables[value]

    def _computed(self, value: SSAValue, ranges: Ranges) -> Table | None:
        import numpy

        expr = self.known.get(value)
        if expr is not None:
            name, points = cast(AxisPoints, self.axes[value])
            numbers = expr.evaluate({name: numpy.arange(points)})
            return numpy.atleast_1d(numpy.asarray(numbers, dtype=_DTYPES[value.type]))
        op = cast(Operation, value.owner)
        operands = [self.table(operand, ranges) for operand in op.operands]
        if any(operand is None for operand in operands):
            return None
        with numpy.errstate(all="ignore"):
            return _folders()[type(op)](op, *operands)


def _axis_of(expr: Expr, ranges: Ranges) -> AxisPoints | None:
    if not fits(expr, ranges):
        return None
    if expr.is_constant:
        return _CONSTANT
    names = expr.free_symbols
    name = next(iter(names))
    size = ranges.sizes.get(name)
    points = size.as_int() if size is not None else None
    return AxisPoints(name, points) if len(names) == 1 and points and 0 < points <= MAX_POINTS else None


def _has_table(op: Operation) -> bool:
    """Whether the type of an op, and the types that it works on, have tables."""
    kind = type(op)
    if kind is scalar.CastOp:
        return op.properties["from"] in _DTYPES and op.properties["to"] in _DTYPES
    if kind not in _SUPPORTED or op.results[0].type not in _DTYPES:
        return False
    return kind not in _INTEGER_ARITHMETIC or op.results[0].type in _INTEGERS


_INTEGER_ARITHMETIC: tuple[type[Operation], ...] = (
    arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MinSIOp, arith.MaxSIOp, arith.FloorDivSIOp, arith.RemSIOp,
    scalar.FUNCTION_OPS["floordivi"], scalar.FUNCTION_OPS["remainderi"],
)  # fmt: skip
_SUPPORTED: frozenset[type[Operation]] = frozenset((
    *_INTEGER_ARITHMETIC,
    arith.ConstantOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.CmpiOp, arith.CmpfOp, arith.SelectOp,
    arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp, arith.MaximumfOp, arith.MinimumfOp,
    math.FloorOp, math.CeilOp, math.TruncOp, math.RoundEvenOp, math.AbsFOp,
))  # fmt: skip


@lru_cache(maxsize=1)
def _folders() -> dict[type[Operation], Callable[..., Table | None]]:
    """What computes the table of an op from it and the tables of its operands; None where machines may differ."""
    import numpy as np

    plain: dict[type[Operation], Callable[..., Table]] = {
        arith.AddiOp: np.add, arith.SubiOp: np.subtract, arith.MuliOp: np.multiply,
        arith.MinSIOp: np.minimum, arith.MaxSIOp: np.maximum,
        arith.AndIOp: np.bitwise_and, arith.OrIOp: np.bitwise_or, arith.XOrIOp: np.bitwise_xor,
        arith.AddfOp: np.add, arith.SubfOp: np.subtract, arith.MulfOp: np.multiply, arith.DivfOp: np.divide,
        arith.NegfOp: np.negative, arith.SelectOp: np.where,
        math.FloorOp: np.floor, math.CeilOp: np.ceil, math.TruncOp: np.trunc, math.RoundEvenOp: np.rint,
        math.AbsFOp: np.abs,
    }  # fmt: skip
    divisions: dict[type[Operation], Callable[..., Table]] = {
        arith.FloorDivSIOp: np.floor_divide, arith.RemSIOp: np.fmod,
        scalar.FUNCTION_OPS["floordivi"]: np.floor_divide, scalar.FUNCTION_OPS["remainderi"]: np.remainder,
    }  # fmt: skip
    extremes = {arith.MaximumfOp: np.maximum, arith.MinimumfOp: np.minimum}
    return {
        **{kind: lambda op, *xs, f=f: f(*xs) for kind, f in plain.items()},
        **{kind: lambda op, x, y, f=f: f(x, y) if (y > 0).all() else None for kind, f in divisions.items()},
        **{kind: lambda op, x, y, f=f: None if _have_both_zeros(x, y) else f(x, y) for kind, f in extremes.items()},
        arith.ConstantOp: lambda op: _constant(op),
        scalar.CastOp: lambda op, x: _converted(x, _DTYPES[op.target_element]),
        arith.CmpiOp: lambda op, x, y: _compare_integers(op.predicate.value.data, x, y),
        arith.CmpfOp: lambda op, x, y: _compare_floats(op.predicate.value.data, x, y),
    }


def _constant(op: Operation) -> Table | None:
    import numpy as np

    value, kind = op.properties["value"], op.results[0].type
    if isinstance(value, FloatAttr):
        return np.array([value.value.data], dtype=_DTYPES[kind])
    if not isinstance(value, IntegerAttr):
        return None
    number = value.value.data
    if kind == i1:
        return np.array([bool(number & 1)])
    info = np.iinfo(_DTYPES[kind])
    return np.array([number], dtype=info.dtype) if info.min <= number <= info.max else None


def _have_both_zeros(x: Table, y: Table) -> bool:
    import numpy as np

    return bool(((x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))).any())


def _converted(x: Table, dtype: str) -> Table | None:
    """A conversion as `scalar.cast` does it: to bool is `x != 0`, floats are truncated, integers wrap."""
    import numpy as np

    if dtype == "bool":
        return x != 0
    if x.dtype.kind == "f" and dtype in ("int64", "int32"):
        limit = float(1 << (62 if dtype == "int64" else 30))
        if not (np.abs(x) < limit).all():  # NaN is not less either
            return None
    return x.astype(dtype)


def _compare_integers(predicate: int, x: Table, y: Table) -> Table | None:
    """Predicates of arith.cmpi by number; the unsigned ones have no table."""
    import numpy as np

    compare = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
    return compare[predicate](x, y) if predicate < len(compare) and x.dtype.kind == "i" else None


def _compare_floats(predicate: int, x: Table, y: Table) -> Table:
    """Predicates of arith.cmpf by number: false, the ordered ones, ord, the unordered ones, uno, true."""
    import numpy as np

    unordered = np.isnan(x) | np.isnan(y)
    if predicate in (0, 7, 14, 15):
        return {0: unordered & False, 7: ~unordered, 14: unordered, 15: unordered | True}[predicate]
    compare = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)
    result = compare[(predicate - 1) % 7](x, y)
    return result & ~unordered if predicate < 7 else result | unordered
