"""Which ATen ops are lowered; the others stay and become ATen calls."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, NoneType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.aten.ops import AtenOp
from ...dialects.aten.types import TensorType, torch_name
from ...dialects.sym import Ranges
from .dtypes import kind
from .refusals import refused
from .rules import RULES, Call, Rule


def unlowered_reason(op: Operation) -> str | None:
    """Why an ATen op stays as it is, for remarks; None when `lower-aten-to-loop` lowers it."""
    rule = RULES.get(op.name)
    if rule is None or not isinstance(op, AtenOp):
        return f"{op.name} has no lowering"
    return unmet(rule, op)


def unmet(rule: Rule, op: AtenOp, ranges: Ranges | None = None) -> str | None:
    """Why a rule does not apply to an op with its name, or None. `ranges` are those of its function's symbols."""
    devices: set[str] = set()
    for value in op.operands:
        type_ = value.type
        if not isinstance(type_, TensorType):
            return "a number that another op computes is an argument"
        if not rule.any_dtype and _is_atens(type_.element, op):
            return f"{torch_name(type_.element)} is computed by ATen only"
        if type_.shape:
            devices.add(type_.device)
    for result in op.results:
        type_ = result.type
        if isinstance(type_, TensorType):
            if not rule.any_dtype and _is_atens(type_.element, op):
                return f"{torch_name(type_.element)} is computed by ATen only"
            devices.add(type_.device)
        elif not isinstance(type_, NoneType):
            return "a result is no tensor"
    if len(devices) > 1:
        return f"tensors on several devices: {', '.join(sorted(devices))}"
    reason = None if rule.any_dtype else refused(op)
    if reason is None and rule.reject is not None:
        reason = rule.reject(Call(op, _NO_VALUES, ranges))
    return reason


_CASTS = frozenset({"_to_copy", "copy", "copy_"})
_OF_WIDE_UNSIGNED = frozenset({
    "__and__", "__or__", "__xor__", "bitwise_and", "bitwise_or", "bitwise_xor", "cat", "clone", "eq", "fill", "flip",
    "mul", "ne",
})  # fmt: skip
"""Packets that ATen has for unsigned integers of 16 to 64 bits too, where all tensors are of one type. Most others it
refuses, and that is its answer."""


def _is_atens(element: Attribute, op: AtenOp) -> bool:
    """Whether an op on this element type is left to ATen, which may refuse it."""
    found = kind(element)
    if found == "unsigned" and isinstance(element, IntegerType) and element.width.data > 8:
        mixed = any(isinstance(o.type, TensorType) and o.type.element != element for o in op.operands)
        return op.packet not in _CASTS and (mixed or op.packet not in _OF_WIDE_UNSIGNED)
    return found is None


_NO_VALUES: dict[SSAValue, SSAValue] = {}
