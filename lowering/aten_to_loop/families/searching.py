"""Searching in lists: membership and buckets, in short ones by comparing with every element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import SSAValue

from ....dialects.parametric import parametric
from ....dialects.sym import Expr
from ..dtypes import I64, common_type
from ..nests import LoopBuilder, shape_of, type_of
from ..pointwise import operand_as
from ..rules import Call, Replacement, lowers
from ..scalar import Scalar
from ..scalar_builder import Index, ScalarBuilder
from .reductions import size_of

#: the longest list that comparing with every element still beats ATen's search on
LONGEST = 128
#: boundaries from which on, and up to which, a GPU searches by halves: each thread would look at all of a list
HALVED, MOST_HALVED = 16, 1 << 16


def _count(tensor: SSAValue) -> int | None:
    shape = shape_of(tensor)
    return size_of(shape, list(range(len(shape)))).as_int()


@parametric
def _reject_long(call: Call, name: str) -> str | None:
    value = call.argument(name)
    count = _count(value) if isinstance(value, SSAValue) else 1
    by_halves = name == "boundaries" and call.target.needs_many_rows
    longest = MOST_HALVED if by_halves else LONGEST
    if count is None or count > longest:
        return f"a search in more than {longest} elements"
    return None


def _promoted(b: LoopBuilder, value: Any, index: tuple[Expr, ...], element: Any) -> Scalar:
    """An element, or a number, in a common type."""
    if not isinstance(value, SSAValue):
        return b.s.number(value, element)
    return operand_as(b.s, b.s.load(value, index), element)


def _operand_type(value: Any) -> Any:
    return type_of(value) if isinstance(value, SSAValue) else value


@lowers("isin.Tensor_Tensor", _reject_long("test_elements"))
@lowers("isin.Scalar_Tensor", _reject_long("test_elements"))
@lowers("isin.Tensor_Scalar")
def _isin(b: LoopBuilder, call: Call) -> Replacement:
    """Whether any of the test elements equals the element."""
    s = b.s
    element = call.argument("elements" if call.has("elements") else "element")
    test = call.argument("test_elements" if call.has("test_elements") else "test_element")
    common = common_type((_operand_type(element), _operand_type(test)))
    invert = call["invert"]

    def body(index: tuple[Expr, ...]) -> Scalar:
        value = _promoted(b, element, index, common)
        if not isinstance(test, SSAValue):
            found = value.eq(_promoted(b, test, (), common))
        else:
            sizes = shape_of(test)

            def same(inner: tuple[Expr, ...]) -> Scalar:
                return value.eq(_promoted(b, test, inner, common))

            (found,) = s.reduce(["any"], sizes, same) if sizes else (same(()),)
        return ~found if invert else found

    return b.generate(body, call.type)


@lowers("bucketize.Tensor", _reject_long("boundaries"))
def _bucketize(b: LoopBuilder, call: Call) -> Replacement:
    """How many boundaries the element does not lie before; NaN lies behind all."""
    s = b.s
    source, boundaries = call.tensor("self"), call.tensor("boundaries")
    common = common_type((type_of(source), type_of(boundaries)))
    right, count = call["right"], _count(boundaries) or 0
    by_halves = call.target.needs_many_rows and count >= HALVED

    def is_behind(value: Scalar, place: Index) -> Scalar:
        boundary = operand_as(s, s.load(boundaries, (place,)), common)
        return ~(boundary > value if right else boundary >= value)

    def body(index: tuple[Expr, ...]) -> Scalar:
        value = _promoted(b, source, index, common)
        if by_halves:
            return _by_halves(s, count, lambda place: is_behind(value, place))
        return s.reduce(["sum"], shape_of(boundaries), lambda inner: is_behind(value, inner[0]).to(I64))[0]

    return b.generate(body, call.type)


def _by_halves(s: ScalarBuilder, count: int, is_behind: Callable[[Scalar], Scalar]) -> Scalar:
    """How many of so many places in order are behind something: those of every power of two that still fits."""
    found = s.number(0, I64)
    for step in (1 << k for k in reversed(range(count.bit_length()))):
        place = found + (step - 1)
        inside = place < count
        found = s.where(inside & is_behind(s.where(inside, place, count - 1)), found + step, found)
    return found
