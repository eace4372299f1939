"""The pass `kernel-merge-loops`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from math import inf

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.raw import ops_of
from ...machines import CpuTarget, Target
from ...records import dataclass
from ..analysis.dependences import directions, same_iterations
from ..analysis.effects import Effects, conflicts, effects_of
from ..analysis.loops import Loop, fresh_axis, is_loop, kernel_names, nested_axes, rename_axes
from ..analysis.nests import Nest, is_unit, work_of_block
from ..analysis.sizes import Sizes
from ..common.locations import merged
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .simplify_block import simplify
from .transforms import set_mapping

#: work of a loop's body up to which a CPU runs it element by element beside a scan, whose elements wait for each other
BESIDE_SCAN = 6.0


class KernelMergeLoops(KernelPass):
    """Merge loops of one block over the same range that touch a common buffer, or that a third one meets.

    Level: kernel.

    Precondition: loops are as `lower-loop-to-kernel` makes them, without mapping and tiles.
    Guarantee: loops of one block over the same range that touch a common buffer are one loop where no value has to
    flow from the end of one to the start of another. A `for` merged with a `reduce` is a `reduce` that stores, two
    reduces, or two scans, are one with several combiners. On a GPU so are loops without a common buffer where another
    loop over the same range touches one of each: all that is read is on its way at once, and where rows are too long to
    be kept, what is computed again is shared. A `for` in front of a `scan` is part of its body, one behind it part of
    `then`; on a CPU only where it is little work, because lanes run it faster than the steps of a scan do. What a
    merged loop stored for itself to read is a scalar now.

        %m = kernel.reduce max i1 in 0 to 8 { %v = kernel.load %x[i1]  kernel.yield %v }
        kernel.for i1 in 0 to 8 { ... kernel.store %e, %row[i1]  kernel.yield }
        %s = kernel.reduce sum i1 in 0 to 8 { %w = kernel.load %row[i1]  kernel.yield %w }
    becomes
        %m = kernel.reduce max i1 in 0 to 8 { %v = kernel.load %x[i1]  kernel.yield %v }
        %s = kernel.reduce sum i1 in 0 to 8 { ... kernel.yield %e }

        kernel.scan sum i1 in 0 to 8 { ... } then { ^bb0(%c: f32): kernel.store %c, %row[i1]  kernel.yield }
        kernel.for i1 in 0 to 8 { %v = kernel.load %row[i1]  %n = scalar.narrow %v : f32 to bf16  kernel.store ... }
    becomes
        kernel.scan sum i1 in 0 to 8 { ... } then { ^bb0(%c: f32): %n = scalar.narrow %c : f32 to bf16  ... }
    """

    name = "kernel-merge-loops"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Merge loops in every kernel."""
        merge_loops(function, facts.target)


def merge_loops(function: kernel.FuncOp, target: Target) -> None:
    """Merge loops in one kernel, outermost blocks first, and clean up behind."""
    block = function.body.block
    on_cpu = isinstance(target, CpuTarget)
    policy = _Policy(BESIDE_SCAN if on_cpu else inf, through_others=not on_cpu, lanes_of_loops=on_cpu)
    if _merge_block(block, kernel_names(function), policy):
        simplify(block)


@dataclass(frozen=True)
class _Policy:
    """What a target wants merged.

    beside_scan: most work of a body that runs as part of a scan
    through_others: whether loops meet that have no common buffer, but each one with a third loop
    lanes_of_loops: whether a loop or one inside of it gets lanes, along which a buffer should lie: loops of which one
        walks along the rows of a buffer and the other one across stay apart, since a cache keeps what both need
    asked_for: the only loops to merge, where a person named them, whatever they touch; None: all that are not pinned
    """

    beside_scan: float
    through_others: bool
    lanes_of_loops: bool = False
    asked_for: frozenset[Operation] | None = None

    def wants(self, op: Operation) -> bool:
        """Whether a loop may become one with others."""
        return not is_pinned(op) if self.asked_for is None else op in self.asked_for


def _merge_block(block: Block, names: set[str], policy: _Policy) -> bool:
    changed = False
    ops = ops_of(block)
    if sum(map(is_loop, ops)) > 1:
        grouping = _Grouping(ops[:-1], policy)
        changed = grouping.merges
        if changed:
            _rebuild(block, grouping, names)
    for op in ops_of(block):
        for region in () if "pinned" in op.properties else op.regions:
            changed |= _merge_block(region.block, names, policy)
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
    policy: _Policy
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
        meeting = [group for group in reversed(self.groups) if self.policy.asked_for or self._meet(group, item)]
        if self.policy.through_others:
            meeting += [group for group in reversed(self.groups) if self._meet_elsewhere(group, item)]
        for group in meeting:
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
        assert is_loop(first) and is_loop(second)
        loops = [(first, second)]
        if self.policy.asked_for is None:
            return all(same_iterations(loops, pair) for pair in pairs)
        return not any((">",) in directions([first], [second], *pair) for pair in pairs)

    def _may_join(self, group: _Group, item: int, edges: dict[int, bool]) -> bool:
        loops = [self.ops[k] for k in group.items]
        if not all(map(self.policy.wants, (*loops, self.ops[item]))):
            return False
        if not _same_range(loops[0], self.ops[item]):
            return False
        if self.policy.lanes_of_loops and any(_is_across(loop, self.ops[item]) for loop in loops):
            return False
        if not _combinable([*loops, self.ops[item]]) or not self._may_scan(group, item, edges):
            return False
        for earlier, fusable in edges.items():
            other = self.groups[self.group_of[earlier]]
            if other is group and not fusable:
                return False
            if other is not group and other.before >> group.number & 1:
                return False
        return True

    def _meet(self, group: _Group, item: int) -> bool:
        """Whether a loop and one of a group touch a common buffer."""
        return any(_common(self.effects[k], self.effects[item]) for k in group.items)

    def _meet_elsewhere(self, group: _Group, item: int) -> bool:
        """Whether another loop touches a buffer of a loop, and one of a loop of a group: all reductions, or none."""
        mine = [*group.items, item]
        kinds = {type(self.ops[k]) for k in mine}
        if kinds not in ({kernel.ReduceOp}, {kernel.ForOp}):
            return False
        return any(
            k not in mine
            and _same_range(self.ops[item], self.ops[k])
            and _common(self.effects[item], self.effects[k])
            and any(_common(self.effects[each], self.effects[k]) for each in group.items)
            for k in range(len(self.ops))
        )

    def _may_scan(self, group: _Group, item: int, edges: dict[int, bool]) -> bool:
        """Whether a group and one more loop can be one scan, if any of them scans.

        All elements that are combined must be there before the first running value is, and a scan has no results.
        """
        ops = [self.ops[k] for k in (*group.items, item)]
        scans = [k for k in (*group.items, item) if isinstance(self.ops[k], kernel.ScanOp)]
        if not scans:
            return True
        if any(isinstance(op, kernel.ReduceOp) or not self._is_step(op) for op in ops):
            return False
        return scans[-1] != item or not any(k in edges for k in group.items if k >= scans[0])

    def _is_step(self, op: Operation) -> bool:
        """Whether a loop may be run step by step beside a scan."""
        bodies = [region.block for region in op.regions]
        if any(is_loop(inner) for body in bodies for inner in ops_of(body)):
            return False
        return isinstance(op, kernel.ScanOp) or work_of_block(bodies[0], Sizes()) <= self.policy.beside_scan

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


def fuse_loops(loops: Sequence[Loop], names: set[str]) -> Loop | None:
    """One loop for several of a block, with all bodies; None, and nothing changes, where a dependence forbids it.

    `names` are the axes and symbols of the kernel.
    """
    grouping, found = _grouped(loops)
    if found is None:
        return None
    block = loops[0].parent
    assert block is not None
    place = grouping.in_order().index(found)
    _rebuild(block, grouping, names)
    fused = list(block.ops)[place]
    assert is_loop(fused)
    return fused


def can_fuse(loops: Sequence[Loop]) -> bool:
    """Whether `fuse_loops` would make one loop of several."""
    return _grouped(loops)[1] is not None


def _grouped(loops: Sequence[Loop]) -> tuple[_Grouping, _Group | None]:
    """The ops around loops in groups, and the one that holds them all."""
    block = loops[0].parent
    assert block is not None
    policy = _Policy(inf, through_others=False, asked_for=frozenset(loops))
    grouping = _Grouping(list(block.ops)[:-1], policy)
    return grouping, next((group for group in grouping.groups if len(group.items) == len(loops) > 1), None)


def _same_range(first: Operation, second: Operation) -> bool:
    return (
        isinstance(first, Loop)
        and isinstance(second, Loop)
        and (first.lo, first.hi, first.mapping, first.tile) == (second.lo, second.hi, second.mapping, second.tile)
    )


def _is_across(first: Operation, second: Operation) -> bool:
    """Whether, of two loops around others, one walks along the rows of a common buffer and the other one steps from row
    to row.
    """
    ways = [_ways(loop) for loop in (first, second)]
    return any({ways[0][buffer], ways[1][buffer]} == {True, False} for buffer in ways[0].keys() & ways[1].keys())


def _ways(loop: Operation) -> dict[SSAValue, bool | None]:
    """For each buffer whether a loop walks along its rows (True) or loops inside of it do (False); None: both do."""
    if not is_loop(loop) or not any(is_loop(op) for region in loop.regions for op in ops_of(region.block)):
        return {}
    ways: dict[SSAValue, bool | None] = {}
    for access in Nest.of(loop).accesses:
        along = is_unit(access.stride(loop.axis.data))
        if along or any(is_unit(access.stride(inner.axis.data)) for inner in access.loops[1:]):
            buffer = access.op.buffer
            ways[buffer] = along if ways.get(buffer, along) is along else None
    return ways


def _common(first: Effects, second: Effects) -> bool:
    return not first.buffers.isdisjoint(second.buffers)


def _combinable(loops: list[Operation]) -> bool:
    """Whether what the loops combine can share one op: a combination of its own stands alone."""
    reduces = [op for op in loops if isinstance(op, kernel.ReduceOp | kernel.ScanOp)]
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
    assert isinstance(first, Loop)
    joint = _Joint()
    for op in loops:
        assert isinstance(op, Loop)
        _adopt_axis(op, first.axis.data, names)
        joint.add(op)
    new = joint.build(first, merged([op.location for op in loops]))
    set_mapping(new, first.mapping.data, None if first.tile is None else first.tile.value.data)
    results = iter(new.results)
    for op in loops:
        for old in op.results:
            old.replace_all_uses_with(next(results))
        op.erase()
    return new


@dataclass
class _Joint:
    """The parts of the loop that several become."""

    body: Block = field(default_factory=Block)
    then: Block = field(default_factory=Block)
    values: list[SSAValue] = field(default_factory=list)
    combining: list[kernel.ReduceOp | kernel.ScanOp] = field(default_factory=list)

    def add(self, op: Loop) -> None:
        """Take over what a loop does: behind a scan, a `for` is done where the running values are."""
        scanned = any(isinstance(each, kernel.ScanOp) for each in self.combining)
        self.values.extend(yielded(op.body))
        _move(op.body.block, self.then if scanned and isinstance(op, kernel.ForOp) else self.body)
        if not isinstance(op, kernel.ForOp):
            self.combining.append(op)
        if isinstance(op, kernel.ScanOp):
            for old in op.then.block.args:
                new = self.then.insert_arg(old.type, len(self.then.args))
                new.name_hint = old.name_hint
                old.replace_all_uses_with(new)
            _move(op.then.block, self.then)

    def build(self, first: Loop, location: LocationAttr) -> Loop:
        """The loop, over the range of the first."""
        axis, lo, hi = first.axis.data, first.lo.data, first.hi.data
        self.body.add_op(kernel.YieldOp.create(operands=self.values))
        body = Region(self.body)
        if not self.combining:
            return kernel.ForOp.of(axis, lo, hi, body, location=location)
        combiners = [c.data for op in self.combining for c in op.combiners]
        init, combine = tuple(v for op in self.combining for v in op.init), _combine_region(self.combining)
        if isinstance(self.combining[0], kernel.ReduceOp):
            return kernel.ReduceOp.of(axis, lo, hi, combiners, body, init=init, combine=combine, location=location)
        self.then.add_op(kernel.YieldOp.create())
        return kernel.ScanOp.of(
            axis, lo, hi, combiners, body, Region(self.then), init=init, combine=combine, location=location
        )


def _move(block: Block, into: Block) -> None:
    """Move all ops but the last one."""
    for inner in list(block.ops)[:-1]:
        block.detach_op(inner)
        into.add_op(inner)


def _combine_region(combining: Sequence[kernel.ReduceOp | kernel.ScanOp]) -> Region | None:
    region = combining[0].combine
    if region is not None:
        combining[0].detach_region(region)
    return region


def _adopt_axis(op: Loop, axis: str, names: set[str]) -> None:
    """Let a loop run the given axis; a loop inside that has this name already takes a new one."""
    if op.axis.data == axis:
        return
    renames = {op.axis.data: axis}
    if axis in nested_axes(op):
        renames[axis] = fresh_axis(names)
    rename_axes(op, renames)
