"""Tables of pointwise ops: overload names -> a function of scalars.

A function's parameters are named like the schema's arguments, behind the builder `s`. Tensors arrive as the scalars
of the element, converted as the table's policy says; so do numbers in a tensor's place (`OPERANDS`). Options stay
Python values.

| policy     | tensors are converted to                                            |
|------------|---------------------------------------------------------------------|
| `RESULT`   | the result's element type, low precision computed in float32        |
| `PROMOTED` | the common type of the operands, low precision computed in float32  |
| `OWN`      | nothing, low precision computed in float32                          |
| `MOVED`    | the result's element type, as stored: elements are moved            |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Any

from xdsl.ir import Attribute, SSAValue

from ...dialects.parametric import parametric
from ...dialects.sym import Expr
from ...machines import EagerKernels, eager
from .dtypes import LOW_PRECISION, common_type, computation_type, is_float, rounded
from .nests import LoopBuilder, broadcast_map, type_of
from .rules import Call, Reject, Replacement, add_rule
from .scalar import Scalar
from .scalar_builder import ScalarBuilder

Function = Callable[..., Scalar]


class Policy(Enum):
    """Which element type operands are converted to."""

    RESULT = auto()
    PROMOTED = auto()
    OWN = auto()
    MOVED = auto()


#: arguments that stand in a tensor's place when they are numbers
OPERANDS = frozenset({
    "self", "other", "exponent", "end", "value", "fill_value", "values", "x", "min", "max", "min_val", "max_val",
})  # fmt: skip

#: arguments that choose between elements; each arrives as a bool, whatever its dtype
CONDITIONS = frozenset({"condition", "mask"})


#: a parameter that gets the op itself, for what depends on its types
CALL = "call"

#: eager's kernels -> the operands whose digits those of low precision keep where they are numbers or 0-d tensors of
#: the CPU; any other is rounded to the low precision first
Exact = Mapping[EagerKernels, tuple[str, ...]]


def add_pointwise(
    table: Mapping[str, Function],
    policy: Policy = Policy.RESULT,
    reject: Reject | None = None,
    exact_numbers: Exact = MappingProxyType({}),
) -> None:
    """Enter the rules of a table; a key holds overload names separated by spaces."""
    for names, function in table.items():
        code = function.__code__  # pyright: ignore[reportFunctionMemberAccess]
        parameters = code.co_varnames[1 : code.co_argcount]
        refuse = _reject_numbers(tuple(name for name in parameters if name != CALL), reject)
        add_rule(names, _lowering(function, parameters, policy, exact_numbers), refuse)


@parametric
def _lowering(
    b: LoopBuilder, call: Call, function: Function, parameters: tuple[str, ...], policy: Policy, exact_numbers: Exact
) -> Replacement:
    type_ = call.type
    arguments = [call if name == CALL else call.argument(name) for name in parameters]
    element = _operand_element(policy, type_.element, parameters, arguments)
    rank = len(type_.shape)
    s = b.s
    exact = exact_numbers.get(eager(type_.device), ()) if element in LOW_PRECISION else parameters

    def body(_: object) -> Scalar:
        values = [
            _operand(s, value, name, element, rank, policy, name in exact)
            for name, value in zip(parameters, arguments, strict=True)
        ]
        return function(s, *values)

    return b.generate(body, type_)


def _operand_element(
    policy: Policy, result: Attribute, parameters: tuple[str, ...], arguments: list[Any]
) -> Attribute | None:
    """The element type that operands are converted to; None: each keeps its own."""
    if policy is Policy.OWN:
        return None
    if policy is not Policy.PROMOTED:
        return result
    return common_type(
        type_of(value) if isinstance(value, SSAValue) else value
        for name, value in zip(parameters, arguments, strict=True)
        if value is not None and (isinstance(value, SSAValue) or name in OPERANDS)
    )


def _operand(
    s: ScalarBuilder, value: Any, name: str, element: Attribute | None, rank: int, policy: Policy, exact: bool
) -> Any:
    """What a table's function gets for an argument."""
    if isinstance(value, SSAValue):
        type_ = type_of(value)
        loaded = s.load_map(value, broadcast_map(type_.shape, rank))
        if name in CONDITIONS:
            return s.truthy(s.widen(loaded))
        if policy is Policy.MOVED:
            return s.cast(loaded, element or type_.element)
        if element is None:
            return s.widen(loaded)
        if exact and (element not in LOW_PRECISION or eager(type_.device).converts_exactly):
            return operand_as(s, loaded, element)
        return s.widen(s.cast(loaded, element))  # a cast of the program: what is rounded stays so
    if value is None or element is None or name == CALL:
        return value
    if name not in OPERANDS:  # a parameter; one known only when the kernel runs is computed with as a scalar
        return s.number(value, computation_type(element)) if isinstance(value, Expr) else value
    if policy is Policy.MOVED:
        return s.number(value, element)
    if not exact and name != "value" and not isinstance(value, Expr):
        value = rounded(value, element)
    return s.number(value, computation_type(element))


def operand_as(s: ScalarBuilder, value: Scalar, element: Attribute) -> Scalar:
    """A loaded element in the type that computes `element`: what eager's promotion of operands does.

    Floats go straight to the type of computation, which keeps the digits of a 0-d operand; integers are rounded to
    the low-precision type first.
    """
    target = computation_type(element)
    if value.element in LOW_PRECISION:
        return s.cast(s.widen(value), target)
    if element in LOW_PRECISION and not is_float(value.element):
        return s.widen(s.cast(value, element))
    return s.cast(value, target)


@parametric
def _reject_numbers(call: Call, parameters: tuple[str, ...], reject: Reject | None) -> str | None:
    for name in parameters:
        if type(call[name]) is complex:
            return "a complex number is computed with by ATen only"
    return None if reject is None else reject(call)
