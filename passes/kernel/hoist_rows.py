"""The pass `kernel-hoist-rows`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from xdsl.dialects.builtin import Float32Type, Float64Type, i32, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.sym import Expr, MapAttr, Ranges, SymAttr, bounds, symbol
from ...records import dataclass
from ..analysis.effects import is_invariant, written_buffers
from ..analysis.loops import Loop, flat_vector_loops, fresh_axis, kernel_names, substitute_axes
from ..analysis.nests import element_bytes, work_of_ops
from ..analysis.sizes import Sizes
from ..analysis.slices import backward_slice
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import tiled_for_cpu
from .simplify_block import remove_dead
from .transforms import set_mapping

#: least work of what is kept, loads aside: a division
DEAR = 2.0
#: fewest rows: one thread computes in front of them what all threads would compute in them
ROWS = 16


@dataclass(frozen=True)
class KernelHoistRows(KernelPass, kernels=tiled_for_cpu):
    """Compute what is the same in every row once, into a local buffer in front of all rows, if it is dear.

    Level: kernel.

    Precondition: `kernel-choose-threads` for a CPU; other kernels stay as they are.
    Guarantee: what vector loops compute alike in all of many rows, numbers or places to read, and that takes a division
    at least, is computed by one more vector loop in front of the rows. The buffers take an eighth of the second cache
    at most, as far as sizes are known.

    Batch norm with channels side by side is such a row: its scale, 1 / sqrt(variance + eps) * weight, depends on the
    channel alone. The divider then decides how fast the rows are: at 12,544 rows of 64 channels a thread took 0.23 ms,
    and 0.04 ms with the scales in a buffer.

        kernel.for i0 in 0 to 12544 map parallel { kernel.for i1 in 0 to 64 map vector tile 16 {
          %v = kernel.load %var[i1]  %r = math.rsqrt %v : f32 ... } }
    becomes
        %row = kernel.local : !kernel.buffer<f32, 64, local>
        kernel.for i2 in 0 to 64 map vector tile 16 { ... %r = math.rsqrt %v : f32  kernel.store %r, %row[i2] }
        kernel.for i0 in 0 to 12544 map parallel { kernel.for i1 in 0 to 64 map vector tile 16 {
          %r = kernel.load %row[i1] ... } }
    """

    name = "kernel-hoist-rows"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Move what rows share in front of them, into buffers of at most `most_bytes` together."""
        most_bytes, sizes, ranges = facts.target.l2_bytes // 8, facts.sizes, facts.ranges
        names, written = kernel_names(function), written_buffers(function.body.block)
        symbols = {each.data for each in function.symbols.data}
        left = most_bytes
        for loop in flat_vector_loops(function):
            around = _rows_around(loop, sizes, ranges)
            extent = loop.hi.data - loop.lo.data
            least, _ = bounds(extent, ranges)
            if not around or not extent.free_symbols <= symbols or extent.as_int() == 0 or least is None or least < 0:
                continue
            kept = _kept(loop, _invariant(loop, around, written), sizes)
            width = sum(sizes.of(extent) * element_bytes(value.type) for value in kept)
            if kept and width <= left and counter(KernelHoistRows.name):
                left -= width
                _keep(loop, around[-1], kept, extent, names)
        remove_dead(function.body.block)


def _rows_around(loop: kernel.ForOp, sizes: Sizes, ranges: Ranges) -> list[kernel.ForOp]:
    """The loops around one, inner before outer, where they are `for` loops of enough rows that leave its range alone.

    Each must run: what is moved in front of it may divide integers.
    """
    around: list[kernel.ForOp] = []
    parent = loop.parent_op()
    while isinstance(parent, Loop):
        least, _ = bounds(parent.hi.data - parent.lo.data, ranges)
        if not isinstance(parent, kernel.ForOp) or least is None or least < 1:
            return []
        around.append(parent)
        parent = parent.parent_op()
    axes = {each.axis.data for each in around}
    if not axes.isdisjoint(loop.lo.data.free_symbols | loop.hi.data.free_symbols):
        return []
    return around if prod(map(sizes.trips, around)) >= ROWS else []


def _invariant(loop: kernel.ForOp, around: Sequence[kernel.ForOp], written: set[SSAValue]) -> dict[Operation, None]:
    """Ops of a loop that give the same in every row, in order."""
    axes = {each.axis.data for each in around}
    found: dict[Operation, None] = {}
    for op in loop.body.block.ops:
        is_local = isinstance(op, kernel.LoadOp) and not isinstance(op.buffer, BlockArgument)
        if not is_local and all(value.owner in found for value in _inputs(op)) and is_invariant(op, axes, written):
            found[op] = None
    return found


def _inputs(op: Operation) -> Iterable[SSAValue]:
    return op.operands[1:] if isinstance(op, kernel.LoadOp) else op.operands


def _kept(loop: kernel.ForOp, invariant: dict[Operation, None], sizes: Sizes) -> list[SSAValue]:
    """Results of invariant ops that others read, that differ from lane to lane, and that are dear to compute."""
    return [
        result
        for op in invariant
        for result in op.results
        if any(use.operation not in invariant for use in result.uses)
        and _is_kept_as(result.type)
        and loop.axis.data in kernel.axes_of(result)
        and _work(slice_of(result, loop), sizes) >= DEAR
    ]


def _is_kept_as(type_: Attribute) -> bool:
    """Whether values of a type fill elements of a buffer as wide as they are computed."""
    return type_ in (Float32Type(), Float64Type(), i32, i64)


def _work(ops: Iterable[Operation], sizes: Sizes) -> float:
    return work_of_ops((op for op in ops if not isinstance(op, kernel.LoadOp)), sizes)


def slice_of(value: SSAValue, loop: kernel.ForOp) -> set[Operation]:
    """The ops of a loop that a value is computed by."""
    return set(backward_slice([value], lambda op: op.parent_op() is loop))


def _keep(loop: kernel.ForOp, outermost: kernel.ForOp, kept: list[SSAValue], extent: Expr, names: set[str]) -> None:
    """Fill a buffer for each value in front of all rows, and read it in them."""
    needed = set().union(*(slice_of(value, loop) for value in kept))
    copies: dict[SSAValue, SSAValue] = {}
    body: list[Operation] = []
    for op in loop.body.block.ops:
        if op in needed:
            body.append(op.clone(copies))
    axis = fresh_axis(names)
    place = symbol(loop.axis.data) - loop.lo.data
    before: list[Operation] = []
    for value in kept:
        local = kernel.LocalOp.of(value.type, SymAttr.of(extent))
        local.buffer.name_hint = value.name_hint or "row"
        location = value.owner.location if isinstance(value.owner, Operation) else loop.location
        body.append(kernel.StoreOp.of(copies[value], local.buffer, MapAttr.of(place), location=location))
        before.append(local)
        load = kernel.LoadOp.of(local.buffer, MapAttr.of(place), location=location)
        loop.body.block.insert_op_before(load, loop.body.block.first_op)  # pyright: ignore[reportArgumentType]
        value.replace_uses_with_if(load.value, lambda use: use.operation not in needed)
    block = Block([*body, kernel.YieldOp.create()])
    substitute_axes(block, {loop.axis.data: symbol(axis)})
    fill = kernel.ForOp.of(axis, loop.lo.data, loop.hi.data, Region(block), location=loop.location)
    set_mapping(fill, "vector", loop.tile.value.data if loop.tile is not None else None)
    parent = outermost.parent
    assert parent is not None
    parent.insert_ops_before([*before, fill], outermost)
