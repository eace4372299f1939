"""The pass `kernel-bound-chained-products`."""

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
from .tiles import is_grid, tile_of


@dataclass(frozen=True)
class KernelBoundChainedProducts(KernelPass, kernels=all_for_gpu):
    """Leave out steps of a sum of what products make that are 0 for all rows of a tile, and of a maximum those of -inf.

    Level: kernel.

    Precondition: `kernel-map-chained-products`, which says how many rows a tile has.
    Guarantee: a sum with products on matrix units in its body, whose summands are 0 where a condition on indices holds,
    runs only from the first step in which a row of its tile has something to add to the last one. A summand is 0 where
    a factor is, by a choice of 0, or by exp(x - m) with an x of -inf. What is left out is not read, so that it makes no
    NaN, as 0 * inf does; nor does a row of which all x are -inf, whose m is -inf and whose result is NaN, where all of
    its elements are left out. A maximum leaves out what is -inf by a choice.

        kernel.for i1 in 0 to 512 map grid tile 64 { ...
          kernel.reduce sum i3 in 0 to 512 map matrix tile 64 { %p = kernel.reduce sum i4 ... map matrix ...
            %c = arith.cmpi sgt, %i1, %i3   %x = arith.select %c, %zero, %p   ... } ... }
    becomes
        kernel.for i1 in 0 to 512 map grid tile 64 { ...
          kernel.reduce sum i3 in 64*(i1 floordiv 64) to 512 map matrix tile 64 { ... } ... }
    """

    name = "kernel-bound-chained-products"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Bound the reductions of a kernel."""
        for loop in list(loops_in(function.body.block)):
            if isinstance(loop, kernel.ReduceOp) and len({c.data for c in loop.combiners}) == 1 and _is_chain(loop):
                self._bound(loop, facts.ranges, function)

    def _bound(self, op: kernel.ReduceOp, ranges: Ranges, function: kernel.FuncOp) -> None:
        rows = [each for each in loops_around(op) if isinstance(each, kernel.ForOp) and is_grid(each) and each.tile]
        if len(rows) != 1:
            return
        places = Places(op.axis.data, TileOfRows(rows[0].axis.data, tile_of(rows[0])).widest)
        seen: Stretch | None = None
        told = {"sum": places.counts, "max": places.seen}.get(op.combiners.data[0].data)
        if told is None:
            return
        for value in yielded(op.body):
            found = told(value)
            seen = found if seen is None else seen.hull(found)
        if seen is not None and counter(self.name) and bounded(op, seen, ranges):
            steps = f"steps from {op.lo.data} to {op.hi.data} of {op.axis.data}, the others add nothing"
            remark("passed", self.name, function, steps)


def _is_chain(op: kernel.ReduceOp) -> bool:
    """Whether the body of a reduction has products, and they run on matrix units."""
    inner = [each for each in op.body.block.ops if each.regions]
    return bool(inner) and all(isinstance(each, kernel.ReduceOp) and each.mapping.data == "matrix" for each in inner)
