"""Loops outside lanes: SIMD loops, tiles, reductions, scans; threads are in `parallel`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation

from ...dialects import kernel
from ...dialects.loop.body import yielded
from . import memory
from .checked import loop_end, loop_head
from .code import Code
from .lanes import LaneEmitter, Lanes, fits_lanes, serial_loop, simd_pragma
from .reductions import Accumulators, OnYield, reduce_in_blocks
from .statements import Statements, is_loop
from .transpose import emit_transposed
from .types import item_bytes, scalar_ctype

#: Accumulators of a vector reduction without a tile fill this many bytes: two AVX-512 or four AVX2 registers.
ACCUMULATOR_BYTES = 128
#: Shorter vector reductions run one element after the other.
MIN_VECTOR_TRIP = 8
#: lanes of the widest tile that is run as lanes; a longer one is only a hint for other targets
MAX_LANES = 256


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
        elif mapping == "vector" and op.tile is not None and fits_lanes(op, op.axis.data):
            width = _lane_count(op, min(op.tile.value.data, MAX_LANES))
            return self._tiled(op, width, self.context.index(op.lo.data), self.context.index(op.hi.data), _no_values)
        with serial_loop(self.context, op):
            self.block(op.body.block)

    def _reduce(self, op: kernel.ReduceOp) -> None:
        context = self.context
        context.comment(op)
        width = self._reduction_lanes(op)

        def loop(lo: Code, hi: Code, on_yield: OnYield) -> None:
            if width is not None:
                return self._tiled(op, width, lo, hi, on_yield)
            with serial_loop(context, op, lo, hi):
                self.block(op.body.block, on_yield)

        accumulators = reduce_in_blocks(context, op, width, width or 1, loop)
        totals = accumulators.elements() if width is None else accumulators.fold()
        for result, total in zip(op.outs, totals, strict=True):
            if width is None:
                context.values[result] = total
            elif result.first_use is not None:
                name = context.temporary()
                context.out.line(f"const {scalar_ctype(result.type)} {name} = {total};")
                context.values[result] = Code(name)

    def _reduction_lanes(self, op: kernel.ReduceOp) -> int | None:
        """Number of accumulators of a vector reduction; None for a serial one."""
        if op.mapping.data in ("serial", "unroll") or op.combine is not None:
            return None
        if _has_loops(op) and (op.tile is None or not fits_lanes(op, op.axis.data)):
            return None
        trip = (op.hi.data - op.lo.data).as_int()
        if trip is not None and trip < MIN_VECTOR_TRIP:
            return None
        wanted = ACCUMULATOR_BYTES // max(item_bytes(v.type) for v in yielded(op.body))
        if op.tile is not None and op.tile.value.data <= MAX_LANES:
            wanted = op.tile.value.data
        return 1 << (_lane_count(op, wanted).bit_length() - 1)  # a power of two, for the tree

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


def _lane_count(op: kernel.ForOp | kernel.ReduceOp, wanted: int) -> int:
    trip = (op.hi.data - op.lo.data).as_int()
    return wanted if trip is None else max(1, min(wanted, trip))
