"""The pass `kernel-bound-softmax-sums`."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.sym import ZERO, Expr, Ranges, as_expr, ceildiv, simplify, smax, smin, symbol
from ..analysis.loops import loops_around, loops_in
from ..counters import counter
from ..remarks import remark
from .hidden_places import Places, Stretch
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .tiles import tile_of
from .transforms import range_of, set_range


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
        known = Ranges.of_axes(((loop.axis.data, loop.hi.data) for loop in loops_around(op)), ranges)
        tile = _Tile(rows.axis.data, tile_of(rows))
        places = Places(op.axis.data, tile.widest)
        seen: Stretch | None = None
        for x in yielded(op.body)[::3]:
            found = places.seen(x)
            seen = found if seen is None else seen.hull(found)
        assert seen is not None
        lo, hi = _within(seen, op, known)
        if (lo is op.lo.data and hi is op.hi.data) or not counter(self.name):
            return
        set_range(op, (op.axis.data, lo, hi))
        remark("passed", self.name, function, f"steps from {lo} to {hi} of {op.axis.data}, the others are hidden")


@dataclass(frozen=True)
class _Tile:
    """The tile that a row is in."""

    axis: str
    rows: int

    def widest(self, bound: Expr, is_upper: bool) -> Expr | None:
        """A bound that holds for all rows of the tile, and is the same for all of them."""
        found = bound.coefficient(self.axis)
        factor = None if found is None else found.as_int()
        if factor is None:
            return None
        rest = bound - symbol(self.axis) * factor
        if self.axis in rest.free_symbols:
            return None
        first = symbol(self.axis) // as_expr(self.rows) * self.rows
        row = first + (self.rows - 1) if (factor > 0) == is_upper else first
        return rest + row * factor


def _within(seen: Stretch, op: kernel.ReduceOp, ranges: Ranges) -> tuple[Expr, Expr]:
    """The lower and upper bound of those steps of a reduction that reach into a stretch of places."""
    _, lo, hi = range_of(op)
    step = as_expr(tile_of(op))
    if seen.lo is not None and lo is ZERO:
        lo = simplify(smax(seen.lo, ZERO) // step * step, ranges)
    if seen.hi is not None:
        hi = simplify(smin(hi, simplify(ceildiv(seen.hi, step) * step, ranges)), ranges)
    return lo, hi
