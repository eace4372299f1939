"""The pass `kernel-bound-steps`."""

from __future__ import annotations

from ...dialects import kernel
from ...records import dataclass
from ..analysis.loops import loops_in
from ..counters import counter
from ..remarks import remark
from .hidden_places import Places, TileOfRows, bounded, has_products, needed_places, tiled_rows
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .tiles import tile_of


@dataclass(frozen=True)
class KernelBoundSteps(KernelPass, kernels=all_for_gpu):
    """Leave out steps of sums on matrix units that index expressions hide from all rows of a tile.

    Level: kernel.

    Precondition: `kernel-map-softmax-sums` and `kernel-map-chained-products`, which say how many rows a tile has.
    Guarantee: a reduction runs only from the first step that a row of its tile needs to the last one. A `softmax_sum`
    on matrix units does not need an x of -inf, for exp(-inf - m) weighs nothing. With products on matrix units in its
    body, a sum does not need a summand of 0, where a factor is a choice of 0, or exp(x - m) with an x of -inf; a
    maximum, not a choice of -inf. What is left out is not read, so that it makes no NaN, as 0 * inf does; nor does a
    row of which all x are -inf, whose m is -inf and whose sum is NaN, where all of its elements are left out. Bounds
    are the same for all rows of a tile, so that its steps are: `64*(i1 floordiv 64)`.

        kernel.for i1 in 0 to 512 map grid tile 64 { ...
          kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 64 {
            %c = arith.cmpi sgt, %i3, %i1   %x = arith.select %c, %lowest, %p   kernel.yield %x, %one, %v } ... }
    becomes
        kernel.for i1 in 0 to 512 map grid tile 64 { ...
          kernel.reduce softmax_sum i3 in 0 to 64*(i1 floordiv 64) + 64 map matrix tile 64 { ... } ... }
    """

    name = "kernel-bound-steps"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Bound the reductions of a kernel."""
        for op in list(loops_in(function.body.block)):
            if not isinstance(op, kernel.ReduceOp) or not (_is_softmax_sum(op) or has_products(op)):
                continue
            rows = tiled_rows(op)
            if rows is None:
                continue
            seen = needed_places(op, Places(op.axis.data, TileOfRows(rows.axis.data, tile_of(rows)).widest))
            if seen is not None and counter(self.name) and bounded(op, seen, facts.ranges):
                steps = f"steps from {op.lo.data} to {op.hi.data} of {op.axis.data}, the others are hidden"
                remark("passed", self.name, function, steps)


def _is_softmax_sum(op: kernel.ReduceOp) -> bool:
    return op.mapping.data == "matrix" and {c.data for c in op.combiners} == {"softmax_sum"}
