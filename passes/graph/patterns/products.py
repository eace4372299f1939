"""Matrix products and sums of them."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from ....dialects.aten import TensorType
from .._pattern import Pattern, PatternBuilder, PatternCall
from .._replacement import ReplacementBuilder, type_of


def _matrix_plus(aten: PatternBuilder, left: Any, right: Any, bias: Any) -> PatternCall:
    return aten.add(aten.mm(left, right), bias)


def _addmm(aten: ReplacementBuilder, left: SSAValue, right: SSAValue, bias: SSAValue, root: SSAValue) -> SSAValue:
    return aten.addmm(bias, left, right)


def _is_bias(left: SSAValue, right: SSAValue, bias: Any, root: SSAValue) -> str | None:
    if not isinstance(bias, SSAValue) or not isinstance(bias.type, TensorType):
        return "a number is added"
    result = type_of(root)
    if bias.type.element != result.element or type_of(left).element != result.element:
        return "the dtypes differ"
    if len(bias.type.shape) not in (1, 2) or bias.type.shape[-1] is not result.shape[-1]:
        return f"{bias.type} is no bias of its columns"
    return None if result.is_contiguous else "the sum is not row-major"


ADDMM = Pattern(
    "addmm",
    _matrix_plus,
    _addmm,
    guard=_is_bias,
    differs="the bias is added inside the product, which rounds once instead of twice",
)


def _two_products(aten: PatternBuilder, a: Any, b: Any, c: Any, d: Any) -> PatternCall:
    return aten.add(aten.mm(a, b), aten.mm(c, d))


def _accumulated(
    aten: ReplacementBuilder, a: SSAValue, b: SSAValue, c: SSAValue, d: SSAValue, root: SSAValue
) -> SSAValue:
    return aten.addmm(aten.mm(a, b), c, d)


def _row_major(root: SSAValue, **_: Any) -> str | None:
    return None if type_of(root).is_contiguous else "the sum is not row-major"


SUM_OF_PRODUCTS = Pattern(
    "sum_of_products",
    _two_products,
    _accumulated,
    guard=_row_major,
    differs="the second product is added up from the first, in another order than in eager",
)
