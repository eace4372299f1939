"""SIMD over a tile: the body of a vector axis runs once for all lanes, statement group by statement group.

The body is cut at its inner loops. Each straight piece becomes one `omp simd` loop over the lanes; an inner loop
runs once, with such pieces inside; values that cross from piece to piece are small arrays, one entry a lane.
"""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...records import dataclass
from ..c_like import memory
from ..c_like.context import Context
from ..c_like.loops import no_values, serial_loop
from ..c_like.reductions import OnYield, reduce_in_blocks
from ..c_like.statements import Loop, Statements, is_loop
from ..c_like.types import scalar_ctype
from ..printing.code import Code
from .accumulators import LaneAccumulators, in_lanes


@dataclass(frozen=True)
class Lanes:
    """The axis whose values are lanes: lane `lane` stands for `axis == tile + lane`, below `count` lanes.

    axis_text, tile, count: C++ text
    width: length of the arrays, an upper bound of `count`
    """

    axis: str
    axis_text: str
    tile: str
    count: str
    width: int


class LaneEmitter(Statements):
    """Writes a body for all lanes of one tile."""

    def __init__(self, context: Context, lanes: Lanes) -> None:
        super().__init__(context)
        self.lanes = lanes
        self._group: set[Operation] = set()
        self._arrays: dict[SSAValue, str] = {}

    def block(self, block: Block, on_yield: OnYield) -> None:
        """Write a body; `on_yield` writes what happens with the yielded values of a lane."""
        group: list[Operation] = []
        for op in block.ops:
            if isinstance(op, kernel.LocalOp):
                memory.declare_local(self.context, op, self.lanes.width)
            elif is_loop(op):
                self._write_group(group, on_yield)
                group = []
                self._inner_loop(op)
            else:
                group.append(op)
        self._write_group(group, on_yield)

    def _write_group(self, ops: list[Operation], on_yield: OnYield) -> None:
        context = self.context
        self._group, self._arrays = set(ops), {}
        outer_touched, context.touched = context.touched, set()
        with context.out.apart(inner=1) as lines:
            for op in ops:
                if isinstance(op, kernel.YieldOp):
                    on_yield([context.value(v) for v in op.values])
                else:
                    self.ops([op])
        uses_axis = self.lanes.axis in context.touched
        context.touched |= outer_touched
        for value, array in self._arrays.items():
            context.out.line(f"{scalar_ctype(value.type)} {array}[{self.lanes.width}];")
        if not lines:
            return
        simd_pragma(context, ops)
        with context.out.block(f"for (int64_t lane = 0; lane < {self.lanes.count}; ++lane)"):
            if uses_axis:
                context.out.line(f"const int64_t {self.lanes.axis_text} = {self.lanes.tile} + lane;")
            context.out.extend(lines)

    @override
    def define(self, value: SSAValue, code: Code, op: Operation, inline: bool) -> None:
        if all(use.operation in self._group for use in value.uses):
            return super().define(value, code, op, inline)
        context = self.context
        array = self._arrays[value] = context.names.temporary()
        context.comment(op)
        context.out.line(f"{array}[lane] = {code};")
        context.values[value] = Code(f"{array}[lane]")

    @override
    def used_once_here(self, value: SSAValue, op: Operation) -> bool:
        use = value.get_user_of_unique_use()
        return use is not None and use in self._group

    def _inner_loop(self, op: Loop) -> None:
        """An inner loop, run once for all lanes."""
        context = self.context
        context.comment(op)
        if isinstance(op, kernel.ForOp):
            with serial_loop(context, op):
                self.block(op.body.block, no_values)
        elif isinstance(op, kernel.ScanOp):
            self._scan(op)
        else:

            def loop(lo: Code, hi: Code, on_yield: OnYield) -> None:
                with serial_loop(context, op, lo, hi):
                    self.block(op.body.block, on_yield)

            totals = reduce_in_blocks(context, op, loop, in_lanes(context, op, self.lanes.width))
            for result, element in zip(op.outs, totals.elements(), strict=True):
                context.values[result] = element

    def _scan(self, op: kernel.ScanOp) -> None:
        context = self.context
        accumulators = LaneAccumulators(context, op, self.lanes.width, wide=True)
        accumulators.declare()
        with serial_loop(context, op):
            self.block(op.body.block, accumulators.accumulate)
            for argument, element in zip(op.then.block.args, accumulators.elements(), strict=True):
                context.values[argument] = element
            self.block(op.then.block, no_values)


def simd_pragma(context: Context, ops: Sequence[Operation]) -> None:
    """Ask for vectorisation, unless lanes may meet in one place of memory."""
    if context.checked:  # each access may branch
        return
    if any(isinstance(op, kernel.StoreOp) and (op.atomic or op.ordered) is not None for op in ops):
        return
    asserts = any(isinstance(op, kernel.AssertOp) for op in ops)
    context.out.pragma(f"omp simd{' reduction(|: failed)' if asserts else ''}")
