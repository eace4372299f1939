"""Reductions over dimensions."""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Attribute, SSAValue

from ....dialects.aten.types import ELEMENT_TYPES, TensorType
from ....dialects.parametric import parametric
from ....dialects.sym import ONE, ZERO, Expr, prove_lt
from ....records import dataclass
from ..dtypes import BOOL, F32, I32, I64, accumulation_type, computation_type, is_float, kind, lowest
from ..nests import LoopBuilder, Shape, normalize_dims, shape_of, type_of
from ..pointwise import operand_as
from ..reshape import linearize
from ..rules import Call, Replacement, add_rule, lowers
from ..scalar import Number, Scalar
from ..scalar_builder import ScalarBuilder


def reduced(call: Call) -> tuple[SSAValue, Shape, list[int]]:
    """What an op reduces: the source, its sizes, and the dimensions; all where it names none."""
    source = call.tensor("self")
    shape = shape_of(source)
    return source, shape, normalize_dims(call["dim"] if call.has("dim") else None, len(shape))


def size_of(shape: Shape, dims: list[int]) -> Expr:
    """How many elements each reduction takes."""
    return math.prod((shape[d] for d in dims), start=ONE)


def _same(s: ScalarBuilder, value: Scalar) -> Scalar:
    return value


@dataclass(frozen=True)
class Fold:
    """A reduction to one value: prepare an element, combine, finish with the number of elements.

    Elements arrive in the type of computation of the result, or as they are when `own`.
    """

    combiner: str
    prepare: Callable[[ScalarBuilder, Scalar], Scalar] = _same
    finish: Callable[[ScalarBuilder, Scalar, Expr], Scalar] | None = None
    own: bool = False


def fold(b: LoopBuilder, call: Call, how: Fold) -> Replacement:
    """Lower a reduction to one value."""
    s = b.s
    source, shape, dims = reduced(call)
    element = call.type.element

    def body(index: tuple[Expr, ...]) -> Scalar:
        value = s.load(source, index)
        return how.prepare(s, s.widen(value) if how.own else operand_as(s, value, element))

    def finish(value: Scalar) -> Scalar:
        if not dims and how.combiner == "sum" and is_float(value.element):
            value = value + 0.0  # a sum starts at 0.0, so it is never -0.0
        return value if how.finish is None else how.finish(s, value, size_of(shape, dims))

    return b.reduce([how.combiner], shape, dims, body, call.type, finish=finish)


def _mean(s: ScalarBuilder, value: Scalar, size: Expr) -> Scalar:
    return value / s.number(size, value.element)


_FOLDS = {
    "sum sum.dim_IntList": Fold("sum"),
    "mean mean.dim": Fold("sum", finish=_mean),
    "prod prod.dim_int": Fold("prod"),
    "nansum": Fold("sum", lambda s, x: s.where(s.isnan(x), s.constant(0, x.element), x) if is_float(x.element) else x),
    "any any.dim any.dims _is_any_true": Fold("any", lambda s, x: s.truthy(x), own=True),
    "all all.dim all.dims _is_all_true": Fold("all", lambda s, x: s.truthy(x), own=True),
    "count_nonzero count_nonzero.dim_IntList": Fold("sum", lambda s, x: s.truthy(x).to(I64), own=True),
}
for _names, _how in _FOLDS.items():
    add_rule(_names, lambda b, call, how=_how: fold(b, call, how))


# extrema


def ordered_type(element: Attribute) -> Attribute:
    """A type whose signed order is that of the element type, which signless monoids need."""
    if kind(element) in ("unsigned", "bool"):
        return I32 if element == BOOL else I64
    return computation_type(element)


def ordered(s: ScalarBuilder, value: Scalar) -> Scalar:
    """In the type of `ordered_type`."""
    return s.widen(value).to(ordered_type(value.element))


def comparable(s: ScalarBuilder, value: Scalar) -> Scalar:
    """A number of the same width in whose signed order the values are: x - 2^(n - 1) for unsigned ones of n bits.

    Extrema of bytes so stay bytes, of which a register has four times as many as of 32 bits.
    """
    if kind(value.element) != "unsigned":
        return ordered(s, value)
    assert isinstance(value.element, IntegerType)
    signed = IntegerType(value.element.width.data)
    return value.to(signed) ^ lowest(signed)


def compared(value: Scalar, element: Attribute) -> Scalar:
    """The value of the element type that `comparable` was given."""
    return (value ^ lowest(value.element)).to(element) if kind(element) == "unsigned" else value


def reject_wide_unsigned(call: Call) -> str | None:
    """uint64 has no wider signed type to be ordered in."""
    if type_of(call.tensor("self")).element == ELEMENT_TYPES["uint64"]:
        return "the order of uint64"
    return None


def _reject_empty(call: Call) -> str | None:
    """Eager raises for the extremum of nothing; where there may be nothing, a call lets it say so."""
    _, shape, dims = reduced(call)
    size = size_of(shape, dims)
    if size.as_int() == 0 or (call.ranges is not None and not prove_lt(ZERO, size, call.ranges)):
        return "the extremum of what may be empty"
    return reject_wide_unsigned(call)


def _reject_position(call: Call) -> str | None:
    """Eager has no argmax of bool; a call lets it say so."""
    return "the position of a bool" if type_of(call.tensor("self")).element == BOOL else reject_wide_unsigned(call)


def _extremum(combiner: str) -> Callable[[LoopBuilder, Call], Replacement]:
    def lower(b: LoopBuilder, call: Call) -> Replacement:
        element = type_of(call.tensor("self")).element
        return fold(b, call, Fold(combiner, comparable, lambda _, value, __: compared(value, element), own=True))

    return lower


@parametric
def _indexed_extremum(b: LoopBuilder, call: Call, combiner: str, with_value: bool) -> Replacement:
    """The position, in the reduced dimensions, of the extremum; before it the value itself where asked."""
    s = b.s
    source, shape, dims = reduced(call)

    def body(index: tuple[Expr, ...]) -> list[Scalar]:
        position = linearize([index[d] for d in dims], [shape[d] for d in dims])
        return [ordered(s, s.load(source, index)), s.index(position)]

    def finish(value: Scalar, position: Scalar) -> list[Scalar]:
        return [value, position] if with_value else [position]

    return b.reduce([combiner], shape, dims, body, *call.types, finish=finish)


for _name, _side in (("max", "max"), ("min", "min")):
    # the meta functions of amax, argmax and aminmax refuse what is empty, and guard on it; these do not
    add_rule(_side, _extremum(_side), _reject_empty)
    add_rule(f"{_side}.dim", _indexed_extremum(f"arg{_side}", with_value=True), _reject_empty)
    add_rule(f"a{_side}", _extremum(_side), reject_wide_unsigned)
    add_rule(f"arg{_side}", _indexed_extremum(f"arg{_side}", with_value=False), _reject_position)


@lowers("aminmax", reject_wide_unsigned)
def _aminmax(b: LoopBuilder, call: Call) -> Replacement:
    source, shape, dims = reduced(call)

    def body(index: tuple[Expr, ...]) -> list[Scalar]:
        value = comparable(b.s, b.s.load(source, index))
        return [value, value]

    def finish(*values: Scalar) -> list[Scalar]:
        return [compared(value, type_of(source).element) for value in values]

    return b.reduce(["min", "max"], shape, dims, body, *call.types, finish=finish)


# moments


def moments(
    b: LoopBuilder,
    shape: Shape,
    dims: list[int],
    element: Callable[[tuple[Expr, ...]], Scalar],
    type_: TensorType,
) -> list[SSAValue]:
    """The mean and the sum of squared deviations from it, as tensors of `type_`.

    `element` gives the value at an index of the domain, in the element type of `type_`. On a GPU it is one reduction
    until `loop-expand-moments` knows how rows lie in memory; elsewhere it is two passes, which are more exact.
    """
    s = b.s
    size = size_of(shape, dims)
    on_gpu = type_.element == F32 and b.targets.target(type_.device).needs_many_rows
    if on_gpu and dims and prove_lt(ZERO, size, b.ranges):
        return _joint_moments(b, shape, dims, element, type_)
    keepdim = len(type_.shape) == len(shape)
    (mean,) = b.reduce(["sum"], shape, dims, element, type_, finish=lambda total: _mean(s, total, size))

    def deviation(index: tuple[Expr, ...]) -> Scalar:
        row = [part for d, part in enumerate(index) if keepdim or d not in dims]
        difference = element(index) - b.at(mean, row)
        return difference * difference

    return [mean, *b.reduce(["sum"], shape, dims, deviation, type_)]


def _joint_moments(
    b: LoopBuilder, shape: Shape, dims: list[int], element: Callable[[tuple[Expr, ...]], Scalar], type_: TensorType
) -> list[SSAValue]:
    """The same by one reduction. With an infinity, or a sum that overflows, the mean is what it is in two passes."""
    s = b.s

    def step(index: tuple[Expr, ...]) -> list[Scalar]:
        value = element(index)
        return [value, value, s.constant(0, value.element), s.constant(1, value.element)]

    def finish(total: Scalar, mean: Scalar, squares: Scalar, count: Scalar) -> list[Scalar]:
        exact = _mean(s, total, size_of(shape, dims))
        difference = exact - mean
        return [exact, squares + difference * difference * count]

    return b.reduce(["sum", "welford"], shape, dims, step, type_, type_, finish=finish)


def _correction(call: Call) -> Number:
    if call.has("unbiased"):
        return int(call["unbiased"])
    given = call["correction"]
    return 1 if given is None else given


@parametric
def _variance(b: LoopBuilder, call: Call, root: bool, with_mean: bool) -> Replacement:
    s = b.s
    source, shape, dims = reduced(call)
    wide = accumulation_type(call.type.element, call.type.device, wide=True)
    stats = TensorType.get(call.type.shape, wide, None, call.type.device)
    mean, squares = moments(b, shape, dims, lambda i: s.widen(s.load(source, i)).to(wide), stats)
    size = size_of(shape, dims)

    def finish(total: Scalar) -> Scalar:
        divisor = s.number(size, wide) - s.number(_correction(call), wide)
        variance = total / s.max(divisor, 0)
        return s.sqrt(variance) if root else variance

    result = b.pointwise(finish, call.type, squares)
    return [result, b.pointwise(lambda m: m, call.types[1], mean)] if with_mean else result


for _packet, _root in (("var", False), ("std", True)):
    add_rule(f"{_packet} {_packet}.dim {_packet}.correction", _variance(_root, with_mean=False))
    add_rule(f"{_packet}_mean {_packet}_mean.dim {_packet}_mean.correction", _variance(_root, with_mean=True))


# norms


def _reject_unknown_order(call: Call) -> str | None:
    order = call["ord" if call.has("ord") else "p"]
    return "the order of the norm is known only when it runs" if isinstance(order, Expr) else None


def _norm(b: LoopBuilder, call: Call) -> Replacement:
    """The norm of one element is its magnitude, as eager has it: powers of it might overflow."""
    order = call["ord" if call.has("ord") else "p"]
    order = 2.0 if order is None else float(order)
    _, shape, dims = reduced(call)
    if order and size_of(shape, dims) is ONE:
        order = math.inf
    return fold(b, call, _norm_fold(order))


def _norm_fold(order: float) -> Fold:
    if math.isinf(order):
        return Fold("max" if order > 0 else "min", lambda s, x: s.abs(x))
    if order == 0:
        return Fold("sum", lambda s, x: x.ne(0).to(x.element))
    if order == 1:
        return Fold("sum", lambda s, x: s.abs(x))
    if order == 2:
        return Fold("sum", lambda s, x: x * x, lambda s, total, _: s.sqrt(total))
    return Fold("sum", lambda s, x: s.pow(s.abs(x), order), lambda s, total, _: s.pow(total, 1.0 / order))


add_rule(
    "linalg_vector_norm norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dtype norm.ScalarOpt_dim_dtype",
    _norm,
    _reject_unknown_order,
)


@lowers("logsumexp")
def _logsumexp(b: LoopBuilder, call: Call) -> Replacement:
    """max + log(sum(exp(x - max))), where an infinite max counts as 0."""
    s = b.s
    source, shape, dims = reduced(call)
    element = call.type.element
    type_ = TensorType.get(call.type.shape, accumulation_type(element, call.type.device), None, call.type.device)

    def value(index: tuple[Expr, ...]) -> Scalar:
        return operand_as(s, s.load(source, index), element)

    def finite(most: Scalar) -> Scalar:
        return s.where(s.isinf(most), s.constant(0, most.element), most)

    (shift,) = b.reduce(["max"], shape, dims, value, type_, finish=finite)
    keepdim = len(type_.shape) == len(shape)

    def shifted(index: tuple[Expr, ...]) -> Scalar:
        row = [part for d, part in enumerate(index) if keepdim or d not in dims]
        return s.exp(value(index) - b.at(shift, row))

    (total,) = b.reduce(["sum"], shape, dims, shifted, type_)
    return b.pointwise(lambda t, m: s.log(t) + m, call.type, total, shift)
