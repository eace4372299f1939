"""Combine regions of custom reductions and scans as Triton functions."""

from __future__ import annotations

from xdsl.ir import Block

from ...dialects.sym import Ranges
from . import scalars
from .context import Context
from .dtypes import dtype_name
from .values import Value


def combine_function(name: str, block: Block) -> str:
    """A `@triton.jit` function that computes what a combine region yields from its arguments."""
    context = Context(rank=0, ranges=Ranges())
    for position, argument in enumerate(block.args):
        text = context.names.fresh(argument.name_hint or f"x{position}")
        context.values[argument] = Value(text, dtype_name(argument.type))
    last = block.last_op
    assert last is not None
    for op in block.ops:
        if op is not last:
            scalars.emit(context, op)
    arguments = ", ".join(context.value(a).text for a in block.args)
    results = ", ".join(context.typed(context.value(v)) for v in last.operands)
    context.out.line(f"return {results}")
    return "\n".join(["@triton.jit", f"def {name}({arguments}):", *context.out.lines])
