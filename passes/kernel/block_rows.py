"""The pass `kernel-block-rows`."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.sym import ONE, ZERO, Ranges, as_expr, smin
from ...records import dataclass
from ..analysis.loops import fresh_axis, kernel_names, loops_around, loops_in
from ..counters import counter
from .gpu_blocks import GpuBlocks, rows_at_once
from .kernel_pass import KernelFacts, KernelPass
from .register_tiles import carrying_loops
from .scheduled import free_tiled_for_gpu
from .tiles import is_grid, is_persistent, tile_of
from .transforms import Range, block_range, range_of, set_range


@dataclass(frozen=True)
class KernelBlockRows(KernelPass, kernels=free_tiled_for_gpu):
    """Let a program take several of its rows at once where it keeps sums of their columns (strip-mining, interchange).

    Level: kernel.

    Precondition: `kernel-spill`, with the loops that are to stay. Other kernels stay as they are.
    Guarantee: a serial loop over rows that each lie in registers, and that carries sums of their columns, runs over
    blocks of rows, whose lanes lie along one more dimension of the tile: the loads of a block are on their way
    together, and its reductions wait for each other once. The lanes of a column add to its sum with `add atomic`, which
    combines them first; where the sums are set and read, a dimension of one element stands for the rows. Sums may come
    in another order.

        kernel.for i1 ... { kernel.store %zero, %total[i1] }
        kernel.for i0 in 0 to 16 { ... kernel.for i1 ... map vector tile 1024 {
          ... %t = kernel.load %total[i1]  %s = arith.addf %t, %v  kernel.store %s, %total[i1] } }
        kernel.for i1 ... { %t = kernel.load %total[i1] ... }
    becomes
        kernel.for i2 in 0 to 1 map vector tile 4 { kernel.for i1 ... { kernel.store %zero, %total[i1] } }
        kernel.for i3 in 0 to 4 { kernel.for i0 in 4*i3 to 4*i3 + 4 map vector tile 4 { ...
          kernel.for i1 ... map vector tile 1024 { ... kernel.store add atomic %v, %total[i1] } } }
        kernel.for i2 in 0 to 1 map vector tile 4 { kernel.for i1 ... { %t = kernel.load %total[i1] ... } }
    """

    name = "kernel-block-rows"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Block the rows of every kernel that sums columns beside them."""
        for loop in [op for op in loops_in(function.body.block) if isinstance(op, kernel.ForOp)]:
            rows = _Rows.of(loop, facts.ranges)
            if rows is None:
                continue
            blocks = GpuBlocks.of(facts.target)
            size = rows_at_once(facts.sizes.trips(loop), rows.elements, rows.inputs, blocks)
            if size > 1 and counter(self.name):
                rows.block(function, size)
                function.properties["per_thread"] = IntegerAttr(blocks.least_per_thread * size, i64)


#: how an iteration adds to an element
Sum = tuple[kernel.LoadOp, arith.AddfOp, kernel.StoreOp]


@dataclass(frozen=True)
class _Rows:
    """A loop over rows that carries sums."""

    loop: kernel.ForOp
    sums: list[Sum]

    @staticmethod
    def of(loop: kernel.ForOp, ranges: Ranges) -> _Rows | None:
        """What is known of a loop; None where its iterations share more than sums, or a row fits no registers."""
        parent = loop.parent
        if loop.mapping.data != "serial" or loop.tile is not None or parent is None:
            return None
        if not is_grid(loop.parent_op()) or any(tile_of(op) > 1 for op in loops_around(loop)):
            return None
        inner = list(loops_in(loop.body.block))
        if not inner or not all(is_persistent(op, ranges) and op.parent is loop.body.block for op in inner):
            return None
        found = [_sum_in(local, loop) for local in _locals_across(loop)]
        sums = [each for each in found if each is not None]
        if not sums or len(sums) < len(found) or _meets_others(loop, {store for _, _, store in sums}):
            return None
        return _Rows(loop, sums)

    @property
    def elements(self) -> int:
        """Elements of the tile of a row."""
        return max(map(tile_of, loops_in(self.loop.body.block)))

    @property
    def inputs(self) -> int:
        """Buffers of which each element of a row is loaded."""
        axes = {op.axis.data for op in loops_in(self.loop.body.block)}
        loads = (op for op in self.loop.body.block.walk() if isinstance(op, kernel.LoadOp))
        rows = (op for op in loads if self.loop.axis.data in (used := op.map.data[0].free_symbols) and axes & used)
        return len({op.buffer for op in rows})

    def block(self, function: kernel.FuncOp, size: int) -> None:
        """Rewrite, with blocks of so many rows."""
        names = kernel_names(function)
        axis = fresh_axis(names)
        uses = (use.operation for _, _, store in self.sums for use in store.buffer.uses)
        for op in dict.fromkeys(loops_around(use, self.loop.parent)[0] for use in uses):
            if op is not self.loop:
                _wrap(op, axis, size)
        for load, add, store in self.sums:
            store.operands[0] = add.rhs if add.lhs is load.value else add.lhs
            store.properties |= {"kind": StringAttr("add"), "atomic": UnitAttr()}
            for op in (add, load):
                op.detach()
                op.erase()
        blocks, within = self._ranges(size, names)
        block = self.loop.body.block
        self.loop.body.detach_block(block)
        inner = kernel.ForOp.of(*within, Region(block), "vector", size, self.loop.location)
        self.loop.body.add_block(Block([inner, kernel.YieldOp.create()]))
        set_range(self.loop, blocks)

    def _ranges(self, size: int, names: set[str]) -> tuple[Range, Range]:
        """Ranges of the blocks, and within one: it is plain that no block has more rows than `size`."""
        blocks, (name, start, end) = block_range(range_of(self.loop), size, names)
        rest = self.loop.hi.data - start
        return blocks, (name, start, end if (end - start).is_constant else start + smin(as_expr(size), rest))


def _locals_across(loop: kernel.ForOp) -> list[kernel.LocalOp]:
    """The local buffers of outside that a loop accesses."""
    accesses = (op for op in loop.body.block.walk() if isinstance(op, kernel.LoadOp | kernel.StoreOp))
    owners = dict.fromkeys(op.buffer.owner for op in accesses)
    return [op for op in owners if isinstance(op, kernel.LocalOp) and not loop.is_ancestor(op)]


def _sum_in(local: kernel.LocalOp, loop: kernel.ForOp) -> Sum | None:
    """How a loop adds to the elements of a buffer that it carries; None where it does anything else with them."""
    users = [use.operation for use in local.buffer.uses]
    if local.parent is not loop.parent or loop not in carrying_loops(local):
        return None
    if not all(loops_around(user, local.parent) for user in users):
        return None
    inside = [user for user in users if loop.is_ancestor(user)]
    loads = [op for op in inside if isinstance(op, kernel.LoadOp)]
    stores = [op for op in inside if isinstance(op, kernel.StoreOp)]
    if len(inside) != 2 or len(loads) != 1 or len(stores) != 1:
        return None
    load, store = loads[0], stores[0]
    add = store.value.owner
    if not isinstance(add, arith.AddfOp) or load.value not in add.operands or add.lhs is add.rhs:
        return None
    alone = load.value.has_one_use() and add.result.has_one_use() and load.parent is store.parent is add.parent
    plain = load.map == store.map and load.mask is None and store.mask is None and store.kind.data == "set"
    return (load, add, store) if alone and plain else None


def _meets_others(loop: kernel.ForOp, sums: set[kernel.StoreOp]) -> bool:
    """Whether a row may store, beside the sums, where another row reads or stores, or needs an order of its own."""
    own_axis = loop.axis.data
    for op in loop.body.block.walk():
        if isinstance(op, kernel.AssertOp | kernel.BarrierOp | kernel.ScanOp):
            return True
        if not isinstance(op, kernel.StoreOp) or op in sums or _is_inside(op.buffer, loop):
            continue
        plain = op.kind.data == "set" and op.ordered is None and not op.dynamic
        if not plain or own_axis not in op.map.data[0].free_symbols:
            return True
    return False


def _is_inside(buffer: SSAValue, loop: kernel.ForOp) -> bool:
    """Whether a buffer is a local one of each iteration."""
    return isinstance(buffer.owner, Operation) and loop.is_ancestor(buffer.owner)


def _wrap(op: Operation, axis: str, size: int) -> None:
    """Put a loop of one iteration around an op, whose tile has as many elements as the rows of a block."""
    parent, after = op.parent, op.next_op
    assert parent is not None and after is not None
    op.detach()
    body = Region(Block([op, kernel.YieldOp.create()]))
    parent.insert_op_before(kernel.ForOp.of(axis, ZERO, ONE, body, "vector", size, op.location), after)
