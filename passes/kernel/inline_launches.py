"""The pass `kernel-inline-launches`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import host, kernel
from ...dialects.machine import targets_of
from ...dialects.sym import ZERO, symbol
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.effects import independent_nests, is_plain_store, written_buffers
from ..analysis.launches import device_of, passed_sizes
from ..analysis.lifetimes import Lifetimes
from ..analysis.loops import fresh_axis, is_loop, kernel_names, nested_axes, ops_in, rename_axes, substitute_axes
from ..analysis.memory_order import HostMemory, Touched
from ..analysis.nests import bytes_of_block, work_of_block
from ..analysis.sizes import Sizes
from ..common.choices import chosen_tile
from ..counters import counter
from ..remarks import remark
from .gpu_legality import box_of
from .merge_loops import fuse_loops
from .one_launch import JointKernels, Launch
from .pinned import has_pinned
from .simplify_block import BlockSimplifier, is_pure, remove_dead


@dataclass(frozen=True)
class KernelInlineLaunches(ModulePass):
    """Compute sums of a launch where the next launch reads them: vertical fusion of launches.

    Level: kernel.

    Precondition: behind `kernel-fold-lanes`, which makes loads of one element one; nothing is tiled, planned or freed.
    Guarantee: the same values with one launch less. On a GPU, where a kernel is one nest that sums up rows into a
    buffer, and a small launch that follows alone reads that buffer, at no more points than it has elements, each such
    point sums up the row itself, and the buffer is gone. So the products of attention are turned by their positions,
    and keys and values go to their caches, before any of them has been in memory: a turned pair is two rows.

        kernel.for i0 in 0 to 64 { %s = kernel.reduce sum i1 in 0 to 8 { ... %w[8*i0 + i1] ... }  ... %p[i0] }
        kernel.for i0 in 0 to 32 { %a = kernel.load %p[i0]  %b = kernel.load %p[i0 + 32] ... }    // another launch
    becomes
        kernel.for i0 in 0 to 32 {
          %a, %b = kernel.reduce [sum, sum] i1 in 0 to 8 { ... %w[8*i0 + i1] ... %w[8*i0 + i1 + 256] ... } ... }
    """

    name = "kernel-inline-launches"
    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Join launches of every host function, and drop kernels that are launched no more."""
        target = targets_of(op).main
        if not isinstance(target, GpuTarget):
            return
        joint = JointKernels(op)
        inliner = _Inliner(joint, target)
        for function in op.body.block.ops:
            if isinstance(function, host.FuncOp):
                inliner.run(function)
        joint.erase_unlaunched()


class _Inliner:
    """Joins pairs of launches; `joined` are the kernels that were made, and which of their buffers is gone."""

    def __init__(self, joint: JointKernels, target: GpuTarget) -> None:
        self.joint, self.target = joint, target
        self.joined: set[kernel.FuncOp] = set()

    def run(self, function: host.FuncOp) -> None:
        """Visit the launches of a function in order."""
        block, sizes = function.body.block, Sizes.of_function(function)
        memory = HostMemory(Lifetimes(block), self.joint.kernels)
        first: host.LaunchOp | None = None
        for op in list(block.ops):
            if isinstance(op, host.LaunchOp):
                if first is not None and (buffer := self._between(first, op, memory, sizes)) is not None:
                    op = self._join(block, first, op, buffer)
                first = op
            elif not isinstance(op, host.EmptyOp | host.ViewOp):
                first = None

    def _between(
        self, first: host.LaunchOp, second: host.LaunchOp, memory: HostMemory, sizes: Sizes
    ) -> SSAValue | None:
        """The buffer that one launch sums up, and that another one can sum up by itself."""
        made, read = (self.joint.kernels.get(op.kernel.root_reference.data) for op in (first, second))
        if made is None or read is None or device_of(first.buffers) != device_of(second.buffers):
            return None
        if made in self.joined or not (_is_free(made) and _is_free(read)):
            return None
        store = _only_store(made)
        if store is None:
            return None
        place = made.body.block.args.index(store.buffer)  # pyright: ignore[reportArgumentType]
        buffer = first.buffers[place]
        users = [use.operation for use in buffer.uses]
        if not isinstance(buffer.owner, host.EmptyOp) or len(users) != 2 or set(users) != {first, second}:
            return None
        if not memory.of(second).written.isdisjoint(memory.of(first).used - memory.roots([buffer])):
            return None
        argument = read.body.block.args[list(second.buffers).index(buffer)]
        if not self._is_small(second, read, sizes) or not _may_sum_up(argument, read, store):
            return None
        return buffer if counter(KernelInlineLaunches.name) else None

    def _is_small(self, launch: host.LaunchOp, function: kernel.FuncOp, sizes: Sizes) -> bool:
        """Whether a launch costs more than what its kernel does."""
        own = passed_sizes(launch, [s.data for s in function.symbols], sizes)
        block = function.body.block
        return max(bytes_of_block(block, own), work_of_block(block, own)) < self.target.launch_bytes

    def _join(self, block: Block, first: host.LaunchOp, second: host.LaunchOp, buffer: SSAValue) -> host.LaunchOp:
        """One launch in the place of two."""
        kind = device_of(first.buffers), False, False
        kernels = [self.joint.kernels[op.kernel.root_reference.data] for op in (first, second)]
        both = [Launch(op, each, Touched(), 0, kind) for op, each in zip((first, second), kernels, strict=True)]
        wide = self.joint.launch(both)
        name = wide.kernel.root_reference.data
        function, place = self.joint.kernels[name], list(wide.buffers).index(buffer)
        if function not in self.joined:
            self.joined.add(function)
            _sum_up_where_read(function, function.body.block.args[place])
        remark("passed", KernelInlineLaunches.name, second, "computes what it read")
        kept = [value for value in wide.buffers if value is not buffer]
        new = host.LaunchOp.of(name, kept, wide.symbols, wide.location)
        block.insert_op_before(new, second)
        wide.erase()
        for op in (second, first, buffer.owner):
            assert isinstance(op, Operation)
            block.erase_op(op)
        return new


def _is_free(function: kernel.FuncOp) -> bool:
    return function.target is None and not has_pinned(function) and chosen_tile(function) is None


def _only_store(function: kernel.FuncOp) -> kernel.StoreOp | None:
    """The store of a kernel that is one loop around sums, and writes an element of a buffer in each iteration."""
    ops = list(function.body.block.ops)[:-1]
    if len(ops) != 1 or not isinstance(nest := ops[0], kernel.ForOp) or nest.lo.data is not ZERO:
        return None
    store = nest.body.block.last_op and nest.body.block.last_op.prev_op
    inner = [op for op in ops_in(nest) if op is not nest and op is not store]
    kinds = kernel.LoadOp | kernel.ReduceOp | kernel.YieldOp | kernel.IndexOp
    if not isinstance(store, kernel.StoreOp) or not all(isinstance(op, kinds) or is_pure(op) for op in inner):
        return None
    if not any(isinstance(op, kernel.ReduceOp) for op in inner) or not is_plain_store(store):
        return None
    used_once = len(list(store.buffer.uses)) == 1
    own = symbol(nest.axis.data)
    return store if used_once and store.map.data[0] is own and nest in independent_nests(function.body.block) else None


def _may_sum_up(buffer: SSAValue, function: kernel.FuncOp, store: kernel.StoreOp) -> bool:
    """Whether nests without sums read a buffer, and all of them together compute no element of it twice."""
    nest = store.parent_op()
    assert isinstance(nest, kernel.ForOp)
    apart, points = independent_nests(function.body.block), 0
    for use in buffer.uses:
        load = use.operation
        if not isinstance(load, kernel.LoadOp) or load.mask is not None or load.dynamic:
            return False
        chain = _chain_around(load)
        lengths = [loop.hi.data.as_int() for loop in chain if loop.lo.data is ZERO]
        if not chain or chain[0] not in apart or len(lengths) < len(chain) or None in lengths:
            return False
        points += prod(length for length in lengths if length is not None)
    length = nest.hi.data.as_int()
    return length is not None and 0 < points <= length


def _chain_around(load: kernel.LoadOp) -> list[kernel.ForOp]:
    """The loops of the perfect nest around a load, whose body has no loops; none where it is not in one."""
    outer: Operation = load
    while isinstance(above := outer.parent_op(), kernel.ForOp):
        outer = above
    if not isinstance(outer, kernel.ForOp):
        return []
    chain = box_of(outer)
    body = chain[-1].body.block
    return [] if load.parent is not body or any(map(is_loop, body.ops)) else chain


def _sum_up_where_read(function: kernel.FuncOp, buffer: SSAValue) -> None:
    """Replace each load from a buffer by what the first nest of a kernel stores there; the nest and the buffer go."""
    block, names = function.body.block, kernel_names(function)
    nest = next(op for op in block.ops if isinstance(op, kernel.ForOp))
    rename_axes(nest, {old: fresh_axis(names) for old in (nest.axis.data, *dict.fromkeys(nested_axes(nest)))})
    loads = [use.operation for use in buffer.uses if isinstance(use.operation, kernel.LoadOp)]
    bodies = dict.fromkeys(load.parent for load in loads)
    block.detach_op(nest)
    for body in bodies:
        assert body is not None
        own = [op for op in body.ops if op in loads]
        _compute(nest, body, [op for op in own if isinstance(op, kernel.LoadOp)])
        _join_sums(body, names)
        BlockSimplifier(written_buffers(block)).run(body)
        remove_dead(body)
    nest.erase()
    block.erase_arg(buffer)  # pyright: ignore[reportArgumentType]


def _compute(nest: kernel.ForOp, body: Block, loads: Sequence[kernel.LoadOp]) -> None:
    """Put what a nest computes for an element in the place of each load; what is the same for all of them once."""
    axis = nest.axis.data
    shared: dict[SSAValue, SSAValue] = {}
    varying: set[SSAValue] = set()
    for op in nest.body.block.ops:
        if _depends_on(op, axis, varying):
            varying.update(op.results)
        elif not isinstance(op, kernel.YieldOp):
            body.insert_op_before(op.clone(shared), loads[0])
    for load in loads:
        values, first = dict(shared), load.prev_op
        for op in nest.body.block.ops:
            if isinstance(op, kernel.StoreOp):
                load.results[0].replace_all_uses_with(values.get(op.value, op.value))
            elif any(result in varying for result in op.results):
                body.insert_op_before(op.clone(values), load)
        _substitute_behind(body, first, load, axis)
        body.erase_op(load)


def _substitute_behind(body: Block, first: Operation | None, load: kernel.LoadOp, axis: str) -> None:
    """Let what stands between two ops be what an iteration of an axis does, the one whose element a load reads."""
    place, part = load.map.data[0], Block()
    op = body.first_op if first is None else first.next_op
    while op is not None and op is not load:
        following = op.next_op
        body.detach_op(op)
        part.add_op(op)
        op = following
    substitute_axes(part, {axis: place})
    for each in list(part.ops):
        part.detach_op(each)
        body.insert_op_before(each, load)


def _depends_on(op: Operation, axis: str, varying: set[SSAValue]) -> bool:
    """Whether an op, or one inside, uses an axis or a value that does."""
    for each in ops_in(op):
        if any(value in varying for value in each.operands):
            return True
        if isinstance(each, kernel.LoadOp | kernel.StoreOp) and axis in each.map.data[0].free_symbols:
            return True
        if isinstance(each, kernel.IndexOp) and axis in each.expr.data.free_symbols:
            return True
        if is_loop(each) and axis in each.lo.data.free_symbols | each.hi.data.free_symbols:
            return True
    return False


def _join_sums(body: Block, names: set[str]) -> None:
    """Let sums over one range that do not need each other share a loop."""
    sums = [op for op in body.ops if isinstance(op, kernel.ReduceOp)]
    while sums:
        first = sums.pop(0)
        for other in sums:
            joined = fuse_loops([first, other], names)
            if isinstance(joined, kernel.ReduceOp):
                sums = [op for op in body.ops if isinstance(op, kernel.ReduceOp) and op in (joined, *sums)]
                break
