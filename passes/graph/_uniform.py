"""Rules of `graph-canonicalize` about tensors that hold one number: `full`, and views and copies of it."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from ...dialects.aten import AtenOp, Device, TensorType
from ...dialects.aten.values import SSA_CLASSES
from ...dialects.parametric import parametric
from ...dialects.raw import operands_of
from ...dialects.sym import Expr
from ._dtypes import holds, is_float
from ._rules import Rewriter, Rule

_THROUGH = frozenset({
    "alias", "clone", "detach", "expand", "permute", "select", "slice", "squeeze", "t", "transpose", "unsqueeze",
    "view",
})  # fmt: skip


def number_in(value: Any) -> int | float | bool | None:
    """The number that every element of a tensor is, or a number itself; None when that is not known."""
    while type(value) in SSA_CLASSES:
        op = value.owner
        if not isinstance(op, AtenOp):
            return None
        if op.packet in _THROUGH:
            value = operands_of(op)[0]
            continue
        if op.target != "aten.full":
            return None
        value = op.arg("fill_value")
    return value if isinstance(value, int | float) and not isinstance(value, Expr) else None


def _element(value: SSAValue) -> Any:
    assert isinstance(value.type, TensorType)
    return value.type.element


_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "neg": operator.neg, "abs": abs,
}  # fmt: skip
_LOGIC: dict[str, Callable[..., Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "logical_not": operator.not_, "logical_and": lambda a, b: bool(a and b), "logical_or": lambda a, b: bool(a or b),
}  # fmt: skip


def uniform_of_uniforms(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """full(n, a) + full(n, b) == full(n, a + b), where the number is exact; likewise for comparisons and the like"""
    type_ = op.results[0].type
    assert isinstance(type_, TensorType)
    function = _ARITHMETIC.get(op.packet) or _LOGIC[op.packet]
    if not type_.is_contiguous or ("alpha" in op.schema.by_name and op.arg("alpha") != 1):
        return None
    names = [argument.name for argument in op.schema.arguments if argument.name in ("self", "other")]
    numbers = [number_in(op.arg(name)) for name in names]
    if None in numbers:  # so too for a scalar that is computed
        return None
    elements = {_element(value) for value in op.operands}
    if len(elements) != 1 or not all(holds(next(iter(elements)), n) for n in numbers if n is not None):
        return None
    if op.packet in _ARITHMETIC and (elements != {type_.element} or type_.element == IntegerType(1)):
        return None
    if all(map(is_float, elements)):  # an integer has no -0.0
        numbers = [float(number) for number in numbers if number is not None]
    value = function(*numbers)
    if not math.isfinite(value) or not holds(type_.element, value):
        return None
    value = float(value) if is_float(type_.element) else value
    full = {"size": type_.shape, "fill_value": value, "dtype": type_.element, "device": Device(type_.device)}
    return rewriter.insert(op, "aten.full", full)


@parametric
def _neutral(
    op: AtenOp, rewriter: Rewriter, number: float, is_allowed: Callable[[Any], bool], commutes: bool
) -> SSAValue | None:
    if not is_allowed(op.results[0].type.element) or ("alpha" in op.schema.by_name and op.arg("alpha") != 1):  # pyright: ignore
        return None
    sides = [("self", "other"), ("other", "self")] if commutes else [("self", "other")]
    for kept, neutral in sides:
        source, value = op.arg(kept), op.arg(neutral)
        if type(source) not in SSA_CLASSES or op.results[0].type != source.type:
            continue
        found = number_in(value) if type(value) in SSA_CLASSES else None
        if found is not None and found == number and math.copysign(1, found) == 1:
            return source if rewriter.may_share(op.results[0], source) else None
    return None


def _is_integer(element: Any) -> bool:
    return isinstance(element, IntegerType) and element != IntegerType(1)


def _is_number(element: Any) -> bool:
    return is_float(element) or _is_integer(element)


times_ones = _neutral(1, _is_number, commutes=True)
times_ones.__name__ = "times_ones"
over_ones = _neutral(1, is_float, commutes=False)
over_ones.__name__ = "over_ones"
# x + 0.0 turns -0.0 into 0.0, x - 0.0 does not
plus_zeros = _neutral(0, _is_integer, commutes=True)
plus_zeros.__name__ = "plus_zeros"
minus_zeros = _neutral(0, _is_number, commutes=False)
minus_zeros.__name__ = "minus_zeros"


def choice_by_constant(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """where(full(n, true), a, b) == a; masked_fill(a, full(n, false), v) == a"""
    is_where = op.packet == "where"
    condition = number_in(op.arg("condition" if is_where else "mask"))
    if condition is None or (not is_where and condition):
        return None
    source = op.arg("self" if condition or not is_where else "other")
    if not isinstance(source, SSAValue) or source.type != op.results[0].type:
        return None
    return source if rewriter.may_share(op.results[0], source) else None


def divide_by_power_of_two(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    """x / 2**k == x * 2**-k, also of numbers too small to be normal: both round the same quotient"""
    type_ = op.results[0].type
    assert isinstance(type_, TensorType)
    divisor = op.arg("other")
    if op.target != "aten.div.Scalar" or not isinstance(divisor, int | float) or isinstance(divisor, bool | Expr):
        return None
    if divisor == 0 or not math.isfinite(divisor) or abs(math.frexp(divisor)[0]) != 0.5 or divisor == 1:
        return None
    self_ = op.arg("self")
    if not is_float(type_.element) or _element(self_) != type_.element or not holds(type_.element, 1 / divisor):
        return None
    return rewriter.insert(op, "aten.mul.Scalar", {"self": self_, "other": 1 / divisor})


#: packet -> rules, behind those of `_rules.RULES`
UNIFORM_RULES: dict[str, tuple[Rule, ...]] = {
    **dict.fromkeys((*_ARITHMETIC, *_LOGIC), (uniform_of_uniforms,)),
    "mul": (uniform_of_uniforms, times_ones),
    "add": (uniform_of_uniforms, plus_zeros),
    "sub": (uniform_of_uniforms, minus_zeros),
    "div": (over_ones, divide_by_power_of_two),
    "where": (choice_by_constant,),
    "masked_fill": (choice_by_constant,),
}
