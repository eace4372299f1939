"""Loops outside lanes: SIMD loops, tiles, reductions; threads are in `parallel`."""

from __future__ import annotations

from typing_extensions import override
from xdsl.ir import Operation

from ...dialects import kernel
from ...errors import UnsupportedError
from ...passes.kernel.assign_accumulators import fits_lanes, lanes_of
from ..c_like.checked import loop_end, loop_head
from ..c_like.loops import SerialLoops, no_values
from ..c_like.quotients import name_quotients
from ..c_like.reductions import OnYield, reduce_in_blocks
from ..c_like.statements import is_loop
from ..c_like.types import scalar_ctype
from ..printing.code import Code
from .accumulators import LaneAccumulators, in_lanes
from .digit_dots import emit_dots
from .lanes import LaneEmitter, Lanes, simd_pragma
from .transpose import emit_transposed


class LoopEmitter(SerialLoops):
    """Writes the body of a kernel."""

    @override
    def loop(self, op: kernel.ForOp) -> None:
        mapping = op.mapping.data
        if mapping in ("parallel", "grid") and not self.context.in_parallel:
            from .parallel import emit_parallel  # which builds on this module

            return emit_parallel(self, op)
        name_quotients(self.context, op)
        if op.intrinsic is not None and not self.context.checked:
            return emit_transposed(self.context, op)
        if (width := _lanes(op)) is not None:
            self.context.comment(op)
            return self._tiled(op, width, self.context.index(op.lo.data), self.context.index(op.hi.data), no_values)
        self.context.comment(op)
        if mapping == "vector" and not _has_loops(op):
            simd_pragma(self.context, list(op.body.block.ops))
        self.iterations(op)

    @override
    def reduce(self, op: kernel.ReduceOp) -> None:
        context, width = self.context, _lanes(op)
        if op.intrinsic is not None and not context.checked:
            return emit_dots(context, op)
        if width is None:
            return super().reduce(op)
        context.comment(op)
        name_quotients(context, op)

        def loop(lo: Code, hi: Code, on_yield: OnYield) -> None:
            self._tiled(op, width, lo, hi, on_yield)

        totals = reduce_in_blocks(context, op, loop, in_lanes(context, op, width))
        assert isinstance(totals, LaneAccumulators)
        for result, total in zip(op.outs, totals.fold(), strict=True):
            if result.first_use is not None:
                name = context.names.temporary()
                context.out.line(f"const {scalar_ctype(result.type)} {name} = {total};")
                context.values[result] = Code(name)

    def _tiled(self, op: kernel.ForOp | kernel.ReduceOp, width: int, lo: Code, hi: Code, on_yield: OnYield) -> None:
        """Write a vector axis as tiles of `width` lanes; only a ragged last tile has fewer."""
        context = self.context
        axis, tile = context.names.fresh(op.axis.data), context.names.fresh(f"{op.axis.data}_tile")
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
