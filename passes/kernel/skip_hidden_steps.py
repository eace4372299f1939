"""The pass `kernel-skip-hidden-steps`."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Region, SSAValue

from ...dialects import kernel
from ...dialects.sym import as_expr, smin, symbol
from ...records import dataclass
from ..analysis.loops import fresh_axis, kernel_names, loops_in
from ..counters import counter
from ..remarks import remark
from .gpu_blocks import power_above
from .hidden_places import has_products, needed_places, tiled_rows
from .kernel_pass import KernelFacts, KernelPass
from .loaded_places import Builder, Condition, LoadedPlaces, extrema, index
from .scheduled import all_for_gpu
from .tiles import tile_of

#: places that a program looks at together
_LANES = 1024
#: what no axis reaches
_BEHIND_ALL = (1 << 31) - 1


@dataclass(frozen=True)
class KernelSkipHiddenSteps(KernelPass, kernels=all_for_gpu):
    """Leave out steps of sums on matrix units that loaded numbers, such as those of documents, hide from a tile's rows.

    Level: kernel.

    Precondition: `kernel-bound-steps`, which leaves out what can be proved.
    Guarantee: a reduction with products on matrix units whose elements are hidden by a comparison of a loaded number of
    the row with one of the place, or by a loaded truth of the place, runs only from the first step that some row of its
    tile may see to the last one. The program looks at these numbers once in front of the loop: where the place's number
    lies between the lowest and the highest of the tile's rows, it may be seen. So what is left out is hidden from all;
    sorted numbers leave out all that can be, others perhaps nothing. What is left out is not read, so that it makes no
    NaN, as 0 * inf does.

        kernel.for i1 in 0 to 512 map grid tile 64 { kernel.for i2 ... {
          kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 64 {
            %a = kernel.load %ids[i1]   %b = kernel.load %ids[i3]   %c = arith.cmpi eq, %a, %b
            %x = arith.select %c, %p, %lowest   ... } ... } }
    becomes
        kernel.for i1 in 0 to 512 map grid tile 64 {
          %low, %high = kernel.reduce [min, max] i4 in 64*(i1 floordiv 64) to 64*(i1 floordiv 64) + 64 map vector ... {
            %a = kernel.load %ids[i4] ... }
          %first, %last = kernel.reduce [min, max] i5 in 0 to 512 map vector tile 512 {
            %b = kernel.load %ids[i5]   ... whether %low <= %b <= %high ... }
          kernel.for i2 ... { kernel.reduce softmax_sum i3 in 0 to 512 map matrix tile 64 within %first, %last ... } }
    """

    name = "kernel-skip-hidden-steps"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Bound the reductions of a kernel by what is loaded."""
        for op in list(loops_in(function.body.block)):
            if not isinstance(op, kernel.ReduceOp) or op.within or not has_products(op):
                continue
            rows = tiled_rows(op)
            if rows is None:
                continue
            found = needed_places(op, LoadedPlaces(op.axis.data, lambda *_: None, rows.axis.data))
            condition = cast(Condition, found or Condition())
            if condition.kind != "anywhere" and counter(self.name):
                _skip(op, rows, condition, kernel_names(function))
                remark("passed", self.name, function, f"steps of {op.axis.data} that loaded numbers hide are left out")


def _skip(op: kernel.ReduceOp, rows: kernel.ForOp, condition: Condition, names: set[str]) -> None:
    """Build, in front of what the loop of rows does, what finds the places, and let the reduction run within them."""
    row, tile = symbol(rows.axis.data), tile_of(rows)
    start = row // as_expr(tile) * tile
    known: dict[SSAValue, tuple[SSAValue, SSAValue]] = {}
    block = rows.body.block
    first_op = block.first_op
    assert first_op is not None
    for value in dict.fromkeys(condition.rows()):
        bounds = start, smin(start + tile, rows.hi.data)
        reduce = extrema(value, rows.axis.data, bounds, tile, fresh_axis(names))
        block.insert_op_before(reduce, first_op)
        known[value] = reduce.results[0], reduce.results[1]
    place = fresh_axis(names)
    builder = Builder(known, {op.axis.data: symbol(place)})
    holds = builder.holds(condition)
    here, behind = (builder.add(index(symbol(place) + k)) for k in (0, 1))
    none, nothing = (builder.add(arith.ConstantOp(IntegerAttr(number, i64))) for number in (_BEHIND_ALL, 0))
    first = builder.add(arith.SelectOp(holds, here, none))
    last = builder.add(arith.SelectOp(holds, behind, nothing))
    body = Region(Block([*builder.ops, kernel.YieldOp.create(operands=(first, last))]))
    most = op.hi.data.as_int() or _LANES
    size = min(_LANES, max(16, power_above(most)))
    found = kernel.ReduceOp.of(place, op.lo.data, op.hi.data, ["min", "max"], body, "vector", size)
    block.insert_op_before(found, first_op)
    op.keep_within(*found.results)
