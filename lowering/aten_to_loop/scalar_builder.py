"""Builds element bodies: scalar ops with PyTorch's semantics, loads, nested reductions.

Low-precision floats are widened to float32 where they are loaded and narrowed where they are yielded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import LocationAttr, StringAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import loop, scalar
from ...dialects.access import dynamic_name, segments
from ...dialects.aten.types import TensorType, scalar_type
from ...dialects.fast_create import OpT, create
from ...dialects.kernel import FLOATS8
from ...dialects.sym import AxesAttr, Expr, MapAttr, SymAttr, as_expr, symbol
from ...errors import UnsupportedError
from ...machines import HOST, eager
from .dtypes import BOOL, F32, I64, LOW_PRECISION, integer_limits, is_float, kind
from .scalar import Number, Scalar
from .scalar_ops import BINARY, COMPARE, constant_properties

_NO_PROPERTIES: dict[str, Attribute] = {}

#: a part of an index: an expression over axes, or a loaded int64
Index = Expr | int | Scalar
#: maps the axes of a nest to the scalars that its body yields
Body = Callable[[tuple[Expr, ...]], "Scalar | Sequence[Scalar]"]


@lru_cache(maxsize=1024)
def axis(name: str) -> Expr:
    """An axis as an index expression."""
    return symbol(name)


def _unary(op: type[Operation]) -> Callable[[ScalarBuilder, Scalar], Scalar]:
    def emit(self: ScalarBuilder, value: Scalar) -> Scalar:
        return Scalar(self, self.emit(op, (value.ssa,), value.ssa.type), value.element)

    emit.__doc__ = op.__doc__
    return emit


def _function(name: str) -> Callable[..., Scalar]:
    op = scalar.FUNCTION_OPS[name]

    def emit(self: ScalarBuilder, value: Scalar, *others: Number) -> Scalar:
        values = (value, *(self.number(other, value.element) for other in others))
        element = BOOL if op.FUNCTION.predicate else value.element
        type_ = i1 if op.FUNCTION.predicate else value.ssa.type
        return Scalar(self, self.emit(op, tuple(v.ssa for v in values), type_), element)

    emit.__doc__ = op.__doc__
    return emit


class ScalarBuilder:
    """Emits ops into the block at its cursor, and numbers reduce axes so that none repeats in what one ATen op becomes.

    `location` goes to every op, `device` is that of the current one's result. `emulate_precision_casts` rounds each
    yielded low-precision value for good, as eager does between its kernels.
    """

    def __init__(self, emulate_precision_casts: bool = False) -> None:
        self.block = Block()
        self.location: LocationAttr | None = None
        self.device = HOST
        self.emulate_precision_casts = emulate_precision_casts
        self._rounds = emulate_precision_casts
        self._constants: dict[tuple[str, Attribute], Scalar] = {}
        self._reduce_axes = 0

    def start(self, location: LocationAttr, rounded: bool = False) -> None:
        """Begin with another ATen op, whose results are rounded for good if it is marked `rounded`.

        Equal ones get equal axes, which is what passes and the verifier know again.
        """
        self.location = location
        self._rounds = self.emulate_precision_casts or rounded
        self._reduce_axes = 0

    def make(
        self,
        op: type[OpT],
        operands: tuple[SSAValue, ...],
        result_types: tuple[Attribute, ...],
        properties: Mapping[str, Attribute] = _NO_PROPERTIES,
        regions: tuple[Region, ...] = (),
    ) -> OpT:
        """An op at the current location, in no block yet."""
        return create(op, operands, result_types, properties, regions, self.location)

    def emit(
        self,
        op: type[Operation],
        operands: tuple[SSAValue, ...],
        type_: Attribute,
        properties: Mapping[str, Attribute] = _NO_PROPERTIES,
    ) -> SSAValue:
        """Append an op of one result and return the result."""
        made = create(op, operands, (type_,), properties, (), self.location)
        self.block.add_op(made)
        return made.results[0]

    # constants, conversions

    def constant(self, value: bool | int | float, element: Attribute) -> Scalar:
        """A constant of an element type; one op a body for equal ones. Integers wrap."""
        of = kind(element)
        value = bool(value) if of == "bool" else int(value) if is_integer_kind(of) else float(value)
        key = (repr(value), element)
        found = self._constants.get(key)
        if found is None:
            ssa = self.emit(arith.ConstantOp, (), scalar_type(element), constant_properties(*key))
            found = self._constants[key] = Scalar(self, ssa, element, value)
        return found

    def number(self, value: Number, element: Attribute) -> Scalar:
        """A Scalar as it is; a Python number or a symbolic integer as a scalar of the element type."""
        if isinstance(value, Scalar):
            return value
        if isinstance(value, Expr):
            known = value.as_int()
            return self.cast(self.index(value), element) if known is None else self.constant(known, element)
        return self.constant(value, element)

    def index(self, expr: Expr | int) -> Scalar:
        """An index expression as an int64 scalar."""
        expr = as_expr(expr)
        known = expr.as_int()
        if known is not None:
            return self.constant(known, I64)
        properties: dict[str, Attribute] = {"expr": SymAttr.of(expr)}
        return Scalar(self, self.emit(loop.IndexOp, (), i64, properties), I64)

    def cast(self, value: Scalar, element: Attribute) -> Scalar:
        """A conversion that the program asks for, with `Tensor.to`'s semantics."""
        if value.element == element:
            return value
        if value.known is not None and not _is_lossy(value.known, element):
            return self.constant(value.known, element)
        return self._convert(scalar.CastOp, value, element)

    def widen(self, value: Scalar) -> Scalar:
        """Into the type that computation uses; a no-op unless the value is of low precision."""
        is_narrow = value.element in LOW_PRECISION or isinstance(value.element, FLOATS8)
        return self._convert(scalar.WidenOp, value, F32) if is_narrow else value

    def store(self, value: Scalar, element: Attribute) -> Scalar:
        """Into the element type of the result: narrows low precision, casts anything else."""
        if value.element == element:
            return value
        if element in LOW_PRECISION and value.element == F32 and not self._rounds:
            return self._convert(scalar.NarrowOp, value, element)
        return self.cast(value, element)

    def _convert(self, op: type[Operation], value: Scalar, element: Attribute) -> Scalar:
        properties = {"from": value.element, "to": element}
        return Scalar(self, self.emit(op, (value.ssa,), scalar_type(element), properties), element)

    # arithmetic

    def binary(self, name: str, left: Scalar, right: Number) -> Scalar:
        """An op of `BINARY` for the element type of `left`; UnsupportedError where it has none."""
        right = self.number(right, left.element)
        op = BINARY.get((name, kind(left.element) or ""))
        if op is None:
            raise UnsupportedError(f"scalar code has no {name!r} of {left.element}")
        return Scalar(self, self.emit(op, (left.ssa, right.ssa), left.ssa.type), left.element)

    def compare(self, name: str, left: Scalar, right: Number) -> Scalar:
        """A bool; comparisons with NaN are false, but for `ne`. UnsupportedError where nothing compares the type."""
        right = self.number(right, left.element)
        found = COMPARE.get((name, kind(left.element) or ""))
        if found is None:
            raise UnsupportedError(f"scalar code does not compare {left.element}")
        op, properties = found
        return Scalar(self, self.emit(op, (left.ssa, right.ssa), i1, properties), BOOL)

    def where(self, condition: Scalar, then: Scalar, otherwise: Number) -> Scalar:
        """`then` where the condition holds."""
        other = self.number(otherwise, then.element)
        ssa = self.emit(arith.SelectOp, (condition.ssa, then.ssa, other.ssa), then.ssa.type)
        return Scalar(self, ssa, then.element)

    def max(self, left: Scalar, right: Number) -> Scalar:
        """The larger; NaN if either is."""
        return self.binary("max", left, right)

    def min(self, left: Scalar, right: Number) -> Scalar:
        """The smaller; NaN if either is."""
        return self.binary("min", left, right)

    def fmax(self, left: Scalar, right: Number) -> Scalar:
        """The larger; the other one if one is NaN."""
        return self.binary("fmax" if is_float(left.element) else "max", left, right)

    def fmin(self, left: Scalar, right: Number) -> Scalar:
        """The smaller; the other one if one is NaN."""
        return self.binary("fmin" if is_float(left.element) else "min", left, right)

    def clamp(self, value: Scalar, low: Number | None, high: Number | None) -> Scalar:
        """Bounded from below, then from above; NaN stays."""
        value = value if low is None else self._bounded(value, low, "lt", "max")
        return value if high is None else self._bounded(value, high, "gt", "min")

    def _bounded(self, value: Scalar, bound: Number, beyond: str, otherwise: str) -> Scalar:
        """By a choice where the bound is a known number: it keeps -0.0 at a bound of 0.0, as eager does."""
        limit = self.number(bound, value.element)
        if limit.known is None or limit.known != limit.known or not is_float(value.element):
            return self.binary(otherwise, value, limit)
        return self.where(self.compare(beyond, value, limit), limit, value)

    def negate(self, value: Scalar) -> Scalar:
        """-x; integers wrap."""
        if is_float(value.element):
            return Scalar(self, self.emit(arith.NegfOp, (value.ssa,), value.ssa.type), value.element)
        return self.constant(0, value.element) - value

    def invert(self, value: Scalar) -> Scalar:
        """Bitwise or logical not."""
        return value ^ (True if value.element == BOOL else -1)

    def abs(self, value: Scalar) -> Scalar:
        """The absolute value; the smallest integer stays itself."""
        of = kind(value.element)
        if of in ("unsigned", "bool"):
            return value
        op = math_dialect.AbsFOp if of == "float" else math_dialect.AbsIOp
        return Scalar(self, self.emit(op, (value.ssa,), value.ssa.type), value.element)

    def truthy(self, value: Scalar) -> Scalar:
        """`x != 0` as a bool; NaN is true."""
        return value if value.element == BOOL else value.ne(0)

    def sign(self, value: Scalar) -> Scalar:
        """-1, 0 or 1 in the type of x; 0 for NaN."""
        if value.element == BOOL:
            return value
        positive = (value > 0).to(value.element)
        return positive if kind(value.element) == "unsigned" else positive - (value < 0).to(value.element)

    # functions of floats

    ceil = _unary(math_dialect.CeilOp)
    floor = _unary(math_dialect.FloorOp)
    trunc = _unary(math_dialect.TruncOp)
    round = _unary(math_dialect.RoundEvenOp)
    sqrt = _unary(math_dialect.SqrtOp)
    rsqrt = _unary(math_dialect.RsqrtOp)
    exp = _unary(math_dialect.ExpOp)
    exp2 = _unary(math_dialect.Exp2Op)
    expm1 = _unary(math_dialect.ExpM1Op)
    log = _unary(math_dialect.LogOp)
    log2 = _unary(math_dialect.Log2Op)
    log10 = _unary(math_dialect.Log10Op)
    log1p = _unary(math_dialect.Log1pOp)
    sin = _unary(math_dialect.SinOp)
    cos = _unary(math_dialect.CosOp)
    tan = _unary(math_dialect.TanOp)
    asin = _unary(math_dialect.AsinOp)
    acos = _unary(math_dialect.AcosOp)
    atan = _unary(math_dialect.AtanOp)
    sinh = _unary(math_dialect.SinhOp)
    cosh = _unary(math_dialect.CoshOp)
    tanh = _unary(math_dialect.TanhOp)
    asinh = _unary(math_dialect.AsinhOp)
    acosh = _unary(math_dialect.AcoshOp)
    atanh = _unary(math_dialect.AtanhOp)
    erf = _unary(math_dialect.ErfOp)
    isnan, isinf, isfinite, signbit = map(_function, ("isnan", "isinf", "isfinite", "signbit"))
    fmod, hypot, nextafter = map(_function, ("fmod", "hypot", "nextafter"))

    def function(self, name: str, value: Scalar, *others: Number) -> Scalar:
        """Any function of the scalar dialect, by name."""
        return _FUNCTIONS[name](self, value, *others)

    def sigmoid(self, value: Scalar) -> Scalar:
        """1 / (1 + exp(-x))"""
        return 1.0 / (self.exp(-value) + 1.0)

    def pow(self, base: Scalar, exponent: Number) -> Scalar:
        """base ** exponent; integers wrap."""
        return self.binary("power", base, exponent)

    # integer division

    def _safe_divisor(self, divisor: Scalar) -> tuple[Scalar, Scalar | None]:
        """A divisor that the processor accepts, and where it stands for -1, whose quotient may not fit.

        Emits the check for zero, unless the value is known; eager's CUDA kernels do not check.
        """
        known = divisor.known
        if known is not None and known not in (0, -1):
            return divisor, None
        zero = divisor.eq(0)
        if eager(self.device).checks_divisors:
            self.check(~zero, "ZeroDivisionError", "RuntimeError")
        if kind(divisor.element) == "unsigned":
            return self.where(zero, self.constant(1, divisor.element), divisor), None
        minus_one = divisor.eq(-1)
        return self.where(zero | minus_one, self.constant(1, divisor.element), divisor), minus_one

    def integer_quotient(self, left: Scalar, right: Number, floor: bool) -> Scalar:
        """left // right rounded to -inf or to zero; a zero divisor is an error of the kernel."""
        divisor, minus_one = self._safe_divisor(self.number(right, left.element))
        if floor and kind(left.element) == "signed":
            quotient = self.function("floordivi", left, divisor)
        else:
            quotient = self.binary("quotient", left, divisor)
        return quotient if minus_one is None else self.where(minus_one, -left, quotient)

    def integer_remainder(self, left: Scalar, right: Number, floor: bool) -> Scalar:
        """left - right * quotient: the sign is that of right for `floor`, else that of left."""
        divisor, _ = self._safe_divisor(self.number(right, left.element))
        if floor and kind(left.element) == "signed":
            return self.function("remainderi", left, divisor)
        return self.binary("rest", left, divisor)

    # memory, control

    def load(
        self,
        source: SSAValue,
        index: Iterable[Index],
        mask: Scalar | None = None,
        other: Number = 0,
    ) -> Scalar:
        """The element at an index whose parts are expressions or int64 scalars, in the type of the tensor.

        Where `mask` is false nothing is read and the value is `other`.
        """
        exprs: list[Expr] = []
        dynamic: list[SSAValue] = []
        for part in index:
            if isinstance(part, Scalar):
                exprs.append(axis(dynamic_name(len(dynamic))))
                dynamic.append(part.ssa)
            else:
                exprs.append(as_expr(part))
        return self.load_map(source, MapAttr.of(*exprs), dynamic, mask, other)

    def load_map(
        self,
        source: SSAValue,
        index_map: MapAttr,
        dynamic: Sequence[SSAValue] = (),
        mask: Scalar | None = None,
        other: Number = 0,
    ) -> Scalar:
        """As `load`, with a finished map."""
        type_ = source.type
        assert isinstance(type_, TensorType)
        element = type_.element
        masked = () if mask is None else (mask.ssa, self.number(other, element).ssa)
        n = 1 if masked else 0
        properties: dict[str, Attribute] = {
            "map": index_map, "operandSegmentSizes": segments(1, len(dynamic), n, n),
        }  # fmt: skip
        ssa = self.emit(loop.LoadOp, (source, *dynamic, *masked), scalar_type(element), properties)
        return Scalar(self, ssa, element)

    def check(self, condition: Scalar, message: str, error: str) -> None:
        """An error of the kernel where the condition is false: message and name of the Python exception."""
        properties: dict[str, Attribute] = {"message": StringAttr(message), "error": StringAttr(error)}
        self.block.add_op(self.make(loop.AssertOp, (condition.ssa,), (), properties))

    def reduce(self, combiners: Sequence[str], sizes: Sequence[Expr], body: Body) -> list[Scalar]:
        """A reduction over axes of the given sizes; `body` gets the axes as expressions."""
        names = [f"r{self._reduce_axes + k}" for k in range(len(sizes))]
        self._reduce_axes += len(names)
        region, values = self.region(lambda: body(tuple(axis(name) for name in names)))
        properties: dict[str, Attribute] = {
            "axes": AxesAttr.of(*zip(names, sizes, strict=True)),
            "combiners": loop.combiner_attr(*combiners),
        }
        made = self.make(loop.ReduceOp, (), tuple(v.ssa.type for v in values), properties, (region,))
        self.block.add_op(made)
        return [Scalar(self, ssa, v.element) for ssa, v in zip(made.results, values, strict=True)]

    def region(self, body: Callable[[], Scalar | Sequence[Scalar]]) -> tuple[Region, Sequence[Scalar]]:
        """Run `body` with the cursor in a new block; the region and what it yields."""
        outer, constants = self.block, self._constants
        self.block, self._constants = Block(), dict(constants)
        inner = self.block
        try:
            result = body()
            values = (result,) if isinstance(result, Scalar) else result
            self.block.add_op(self.make(loop.YieldOp, tuple(v.ssa for v in values), ()))
            return Region(self.block), values
        except UnsupportedError:
            inner.drop_all_references()  # to values that stay
            raise
        finally:
            self.block, self._constants = outer, constants


def is_integer_kind(of: str | None) -> bool:
    """Whether a kind is that of integers."""
    return of in ("signed", "unsigned")


def _is_lossy(known: bool | int | float, element: Attribute) -> bool:
    """Whether converting a constant needs the semantics of the cast op."""
    if isinstance(known, float) and not is_float(element):
        return not (math.isfinite(known) and known == int(known) and _fits(int(known), element))
    return is_integer_kind(kind(element)) and not _fits(int(known), element)


def _fits(value: int, element: Attribute) -> bool:
    low, high = integer_limits(element)
    return low <= value <= high


_FUNCTIONS: dict[str, Callable[..., Scalar]] = {name: _function(name) for name in scalar.FUNCTION_OPS}
