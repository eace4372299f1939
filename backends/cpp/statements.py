"""Statements of straight-line bodies: each op becomes a named constant, a part of an expression, or a store."""

from __future__ import annotations

from typing import TypeAlias

from typing_extensions import TypeIs
from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from . import memory
from .code import ATOM, Code
from .context import Context
from .scalars import scalar_code
from .types import scalar_ctype

#: Expressions that are used once grow up to this many characters before they get a name.
MAX_INLINE = 48


class Statements:
    """Writes the ops of one straight-line piece of a body."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def emit(self, op: Operation) -> None:
        """Write one op that is no loop and no terminator."""
        context = self.context
        if isinstance(op, kernel.StoreOp):
            memory.store(context, op)
        elif isinstance(op, kernel.AssertOp):
            memory.check(context, op)
        elif isinstance(op, kernel.LoadOp):
            self.define(op.value, memory.load(context, op), op, inline=False)
        elif isinstance(op, arith.ConstantOp):
            context.values[op.result] = scalar_code(op, [], context.need)
        elif not isinstance(op, kernel.IndexOp):  # those are printed where they are used
            operands = [context.value(v) for v in op.operands]
            self.define(op.results[0], scalar_code(op, operands, context.need), op, inline=True)

    def define(self, value: SSAValue, code: Code, op: Operation, inline: bool) -> None:
        """Bind a value to an expression, or to a new constant when it is long or used more than once."""
        context = self.context
        if value.first_use is None:
            return
        short = inline and len(code.text) <= MAX_INLINE
        if (code.level == ATOM and code.text.isidentifier()) or (short and self.used_once_here(value, op)):
            context.values[value] = code
        else:
            name = context.temporary()
            context.comment(op)
            context.out.line(f"const {scalar_ctype(value.type)} {name} = {code};")
            context.values[value] = Code(name)

    def used_once_here(self, value: SSAValue, op: Operation) -> bool:
        """Whether the one use of a value is in the same piece of code as the op that makes it."""
        use = value.get_user_of_unique_use()
        return use is not None and use.parent is op.parent


Loop: TypeAlias = kernel.ForOp | kernel.ReduceOp | kernel.ScanOp


def is_loop(op: Operation) -> TypeIs[Loop]:
    """Whether an op runs an axis."""
    return isinstance(op, kernel.ForOp | kernel.ReduceOp | kernel.ScanOp)
