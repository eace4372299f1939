"""The pass `kernel-jam-rows`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.sym import ONE, ZERO, as_expr, symbol
from ...machines import CpuTarget
from ...records import dataclass
from ..analysis.loops import substitute_axes
from ..common.choices import chosen_tile
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .products import ProductNest, product_nests
from .scheduled import is_mapped, untiled_for_cpu
from .transforms import range_of, set_mapping, set_range

#: elements of the depth that are added in the type of the sum, as libraries do; `kernel-assign-accumulators` adds fewer
BLOCK = 512


@dataclass(frozen=True)
class KernelJamRows(KernelPass, kernels=untiled_for_cpu):
    """Compute several rows of a product at once on a CPU, so that what they share is loaded once (unroll and jam).

    Level: kernel.

    Precondition: in front of `kernel-map`; loops are serial. Only with the option `loop_products`, or where
    products carry a `tile`, and only kernels whose nests are all products, as for `kernel-map-products`.
    Guarantee: an iteration of the loop over rows does `rows` of them; their sums are one reduction, which loads once
    what no row decides, and what is done with the sums is written out. A nest behind it does the rows that are left.
    Where the second factors lie side by side along the depth and not along the columns, lanes run along the depth.
    Else loops stay serial: which of them run in threads and in lanes is for the passes behind it to say, as ever.

        kernel.for i0 in 0 to 512 { kernel.for i1 in 0 to 384 {
          %s = kernel.reduce sum i2 in 0 to 256 {
            %a = kernel.load %x[256*i0 + i2]  %b = kernel.load %w[384*i2 + i1] ... }
    becomes, with two rows,
        kernel.for i0 in 0 to 256 { kernel.for i1 in 0 to 384 {
          %s, %t = kernel.reduce [sum, sum] i2 in 0 to 256 {
            %a = kernel.load %x[512*i0 + i2]  %b = kernel.load %w[384*i2 + i1] ...
            %c = kernel.load %x[512*i0 + i2 + 256] ... }
    """

    name = "kernel-jam-rows"
    loop_products: bool = False
    rows: int = 4
    """Rows of one iteration. Operations a nanosecond of float32 on one core with AVX2, the library, one row and four:
    128x128x128 69, 34, 42; 256x256x256 56, 25, 40; with the second matrix transposed 69, 29, 34 and 52, 23, 34."""

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Jam every kernel for the CPU that is a product."""
        chosen = chosen_tile(function)
        rows = chosen[0] if chosen else self.rows
        if (not self.loop_products and chosen is None) or rows < 2:
            return
        if is_mapped(function) or not any(isinstance(inner, kernel.ReduceOp) for inner in function.walk()):
            return
        nests = product_nests(function, facts.sizes)
        if isinstance(nests, str):
            remark("missed", self.name, function, f"rows are computed one by one: {nests}")
            return
        for nest in nests:
            if counter(self.name):
                along_depth = _lies_along_depth(nest)
                sums = _jam(nest, rows)
                if along_depth and facts.target.vector_bytes:
                    _put_lanes_along_depth(nest, sums, facts.target)
                remark("passed", self.name, function, f"{rows} rows at once")


def _lies_along_depth(nest: ProductNest) -> bool:
    """Whether lanes along the columns would read elements that are far apart, and lanes along the depth would not."""
    loads = [(op, each) for op in nest.sums for each in op.body.block.ops if isinstance(each, kernel.LoadOp)]
    own = [(op, each.map.data[0]) for op, each in loads if nest.columns.axis.data in each.map.data[0].free_symbols]
    strides = [(index.coefficient(nest.columns.axis.data), index.coefficient(op.axis.data)) for op, index in own]
    return any(along is not ONE and depth is ONE for along, depth in strides)


def _put_lanes_along_depth(nest: ProductNest, sums: Sequence[kernel.ReduceOp], target: CpuTarget) -> None:
    """Map a nest as `kernel-map` and `kernel-vectorize` would, with lanes along the depth."""
    for loop in nest.loops:
        set_mapping(loop, "parallel")
    for op in sums:
        set_mapping(op, "vector", target.vector_bytes // 4)


def _jam(nest: ProductNest, count: int) -> list[kernel.ReduceOp]:
    """Let each iteration over rows compute several rows, and a copy of the nest those that are left; returns the new
    sums.
    """
    outer = max(nest.loops, key=lambda loop: sum(1 for _ in loop.walk()))
    inner = min(nest.loops, key=lambda loop: sum(1 for _ in loop.walk()))
    axis, _, size = range_of(nest.rows)
    whole = size // as_expr(count)
    if (whole * count - size) is not ZERO:
        _leave_rest(outer, nest.rows, whole * count)
    set_range(nest.rows, (axis, ZERO, whole))
    block = inner.body.block
    copies = [_Copy(block, axis, row, count) for row in range(count)]
    new = Block([])
    for op in list(block.ops):
        if isinstance(op, kernel.YieldOp):
            continue
        if isinstance(op, kernel.ReduceOp):
            _join(op, copies, new)
        else:
            for copy in copies:
                copy.add(op, new)
    new.add_op(kernel.YieldOp.create())
    inner.body.detach_block(block)
    inner.body.add_block(new)
    block.erase(safe_erase=False)
    return [op for op in new.ops if isinstance(op, kernel.ReduceOp)]


def _leave_rest(outer: kernel.ForOp, rows: kernel.ForOp, start: object) -> None:
    """Put a copy of a nest behind it, which does the rows from `start` on."""
    values: dict[SSAValue, SSAValue] = {}
    copy = outer.clone(values)
    parent = outer.parent
    assert parent is not None and isinstance(copy, kernel.ForOp)
    parent.insert_op_after(copy, outer)
    (found,) = (op for op in copy.walk() if isinstance(op, kernel.ForOp) and op.axis.data == rows.axis.data)
    axis, _, size = range_of(rows)
    set_range(found, (axis, start, size))  # pyright: ignore[reportArgumentType]


class _Copy:
    """One of the rows that an iteration does: its axis is `count` times the loop's, plus the row."""

    def __init__(self, block: Block, axis: str, row: int, count: int) -> None:
        self.axis = axis
        self.index = symbol(axis) * count + row
        self.row = row
        self.values: dict[SSAValue, SSAValue] = {}

    def add(self, op: Operation, block: Block) -> Operation:
        """Clone an op into a block, for this row."""
        copy = op.clone(self.values)
        holder = Block([copy])
        substitute_axes(holder, {self.axis: self.index})
        copy.detach()
        block.add_op(copy)
        return copy


def _join(op: kernel.ReduceOp, copies: Sequence[_Copy], block: Block) -> None:
    """Make one reduction of the reductions of all rows. An op that is the same for all rows is in it once."""
    body = Block([])
    results: list[SSAValue] = []
    for copy in copies:
        for inner in op.body.block.ops:
            if isinstance(inner, kernel.YieldOp):
                continue
            if copy.row and not any(copy.axis in kernel.axes_of(result) for result in inner.results):
                copy.values.update((result, copies[0].values[result]) for result in inner.results)
            else:
                copy.add(inner, body)
        results += [copy.values[value] for value in yielded(op.body)]
    body.add_op(kernel.YieldOp.create(operands=results))
    combiners = [combiner.data for combiner in op.combiners] * len(copies)
    joined = kernel.ReduceOp.of(*range_of(op), combiners, Region(body), location=op.location)
    if kernel.float_sums(joined):
        joined.properties["block"] = IntegerAttr(BLOCK, i64)
    block.add_op(joined)
    each = len(op.results)
    for copy in copies:
        mine = joined.results[copy.row * each : (copy.row + 1) * each]
        copy.values.update(zip(op.results, mine, strict=True))
