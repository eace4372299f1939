"""The pass `kernel-join-columns`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import host, kernel
from ...dialects.machine import targets_of
from ...dialects.raw import ops_behind
from ...machines import GpuTarget
from ..analysis.launches import on_cpu, passed_sizes, written_by
from ..analysis.lifetimes import Lifetimes
from ..analysis.loops import kernel_names
from ..analysis.memory_order import HostMemory
from ..analysis.sizes import Sizes
from ..analysis.slices import backward_slice
from ..counters import counter
from ..remarks import remark
from .columns_beside_rows import lay_columns_beside_rows
from .gpu_blocks import GpuBlocks
from .merge_loops import merge_loops
from .one_launch import JointKernels, Launch
from .pinned import has_pinned
from .rows_and_columns import Columns, bytes_of_row, columns_of, rows_of, shared_buffers
from .simplify_block import simplify
from .unread import drop_unread_results


@dataclass(frozen=True)
class KernelJoinColumns(ModulePass):
    """Sum columns where the rows are at hand: one kernel for a reduction along rows and sums along columns.

    Level: kernel.

    Precondition: nothing is tiled, planned or reused yet; `loop-split-reductions` has cut the sums of columns into
    parts of rows.
    Guarantee: on a GPU, a launch that works on rows, and launches that sum columns of what these rows read or
    write, are one launch in the place of the first, if nothing in between forbids it. A program of the joint kernel
    takes the rows of a part one after the other, and keeps the sums of their columns in local buffers that it loads
    and stores in each row: a loop over rows carries them. So what both need moves once, and what the rows stored for
    the sums alone moves no more. The sums have the order that they had.

    Only where a row fits a program, where there is a part for every other processor of the GPU at least, and where
    some input is needed by both.

        kernel.for i0 in 0 to 8192 { %s = kernel.reduce sum i1 in 0 to 4096 { ... %x[4096*i0 + i1] ... } ... }
        kernel.for i0 in 0 to 256 { kernel.for i1 in 0 to 4096 {
            %t = kernel.reduce sum i2 in 0 to 32 { ... %x[131072*i0 + 4096*i2 + i1] ... } ... } }
    becomes
        kernel.for i0 in 0 to 256 {
          %total = kernel.local : !kernel.buffer<f32, 4096, local>
          kernel.for i2 in 0 to 4096 { kernel.store %zero, %total[i2] ... }
          kernel.for i1 in 32*i0 to 32*i0 + 32 {
            %s = kernel.reduce sum ...
            kernel.for i2 in 0 to 4096 { ... kernel.store %more, %total[i2] ... }
          }
          kernel.for i2 in 0 to 4096 { %t = kernel.load %total[i2]  kernel.store %t, %part[4096*i0 + i2] ... }
        }
    """

    name = "kernel-join-columns"
    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Join what the launches of every host function allow, and drop kernels that are launched no more."""
        target = targets_of(op).main
        if not isinstance(target, GpuTarget):
            return
        joint = JointKernels(op)
        joiner = _Joiner(joint, target)
        for function in op.body.block.ops:
            if isinstance(function, host.FuncOp):
                joiner.run(function)
        for made in joint.made.values():
            _clean(made, target)
        joint.erase_unlaunched()
        drop_unread_results(op, joint.made.values())


@dataclass(eq=False)
class _Launch(Launch):
    sizes: Sizes

    def argument_of(self, value: SSAValue, type_: Attribute) -> SSAValue | None:
        """The kernel's buffer for a value of the program, seen as a type."""
        pairs = zip(self.op.buffers, self.function.body.block.args, strict=True)
        return next((a for v, a in pairs if v is value and a.type == type_), None)


class _Joiner:
    """Joins the launches of the functions of one module."""

    def __init__(self, joint: JointKernels, target: GpuTarget) -> None:
        self.joint, self.target = joint, target
        free = [function for function in joint.kernels.values() if not has_pinned(function)]
        self.rows: dict[kernel.FuncOp | None, kernel.ForOp | None] = {f: rows_of(f) for f in free}
        self.columns: dict[kernel.FuncOp | None, Columns | None] = {f: columns_of(f) for f in free}

    def run(self, function: host.FuncOp) -> None:
        """Look at every launch over rows, in order."""
        if not any(self.rows.values()) or not any(self.columns.values()):
            return
        block, sizes = function.body.block, Sizes.of_function(function)
        for op in list(block.ops):
            if isinstance(op, host.LaunchOp) and self.rows.get(self._kernel(op)) is not None:
                lifetimes = Lifetimes(block)
                self._join(block, self._launch(op, lifetimes, sizes), lifetimes, sizes)

    def _kernel(self, op: host.LaunchOp) -> kernel.FuncOp | None:
        return self.joint.kernels.get(op.kernel.root_reference.data)

    def _launch(self, op: host.LaunchOp, lifetimes: Lifetimes, sizes: Sizes) -> _Launch:
        function = self._kernel(op)
        assert function is not None
        touched = HostMemory(lifetimes, self.joint.kernels).of(op)
        return _Launch(op, function, touched, passed_sizes(op, [s.data for s in function.symbols], sizes))

    def _join(self, block: Block, rows: _Launch, lifetimes: Lifetimes, sizes: Sizes) -> None:
        """Join a launch over rows with those that sum its columns."""
        partners: list[_Launch] = []
        saved = 0
        for op in block.ops:
            if isinstance(op, host.LaunchOp) and self.columns.get(self._kernel(op)) is not None and not on_cpu(op):
                launch = self._launch(op, lifetimes, sizes)
                bytes_ = self._saved(rows, launch, partners, lifetimes)
                if bytes_ and self.may_meet([rows, *partners, launch], lifetimes):
                    partners.append(launch)
                    saved += bytes_
        if partners and counter(KernelJoinColumns.name):
            remark("passed", KernelJoinColumns.name, rows.op, "sums columns where rows are at hand", bytes=saved)
            self._replace(block, rows, partners, lifetimes)

    def _saved(self, rows: _Launch, launch: _Launch, partners: Sequence[_Launch], lifetimes: Lifetimes) -> int:
        """Bytes that need not be read again when a launch joins; 0 where it must not."""
        nest, columns = self.rows[rows.function], self.columns[launch.function]
        assert nest is not None and columns is not None
        if columns.values(nest.hi.data) is None or not self._suits(nest, columns, launch, partners):
            return 0
        if any(each.symbols.get(n, v) is not v for each in (rows, *partners) for n, v in launch.symbols.items()):
            return 0
        if any(each.touched.conflicts(launch.touched) for each in partners):
            return 0
        if not launch.touched.written.isdisjoint(rows.touched.used):
            return 0
        same: dict[SSAValue, SSAValue] = {
            argument: found
            for value, argument in zip(rows.op.buffers, rows.function.body.block.args, strict=True)
            if (found := launch.argument_of(value, argument.type)) is not None
        }
        if not _is_plain(rows, launch, lifetimes):
            return 0
        first = lifetimes.position[rows.op] < lifetimes.position[launch.op]
        shared = shared_buffers(nest, columns, same, first)
        trips = launch.sizes.of(nest.hi.data)
        return bytes_of_row(shared, columns, launch.sizes.trips(columns.column)) * trips if shared else 0

    def _suits(self, nest: kernel.ForOp, columns: Columns, launch: _Launch, partners: Sequence[_Launch]) -> bool:
        """Whether rows and sums fit a program, in parts that keep the GPU busy and are those of the partners."""
        known = [c for each in partners if (c := self.columns[each.function]) is not None]
        if any(c.rows is not columns.rows or c.parts is not columns.parts for c in known):
            return False
        if launch.sizes.of(columns.parts) * 2 < self.target.processors:
            return False
        lengths = [
            op.hi.data - op.lo.data for op in nest.body.block.ops if isinstance(op, kernel.ForOp | kernel.ReduceOp)
        ]
        longest = [length.as_int() for length in (*lengths, columns.column.hi.data)]
        if any(length is None or length > GpuBlocks.longest_row for length in longest):
            return False
        sums = sum(len(c.reduce.results) * launch.sizes.trips(c.column) for c in (*known, columns))
        return sums <= self.target.most_sums

    def _replace(self, block: Block, rows: _Launch, partners: Sequence[_Launch], lifetimes: Lifetimes) -> None:
        """Put one launch in the place of the first, behind the allocations that it needs."""
        launches = [rows, *partners]
        ops = sorted((each.op for each in launches), key=lifetimes.position.__getitem__)
        for op in _needed_from_behind(ops, lifetimes) or ():
            op.detach()
            block.insert_op_before(op, ops[0])
        new = self.joint.launch(launches, "_and_columns", partial(self._fill, launches))
        block.insert_op_before(new, ops[0])
        for op in ops:
            block.erase_op(op)

    def _fill(self, launches: Sequence[_Launch], block: Block, maps: Sequence[dict[SSAValue, SSAValue]]) -> list[str]:
        """Put what the kernels of some launches do into a block, the first of them over rows."""
        functions = [each.function for each in launches]
        rows = self.rows[functions[0]]
        assert rows is not None
        columns = [(c, m) for f, m in zip(functions[1:], maps[1:], strict=True) if (c := self.columns[f]) is not None]
        lay_columns_beside_rows(block, rows, maps[0], columns, set[str]().union(*map(kernel_names, functions)))
        return []

    def may_meet(self, launches: Sequence[_Launch], lifetimes: Lifetimes) -> bool:
        """Whether all launches may move up to the first of them, with the allocations that they need."""
        ordered = sorted(launches, key=lambda each: lifetimes.position[each.op])
        moved = _needed_from_behind([each.op for each in ordered], lifetimes)
        if moved is None:
            return False
        own = {*moved, *(each.op for each in ordered)}
        memory = HostMemory(lifetimes, self.joint.kernels)
        for launch in ordered[1:]:
            for op in ops_behind(ordered[0].op):
                if op is launch.op:
                    break
                if op in own or isinstance(op, host.EmptyOp | host.ViewOp):
                    continue
                if memory.of(op).conflicts(launch.touched) or "binds" in op.properties:
                    return False
        return True


def _clean(function: kernel.FuncOp, target: GpuTarget) -> None:
    """Loads of a row that is at hand, and loops over it, once."""
    block = function.body.block
    merge_loops(function, target)
    simplify(block)


def _is_plain(rows: _Launch, columns: _Launch, lifetimes: Lifetimes) -> bool:
    """Whether what the rows write is seen by the columns as the same tensor or not at all, never through a view."""
    written = written_by(rows.op, rows.function)
    return all(
        other is value or lifetimes.roots(value).isdisjoint(lifetimes.roots(other))
        for value in written
        for other in columns.op.buffers
    )


def _needed_from_behind(launches: Sequence[host.LaunchOp], lifetimes: Lifetimes) -> list[Operation] | None:
    """Allocations and views behind the first launch that later ones need, in order; None if they need more."""
    first = lifetimes.position[launches[0]]
    needed = (value for launch in launches[1:] for value in launch.operands)
    found = set(backward_slice(needed, lambda op: lifetimes.position[op] >= first))
    if not all(isinstance(op, host.EmptyOp | host.ViewOp) for op in found):
        return None
    return sorted(found, key=lifetimes.position.__getitem__)
