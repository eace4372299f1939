"""The pass `kernel-bound-softmax-sums`."""

from __future__ import annotations

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.sym import Ranges
from ...records import dataclass
from ..analysis.loops import loops_around, loops_in
from ..counters import counter
from ..remarks import remark
from .hidden_places import Places, Stretch, TileOfRows, bounded
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .tiles import tile_of


@dataclass(frozen=True)
class KernelBoundSoftmaxSums(KernelPass, kernels=all_for_gpu):
    """Leave out steps of a sum over a softmax that a mask hides from all rows of a tile.

    Level: kernel.

    Precondition: `kernel-map-softmax-sums`, which says how many rows a tile has.
    Guarantee: a reduction by `softmax_sum` on matrix units, whose x is -inf where a condition on indices holds, runs
    only from the first step in which a row of its tile can see something to the last one. What is left out weighs
    nothing: exp(-inf - m) is 0. Such an element makes NaN of a sum only where what it weighs is not finite, as 0 * inf
    is, and what nobody sees is not read at all here. Rows without anything to see keep a maximum of -inf. Bounds are
    the same for all rows of a tile, so that its steps are: `64*(i1 floordiv 64)`.

        kernel.for i1 in 0 to 512 map grid tile 64 { ...
          kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 64 {
            %c = arith.cmpi sgt, %i3, %i1   %x = arith.select %c, %lowest, %p   kernel.yield %x, %one, %v } ... }
    becomes
        kernel.for i1 in 0 to 512 map grid tile 64 { ...
          kernel.reduce softmax_sum i3 in 0 to 64*(i1 floordiv 64) + 64 map matrix tile 64 { ... } ... }
    """

    name = "kernel-bound-softmax-sums"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Bound the reductions of a kernel."""
        for loop in list(loops_in(function.body.block)):
            if isinstance(loop, kernel.ReduceOp) and loop.mapping.data == "matrix":
                self._bound(loop, facts.ranges, function)

    def _bound(self, op: kernel.ReduceOp, ranges: Ranges, function: kernel.FuncOp) -> None:
        parts = kernel.weighted_sums_of(op) if "softmax_sum" in (c.data for c in op.combiners) else ""
        if isinstance(parts, str):
            return
        (rows,) = (loop for loop in loops_around(op) if loop.axis.data == parts[0].rows)
        places = Places(op.axis.data, TileOfRows(rows.axis.data, tile_of(rows)).widest)
        seen: Stretch | None = None
        for x in yielded(op.body)[::3]:
            found = places.seen(x)
            seen = found if seen is None else seen.hull(found)
        assert seen is not None
        if counter(self.name) and bounded(op, seen, ranges):
            steps = f"steps from {op.lo.data} to {op.hi.data} of {op.axis.data}, the others are hidden"
            remark("passed", self.name, function, steps)
