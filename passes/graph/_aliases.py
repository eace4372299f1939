"""What a rewrite must know of memory at the aten level: who may write a value, and who may keep it."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue
from xdsl.traits import IsTerminator

from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.effects import has_side_effect
from ..analysis.memory import may_return_alias, roots


def possibly_written(block: Block) -> set[SSAValue]:
    """Values, and those whose memory they view, that some op of a block writes or may write.

    A call that is not pure may write every tensor that it gets.
    """
    written: set[SSAValue] = set()
    for op in block.ops:
        if isinstance(op, AtenOp) and op.schema.is_mutable:
            written.update(op.written)
        elif isinstance(op, CallOp) and has_side_effect(op):
            written.update(value for value in op.operands if isinstance(value.type, TensorType))
    return written | {root for value in written for root in roots(value)}


def escapes(value: SSAValue) -> bool:
    """Whether the function returns `value` or a view of it, so that the caller gets its memory."""
    for use in value.uses:
        user = use.operation
        if user.has_trait(IsTerminator):
            return True
        if may_return_alias(user) and any(escapes(result) for result in user.results):
            return True
    return False


def is_returned(value: SSAValue) -> bool:
    """Whether the function returns `value` itself."""
    return any(use.operation.has_trait(IsTerminator) for use in value.uses)
