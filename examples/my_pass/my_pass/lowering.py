"""How `torch.ops.my_pass.softsign` becomes a loop nest. Without this entry it would be called as it is."""

from __future__ import annotations

from xdsl.ir import SSAValue

from inductile.dialects.aten.call import CallOp
from inductile.dialects.aten.types import TensorType
from inductile.lowering.aten_to_loop.nests import LoopBuilder
from inductile.lowering.aten_to_loop.scalar import Scalar

from .dialect import SoftsignOp


def lower_softsign(b: LoopBuilder, op: CallOp, values: dict[SSAValue, SSAValue]) -> SSAValue:
    source = values.get(op.operands[0], op.operands[0])
    kind = op.results[0].type
    assert isinstance(kind, TensorType)

    def body(x: Scalar) -> Scalar:  # f16 and bf16 come as f32
        return Scalar(b.s, b.s.emit(SoftsignOp, (x.ssa,), x.ssa.type), x.element)

    return b.pointwise(body, kind, source)


LOWERINGS = {"my_pass::softsign": lower_softsign}
