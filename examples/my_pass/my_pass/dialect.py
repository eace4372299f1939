"""The dialect `my` with one scalar op."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import AnyFloatConstr
from xdsl.ir import Dialect, SSAValue
from xdsl.irdl import IRDLOperation, VarConstraint, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.traits import Pure


@irdl_op_definition
class SoftsignOp(IRDLOperation):
    """`%r = my.softsign %x : f32` is x / (1 + |x|)."""

    name = "my.softsign"
    T: ClassVar = VarConstraint("T", AnyFloatConstr)
    operand = operand_def(T)
    result = result_def(T)
    assembly_format = "$operand attr-dict `:` type($result)"
    traits = traits_def(Pure())  # may be merged, moved and removed

    @staticmethod
    def of(operand: SSAValue) -> SoftsignOp:
        return SoftsignOp.create(operands=(operand,), result_types=(operand.type,))


def dialect() -> Dialect:
    """What the entry point `inductile.dialects` names."""
    return Dialect("my", [SoftsignOp])
