"""The pass `kernel-load-ahead`."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO, MapAttr, Ranges, SymAttr, symbol
from ...records import dataclass
from ..analysis.effects import written_buffers
from ..analysis.loops import Loop
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import tiled_for_gpu
from .tiles import extent_of, is_grid, is_persistent, tile_of

#: most rows whose elements wait in registers
MOST = 4


@dataclass(frozen=True)
class KernelLoadAhead(KernelPass, kernels=tiled_for_gpu):
    """Load the rows that the last sum of a program reads in front of the sums before it, which then hide the wait.

    Level: kernel.

    Precondition: `kernel-tile` for a GPU; in front of `kernel-assign-registers`. Other kernels stay as they are.
    Guarantee: where a program reduces what all programs read, and then rows of its own, all of them in lanes that one
    tile covers, up to four loads of such rows, of what memory held before the kernel, stand in a loop of their own in
    front of the first reduction. Local buffers, which are register tiles, hold what they loaded. A program cannot load
    behind a reduction before all of its threads are there.

        %n = kernel.reduce sum i1 in 0 to 2048 map vector tile 2048 { %a = kernel.load %x[i1] ... }
        %s = kernel.reduce sum i1 in 0 to 2048 map vector tile 2048 { ... %b = kernel.load %w[2048*i0 + i1] ... }
    becomes
        %t = kernel.local : !kernel.buffer<bf16, 2048, local>
        kernel.for i1 in 0 to 2048 map vector tile 2048 {
          %b = kernel.load %w[2048*i0 + i1]  kernel.store %b, %t[i1] }
        %n = kernel.reduce sum i1 in 0 to 2048 map vector tile 2048 { %a = kernel.load %x[i1] ... }
        %s = kernel.reduce sum i1 in 0 to 2048 map vector tile 2048 { ... %b = kernel.load %t[i1] ... }
    """

    name = "kernel-load-ahead"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Look at the body of each nest on the grid."""
        written = written_buffers(function.body.block)
        for block, programs in _bodies_of_programs(function.body.block, frozenset()):
            found = _rows(block, programs, written, facts.ranges)
            if found is not None and counter(self.name):
                _put_in_front(*found)


def _bodies_of_programs(block: Block, programs: frozenset[str]) -> Iterator[tuple[Block, frozenset[str]]]:
    """The bodies of the innermost loops of the grid, with the axes of these."""
    inner = [op for op in block.ops if is_grid(op)]
    for op in inner:
        assert isinstance(op, kernel.ForOp)
        yield from _bodies_of_programs(op.body.block, programs | {op.axis.data})
    if not inner and programs:
        yield block, programs


def _rows(
    block: Block, programs: frozenset[str], written: set[SSAValue], ranges: Ranges
) -> tuple[Operation, Loop, list[kernel.LoadOp]] | None:
    """The first reduction of a program, its last one, and the loads of rows in that; None where there are none."""
    loops = [op for op in block.ops if isinstance(op, Loop)]
    if len(loops) < 2 or any(not isinstance(op, kernel.ReduceOp) or not is_persistent(op, ranges) for op in loops):
        return None
    rows = {loop: _loads_of_rows(loop, programs, written) for loop in loops}
    last = loops[-1]
    if any(rows[loop] for loop in loops[:-1]) or not 0 < len(rows[last]) <= MOST or last.lo.data is not ZERO:
        return None
    return loops[0], last, rows[last]


def _loads_of_rows(loop: Loop, programs: frozenset[str], written: set[SSAValue]) -> list[kernel.LoadOp]:
    """The loads in a loop whose places vary along it and the grid, and follow from these alone."""
    loads = [op for region in loop.regions for op in region.block.ops if isinstance(op, kernel.LoadOp)]
    return [
        op
        for op in loads
        if op.buffer not in written
        and not isinstance(op.buffer.owner, kernel.LocalOp)
        and not op.dynamic
        and op.mask is None
        and loop.axis.data in op.map.data[0].free_symbols
        and not programs.isdisjoint(op.map.data[0].free_symbols)
    ]


def _put_in_front(first: Operation, last: Loop, loads: list[kernel.LoadOp]) -> None:
    """Load rows in a loop of their own, into register tiles."""
    block = first.parent
    assert block is not None
    place = MapAttr.of(symbol(last.axis.data))
    moved: list[Operation] = []
    for load in loads:
        kind = load.buffer.type
        assert isinstance(kind, kernel.BufferType)
        local = kernel.LocalOp.of(kind.element, SymAttr.of(extent_of(last)))
        block.insert_op_before(local, first)
        again = kernel.LoadOp.of(local.buffer, place, location=load.location)
        again.value.name_hint = load.value.name_hint
        load.value.replace_all_uses_with(again.value)
        assert load.parent is not None
        load.parent.insert_op_before(again, load)
        load.detach()
        moved += [load, kernel.StoreOp.of(load.value, local.buffer, place, location=load.location)]
    body = Region(Block([*moved, kernel.YieldOp.create()]))
    ahead = kernel.ForOp.of(
        last.axis.data, last.lo.data, last.hi.data, body, last.mapping.data, tile_of(last), loads[0].location
    )
    block.insert_op_before(ahead, first)
