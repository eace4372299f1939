"""The pass `kernel-merge-loops`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects import kernel
from ...dialects.loop import yielded
from ..counters import counter
from .axes import fresh_axis, kernel_names, nested_axes, rename_axes
from .effects import Effects, conflicts, effects_of, same_iterations, written_buffers
from .locations import merged
from .simplify_block import BlockSimplifier, remove_dead


@dataclass(frozen=True)
class KernelMergeLoops(ModulePass):
    """Merge loops of one block over the same range that touch a common buffer.

    Level: kernel.

    Precondition: loops are as `lower-loop-to-kernel` makes them, without mapping and tiles.
    Guarantee: loops of one block over the same range that touch a common buffer are one loop where no value has to
    flow from the end of one to the start of another. A `for` merged with a `reduce` is a `reduce` that stores, two
    reduces are one with several combiners. What a merged loop stored for itself to read is a scalar now.

        %m = kernel.reduce max i1 in 0 to 8 { %v = kernel.load %x[i1]  kernel.yield %v }
        kernel.for i1 in 0 to 8 { ... kernel.store %e, %row[i1]  kernel.yield }
        %s = kernel.reduce sum i1 in 0 to 8 { %w = kernel.load %row[i1]  kernel.yield %w }
    becomes
        %m = kernel.reduce max i1 in 0 to 8 { %v = kernel.load %x[i1]  kernel.yield %v }
        %s = kernel.reduce sum i1 in 0 to 8 { ... kernel.yield %e }
    """

    name = "kernel-merge-loops"
    level: ClassVar[str] = "kernel"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Merge loops in every kernel."""
        for function in op.body.block.ops:
            if isinstance(function, kernel.FuncOp):
                merge_loops(function)


def merge_loops(function: kernel.FuncOp) -> None:
    """Merge loops in one kernel, outermost blocks first, and clean up behind."""
    block = function.body.block
    names = kernel_names(function)
    if _merge_block(block, names):
        BlockSimplifier(written_buffers(block)).run(block)
        while remove_dead(block):
            pass


def _merge_block(block: Block, names: set[str]) -> bool:
    changed = False
    ops = list(block.ops)
    if sum(isinstance(op, kernel.ForOp | kernel.ReduceOp) for op in ops) > 1:
        grouping = _Grouping(ops[:-1])
        changed = grouping.merges
        if changed:
            _rebuild(block, grouping, names)
    for op in block.ops:
        for region in op.regions:
            changed |= _merge_block(region.block, names)
    return changed


@dataclass
class _Group:
    """Loops that become one, or a single op. `before` is the set of groups that must come earlier, as a bitmask."""

    number: int
    items: list[int]
    before: int = 0


@dataclass
class _Grouping:
    """Decides which ops of a block are merged, from the dependences between them."""

    ops: list[Operation]
    groups: list[_Group] = field(default_factory=list)
    merges: bool = False

    def __post_init__(self) -> None:
        self.effects = [effects_of(op) for op in self.ops]
        self.group_of: list[int] = []
        for item in range(len(self.ops)):
            self._place(item)

    def _place(self, item: int) -> None:
        edges = {earlier: fusable for earlier in range(item) if (fusable := self._edge(earlier, item)) is not None}
        before = 0
        for earlier in edges:
            group = self.groups[self.group_of[earlier]]
            before |= group.before | 1 << group.number
        for group in reversed(self.groups):
            if self._may_join(group, item, edges) and counter("kernel-merge-loops"):
                self.merges = True
                group.items.append(item)
                self.group_of.append(group.number)
                self._add_before(group, before & ~(1 << group.number))
                return
        self.group_of.append(len(self.groups))
        self.groups.append(_Group(len(self.groups), [item], before))

    def _add_before(self, group: _Group, before: int) -> None:
        group.before |= before
        for other in self.groups:
            if other.before >> group.number & 1:
                other.before |= group.before

    def _edge(self, earlier: int, item: int) -> bool | None:
        """None: independent; True: a dependence within one iteration of both loops; False: any other."""
        first, second = self.ops[earlier], self.ops[item]
        if any(result in self.effects[item].uses for result in first.results):
            return False
        pairs = conflicts(self.effects[earlier], self.effects[item])
        if not pairs:
            return None
        if not _same_range(first, second):
            return False
        loops = [(first, second)]
        return all(same_iterations(loops, pair) for pair in pairs)  # pyright: ignore[reportArgumentType]

    def _may_join(self, group: _Group, item: int, edges: dict[int, bool]) -> bool:
        loops = [self.ops[k] for k in group.items]
        if not _same_range(loops[0], self.ops[item]):
            return False
        if not any(_common(self.effects[k], self.effects[item]) for k in group.items):
            return False
        if not _combinable([*loops, self.ops[item]]):
            return False
        for earlier, fusable in edges.items():
            other = self.groups[self.group_of[earlier]]
            if other is group and not fusable:
                return False
            if other is not group and other.before >> group.number & 1:
                return False
        return True

    def in_order(self) -> list[_Group]:
        """Groups such that each comes behind those it depends on, else in the order of their first op."""
        rest = sorted(self.groups, key=lambda group: group.items[0])
        done, order = 0, []
        while rest:
            ready = next(group for group in rest if group.before & ~done == 0)
            rest.remove(ready)
            order.append(ready)
            done |= 1 << ready.number
        return order


def _same_range(first: Operation, second: Operation) -> bool:
    return (
        isinstance(first, kernel.ForOp | kernel.ReduceOp)
        and isinstance(second, kernel.ForOp | kernel.ReduceOp)
        and (first.lo, first.hi, first.mapping, first.tile) == (second.lo, second.hi, second.mapping, second.tile)
    )


def _common(first: Effects, second: Effects) -> bool:
    return not first.buffers.isdisjoint(second.buffers)


def _combinable(loops: list[Operation]) -> bool:
    """Whether the reductions among the loops can share one op: one that has its own combination stands alone."""
    reduces = [op for op in loops if isinstance(op, kernel.ReduceOp)]
    return len(reduces) < 2 or all(op.combine is None for op in reduces)


def _rebuild(block: Block, grouping: _Grouping, names: set[str]) -> None:
    last = block.last_op
    assert last is not None
    for op in grouping.ops:
        block.detach_op(op)
    for group in grouping.in_order():
        loops = [grouping.ops[k] for k in group.items]
        block.insert_op_before(loops[0] if len(loops) == 1 else _merge(loops, names), last)


def _merge(loops: list[Operation], names: set[str]) -> Operation:
    """One loop with the bodies of all, in order."""
    first = loops[0]
    assert isinstance(first, kernel.ForOp | kernel.ReduceOp)
    axis = first.axis.data
    body = Block()
    values: list[SSAValue] = []
    for op in loops:
        assert isinstance(op, kernel.ForOp | kernel.ReduceOp)
        _adopt_axis(op, axis, names)
        values.extend(yielded(op.body))
        block = op.body.block
        for inner in list(block.ops)[:-1]:
            block.detach_op(inner)
            body.add_op(inner)
    body.add_op(kernel.YieldOp.create(operands=values))
    location = merged([op.location for op in loops])
    reduces = [op for op in loops if isinstance(op, kernel.ReduceOp)]
    if reduces:
        new = kernel.ReduceOp.of(
            axis, first.lo.data, first.hi.data, [c.data for op in reduces for c in op.combiners], Region(body),
            init=tuple(v for op in reduces for v in op.init),
            combine=_combine_region(reduces), location=location,
        )  # fmt: skip
        results = iter(new.results)
        for op in reduces:
            for old in op.results:
                old.replace_all_uses_with(next(results))
    else:
        new = kernel.ForOp.of(axis, first.lo.data, first.hi.data, Region(body), location=location)
    for op in loops:
        op.erase()
    return new


def _combine_region(reduces: list[kernel.ReduceOp]) -> Region | None:
    region = reduces[0].combine
    if region is not None:
        reduces[0].detach_region(region)
    return region


def _adopt_axis(op: kernel.ForOp | kernel.ReduceOp, axis: str, names: set[str]) -> None:
    """Let a loop run the given axis; a loop inside that has this name already takes a new one."""
    if op.axis.data == axis:
        return
    renames = {op.axis.data: axis}
    if axis in nested_axes(op):
        renames[axis] = fresh_axis(names)
    rename_axes(op, renames)
