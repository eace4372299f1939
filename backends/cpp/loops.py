"""Loops outside lanes: SIMD loops, tiles, reductions, scans; threads are in `parallel`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation

from ...dialects import kernel
from ...errors import UnsupportedError
from ...passes.kernel.assign_accumulators import fits_lanes, lanes_of
from . import memory
from .checked import loop_end, loop_head
from .code import Code
from .lanes import LaneEmitter, Lanes, serial_loop, simd_pragma
from .reductions import Accumulators, OnYield, reduce_in_blocks
from .statements import Statements, is_loop
from .transpose import emit_transposed
from .types import scalar_ctype


def _no_values(values: Sequence[Code]) -> None:
    pass


class LoopEmitter(Statements):
    """Writes the body of a kernel."""

    def block(self, block: Block, on_yield: OnYield = _no_values) -> None:
        """Write the ops of a block in order; `on_yield` gets the yielded values."""
        for op in block.ops:
            if isinstance(op, kernel.YieldOp):
                on_yield([self.context.value(v) for v in op.values])
            elif isinstance(op, kernel.LocalOp):
                if op.buffer not in self.context.buffers:  # else hoisted out of the loop
                    memory.declare_local(self.context, op)
            elif isinstance(op, kernel.ForOp):
                self._for(op)
            elif isinstance(op, kernel.ReduceOp):
                self._reduce(op)
            elif isinstance(op, kernel.ScanOp):
                self._scan(op)
            else:
                self.emit(op)

    def _for(self, op: kernel.ForOp) -> None:
        mapping = op.mapping.data
        if mapping in ("parallel", "grid") and not self.context.in_parallel:
            from .parallel import emit_parallel  # which builds on this module

            return emit_parallel(self, op)
        if op.intrinsic is not None and not self.context.checked:
            return emit_transposed(self.context, op)
        self.context.comment(op)
        if mapping == "vector" and not _has_loops(op):
            simd_pragma(self.context, list(op.body.block.ops))
        elif (width := _lanes(op)) is not None:
            return self._tiled(op, width, self.context.index(op.lo.data), self.context.index(op.hi.data), _no_values)
        with serial_loop(self.context, op):
            self.block(op.body.block)

    def _reduce(self, op: kernel.ReduceOp) -> None:
        context = self.context
        context.comment(op)
        width = _lanes(op)

        def loop(lo: Code, hi: Code, on_yield: OnYield) -> None:
            if width is not None:
                return self._tiled(op, width, lo, hi, on_yield)
            with serial_loop(context, op, lo, hi):
                self.block(op.body.block, on_yield)

        accumulators = reduce_in_blocks(context, op, width, loop)
        totals = accumulators.elements() if width is None else accumulators.fold()
        for result, total in zip(op.outs, totals, strict=True):
            if width is None:
                context.values[result] = total
            elif result.first_use is not None:
                name = context.temporary()
                context.out.line(f"const {scalar_ctype(result.type)} {name} = {total};")
                context.values[result] = Code(name)

    def _tiled(self, op: kernel.ForOp | kernel.ReduceOp, width: int, lo: Code, hi: Code, on_yield: OnYield) -> None:
        """Write a vector axis as tiles of `width` lanes; only a ragged last tile has fewer."""
        context = self.context
        axis, tile = context.name(op.axis.data), context.name(f"{op.axis.data}_tile")
        trip = (op.hi.data - op.lo.data).as_int()
        whole = trip is not None and trip % width == 0
        if whole:
            head, tail = loop_head(context, tile, lo, hi, f"{tile} += {width}"), "}"
        else:
            context.need("tiles")
            end = loop_end(context, lo, hi)
            head, tail = f"for_tiles<{width}>({lo}, {end}, [&](int64_t {tile}, auto lanes) INLINE", "});"
        lanes = Lanes(op.axis.data, axis, tile, str(width) if whole else "lanes", width)
        with context.out.block(head, tail), context.axis(op.axis.data, axis, op.lo.data, op.hi.data, tile):
            LaneEmitter(context, lanes).block(op.body.block, on_yield)

    def _scan(self, op: kernel.ScanOp) -> None:
        context = self.context
        context.comment(op)
        accumulators = Accumulators(context, op, wide=True)
        accumulators.declare()
        with serial_loop(context, op):
            self.block(op.body.block, accumulators.accumulate)
            for argument, value in zip(op.then.block.args, accumulators.elements(), strict=True):
                context.values[argument] = value
            self.block(op.then.block)


def _has_loops(op: Operation) -> bool:
    return any(is_loop(inner) for region in op.regions for block in region.blocks for inner in block.ops)


def _lanes(op: kernel.ForOp | kernel.ReduceOp) -> int | None:
    """How many lanes run an axis, or accumulators a reduction has; None where the axis runs in order."""
    lanes = lanes_of(op)
    if lanes is None:
        return None
    if not fits_lanes(op, op.axis.data):
        raise UnsupportedError(f"loops in lanes of {op.axis.data} differ in length: run kernel-assign-accumulators")
    if isinstance(op, kernel.ReduceOp) and (lanes & (lanes - 1) or op.combine is not None):
        raise UnsupportedError(f"{lanes} accumulators of {op.axis.data}: run kernel-assign-accumulators")
    return lanes
