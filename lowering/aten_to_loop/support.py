"""Which ATen ops are lowered; the others stay and become ATen calls."""

from __future__ import annotations

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Operation, SSAValue

from ...dialects.aten.ops import AtenOp
from ...dialects.aten.types import TensorType, torch_name
from ...dialects.machine import USUAL, TargetsAttr
from ...dialects.sym import Ranges
from .dtypes import FLOAT8, kind
from .refusals import refused
from .rules import RULES, Call, Rule


def unlowered_reason(op: Operation) -> str | None:
    """Why an ATen op stays as it is, for remarks; None when `lower-aten-to-loop` lowers it."""
    rule = RULES.get(op.name)
    if rule is None or not isinstance(op, AtenOp):
        return f"{op.name} has no lowering"
    return unmet(rule, op)


def unmet(rule: Rule, op: AtenOp, ranges: Ranges | None = None, targets: TargetsAttr = USUAL) -> str | None:
    """Why a rule does not apply to an op with its name, or None.

    ranges:  those of its function's symbols
    targets: those of its module
    """
    devices: set[str] = set()
    for value in op.operands:
        type_ = value.type
        if not isinstance(type_, TensorType):
            return "a number that another op computes is an argument"
        if not _computes(rule, type_, targets):
            return f"{torch_name(type_.element)} is computed by ATen only"
        if type_.shape:
            devices.add(type_.device)
    for result in op.results:
        type_ = result.type
        if len(op.results) > 1 and result.first_use is None:
            continue  # nobody reads it
        if isinstance(type_, TensorType):
            if not _computes(rule, type_, targets):
                return f"{torch_name(type_.element)} is computed by ATen only"
            devices.add(type_.device)
        elif not isinstance(type_, NoneType):
            return "a result is no tensor"
    if len(devices) > 1:
        return f"tensors on several devices: {', '.join(sorted(devices))}"
    reason = None if rule.any_dtype else refused(op)
    if reason is None and rule.reject is not None:
        reason = rule.reject(Call(op, _NO_VALUES, ranges, targets))
    return reason


def _computes(rule: Rule, type_: TensorType, targets: TargetsAttr) -> bool:
    """Whether kernels do what the rule says with elements of a tensor's type."""
    if rule.any_dtype or kind(type_.element) is not None:
        return True
    return rule.converts and type_.element in FLOAT8 and targets.target(type_.device).converts_float8


_NO_VALUES: dict[SSAValue, SSAValue] = {}
