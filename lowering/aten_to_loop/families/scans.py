"""Cumulative reductions along a dimension."""

from __future__ import annotations

from ....dialects.parametric import parametric
from ....dialects.sym import Expr
from ..dtypes import I64, LOW_PRECISION, computation_type
from ..nests import LoopBuilder, normalize_dim, row_major, shape_of
from ..pointwise import operand_as
from ..rules import Call, Replacement, add_rule
from ..scalar import Scalar
from .reductions import ordered, ordered_type, reject_wide_unsigned, size_of

#: elements of one row above which ATen, whose programs share a row, scans it faster than one program of a GPU
LONG_ROW = 65536


def _reject_one_long_row(call: Call) -> str | None:
    """Programs of a GPU scan rows beside each other. ATen rounds halves in each step, so that they stay here."""
    shape = call.type.shape
    length = size_of(shape, list(range(len(shape)))).as_int()
    if not call.target.needs_many_rows or call.type.element in LOW_PRECISION or length is None or length < LONG_ROW:
        return None
    return "a scan of one long row" if shape[normalize_dim(call["dim"], len(shape))].as_int() == length else None


@parametric
def _cumulative(b: LoopBuilder, call: Call, combiner: str) -> Replacement:
    """A running sum or product, in float32 for low precision."""
    source = call.tensor("self")
    type_ = call.type
    shape = type_.shape

    def body(index: tuple[Expr, ...]) -> Scalar:
        return operand_as(b.s, b.s.load(source, index), type_.element)

    if not shape:
        return b.generate(body, type_)
    wide = type_.with_(element=computation_type(type_.element))
    results = b.scan([combiner], shape, normalize_dim(call["dim"], len(shape)), body, wide)
    return results if wide == type_ else [b.pointwise(lambda x: x, type_, *results)]


@parametric
def _running_extremum(b: LoopBuilder, call: Call, combiner: str) -> Replacement:
    """The running extremum and its last position; positions are negated, as the monoid prefers the lower one."""
    s = b.s
    source = call.tensor("self")
    shape = shape_of(source)
    type_, index_type = call.types
    dim = normalize_dim(call["dim"], len(shape))
    if not shape:
        return [*b.generate(lambda _: s.load(source, ()), type_), *b.generate(lambda _: s.index(0), index_type)]

    def body(index: tuple[Expr, ...]) -> list[Scalar]:
        return [ordered(s, s.load(source, index)), s.index(-index[dim])]

    wide = row_major(shape, ordered_type(type_.element), type_.device)
    values, places = b.scan([combiner], shape, dim, body, wide, row_major(shape, I64, type_.device))
    return [b.pointwise(lambda x: x, type_, values), b.pointwise(lambda x: -x, index_type, places)]


def _logcumsumexp(b: LoopBuilder, call: Call) -> Replacement:
    """log of the running sum of exponentials, as (m, s) with the value m + log(s)."""
    s = b.s
    source = call.tensor("self")
    type_ = call.type
    if not type_.shape:
        return b.generate(lambda _: s.load(source, ()), type_)
    wide = row_major(type_.shape, computation_type(type_.element), type_.device)

    def body(index: tuple[Expr, ...]) -> list[Scalar]:
        return [s.widen(s.load(source, index)), s.constant(1, wide.element)]

    dim = normalize_dim(call["dim"], len(type_.shape))
    most, total = b.scan(["logsumexp"], type_.shape, dim, body, wide, wide)
    return b.pointwise(lambda m, t: m + s.log(t), type_, most, total)


add_rule("cumsum", _cumulative("sum"), _reject_one_long_row)
add_rule("cumprod", _cumulative("prod"), _reject_one_long_row)
add_rule("cummax", _running_extremum("argmax"), reject_wide_unsigned)
add_rule("cummin", _running_extremum("argmin"), reject_wide_unsigned)
add_rule("logcumsumexp", _logcumsumexp, _reject_one_long_row)
