"""Loops of one thread, one iteration after the other: what every language of this kind has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from xdsl.ir import Block

from ...dialects import kernel
from ..printing.code import Code
from . import memory
from .checked import loop_head
from .context import Context
from .quotients import name_quotients
from .reductions import Accumulators, OnYield, reduce_in_blocks
from .statements import Loop, Statements


def no_values(values: Sequence[Code]) -> None:
    """What a loop does that combines nothing."""


class SerialLoops(Statements):
    """Writes the body of a kernel. Iterations that may run at once run in order as well."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._on_yield: OnYield = no_values

    def block(self, block: Block, on_yield: OnYield = no_values) -> None:
        """Write the ops of a block in order; `on_yield` gets the yielded values."""
        outer, self._on_yield = self._on_yield, on_yield
        self.ops(block.ops)
        self._on_yield = outer

    def end(self, op: kernel.YieldOp) -> None:
        """Write what happens with the values that an iteration yields."""
        self._on_yield([self.context.value(v) for v in op.values])

    def local(self, op: kernel.LocalOp) -> None:
        """Write a local buffer."""
        if op.buffer not in self.context.buffers:  # else it stands in front of the loop
            memory.declare_local(self.context, op)

    def loop(self, op: kernel.ForOp) -> None:
        """Write a `kernel.for`."""
        self.context.comment(op)
        name_quotients(self.context, op)
        self.iterations(op)

    def iterations(self, op: kernel.ForOp) -> None:
        """Write the loop itself, behind what stands in front of it."""
        with serial_loop(self.context, op):
            self.block(op.body.block)

    def reduce(self, op: kernel.ReduceOp) -> None:
        """Write a `kernel.reduce`, with one accumulator a value."""
        context = self.context
        context.comment(op)
        name_quotients(context, op)

        def loop(lo: Code, hi: Code, on_yield: OnYield) -> None:
            with serial_loop(context, op, lo, hi):
                self.block(op.body.block, on_yield)

        totals = reduce_in_blocks(context, op, loop)
        for result, total in zip(op.outs, totals.elements(), strict=True):
            context.values[result] = total

    def scan(self, op: kernel.ScanOp) -> None:
        """Write a `kernel.scan`."""
        context = self.context
        context.comment(op)
        name_quotients(context, op)
        accumulators = Accumulators(context, op, wide=True)
        accumulators.declare()
        with serial_loop(context, op):
            self.block(op.body.block, accumulators.accumulate)
            for argument, value in zip(op.then.block.args, accumulators.elements(), strict=True):
                context.values[argument] = value
            self.block(op.then.block)


@contextmanager
def serial_loop(context: Context, op: Loop, lo: Code | None = None, hi: Code | None = None) -> Iterator[None]:
    """A plain loop over an op's axis, or over a part of it; the body is written inside."""
    name = context.names.fresh(op.axis.data)
    start = context.index(op.lo.data) if lo is None else lo
    end = context.index(op.hi.data) if hi is None else hi
    if op.mapping.data == "unroll":
        context.out.pragma(f"GCC unroll {min((op.hi.data - op.lo.data).as_int() or 8, 64)}")
    elif op.unroll is not None:
        context.out.pragma(f"GCC unroll {min(op.unroll.value.data, 64)}")
    with (
        context.out.block(loop_head(context, name, start, end)),
        context.axis(op.axis.data, name, op.lo.data, op.hi.data),
    ):
        yield
