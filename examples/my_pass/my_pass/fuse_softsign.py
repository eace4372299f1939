"""The pass `my-fuse-softsign`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from inductile.passes.counters import counter
from inductile.passes.remarks import remark

from .dialect import SoftsignOp


@dataclass(frozen=True)
class FuseSoftsign(ModulePass):
    """One op for x / (abs(x) + 1).

    level:         loop
    precondition:  none; behind `loop-inline,loop-cse` more is seen
    guarantee:     no body computes x / (abs(x) + 1) or x / (1 + abs(x)) by arith ops

        %a = math.absf %x : f32
        %b = arith.addf %a, %one : f32
        %c = arith.divf %x, %b : f32
    becomes
        %c = my.softsign %x : f32
    """

    name = "my-fuse-softsign"
    level: ClassVar[str] = "loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in list(op.walk()):
            if isinstance(each, arith.DivfOp) and is_softsign(each) and counter(self.name):
                new = SoftsignOp.of(each.lhs)
                new.location = each.location
                remark("passed", self.name, each, "x / (abs(x) + 1) is one op")
                assert each.parent is not None
                each.parent.insert_op_before(new, each)
                each.result.replace_all_uses_with(new.result)
                each.detach()
                each.erase()  # abs and the addition go with the next loop-dce


def is_softsign(op: arith.DivfOp) -> bool:
    """Whether a division is x / (abs(x) + 1). The sum is the same either way round, NaN included."""
    add = op.rhs.owner
    if not isinstance(add, arith.AddfOp):
        return False
    return any(_is_abs(a, op.lhs) and _is_one(b) for a, b in ((add.lhs, add.rhs), (add.rhs, add.lhs)))


def _is_abs(value: SSAValue, of: SSAValue) -> bool:
    return isinstance(value.owner, math.AbsFOp) and value.owner.operand is of


def _is_one(value: SSAValue) -> bool:
    owner = value.owner
    constant = owner.value if isinstance(owner, Operation) and isinstance(owner, arith.ConstantOp) else None
    return isinstance(constant, FloatAttr) and constant.value.data == 1.0
