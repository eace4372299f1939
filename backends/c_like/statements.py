"""Statements of straight-line bodies: each op becomes a named constant, a part of an expression, or a store."""

from __future__ import annotations

from typing import TypeAlias

from typing_extensions import TypeIs, override
from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ..printing.code import ATOM, Code
from ..printing.walk import Walk
from . import memory
from .context import Context
from .scalars import scalar_code
from .types import scalar_ctype

#: Expressions that are used once grow up to this many characters before they get a name.
MAX_INLINE = 48


class Statements(Walk):
    """Writes the ops of one straight-line piece of a body."""

    def __init__(self, context: Context) -> None:
        self.context = context

    def load(self, op: kernel.LoadOp) -> None:
        """Write a load as a constant of its own: what is stored behind it is not what it read."""
        self.define(op.value, memory.load(self.context, op), op, inline=False)

    def store(self, op: kernel.StoreOp) -> None:
        """Write a store."""
        memory.store(self.context, op)

    def check(self, op: kernel.AssertOp) -> None:
        """Write an assert."""
        memory.check(self.context, op)

    def index(self, op: kernel.IndexOp) -> None:
        """Indices are printed where they are used."""

    def barrier(self, op: kernel.BarrierOp) -> None:
        """One thread waits for nobody."""

    def wait(self, op: kernel.AwaitOp) -> None:
        """What the program calls one after the other ends one after the other."""

    def release(self, op: kernel.ReleaseOp) -> None:
        """Nothing waits for it."""

    @override
    def scalar(self, op: Operation) -> None:
        """Write an op that computes one value."""
        context = self.context
        if isinstance(op, arith.ConstantOp):
            context.values[op.result] = scalar_code(op, [], context.need)
            return
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
            name = context.names.temporary()
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
