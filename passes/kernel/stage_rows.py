"""The pass `kernel-stage-rows`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.kernel import BufferType
from ...dialects.sym import ZERO, Expr, SymAttr, as_expr, ceildiv, symbol
from ...machines import CpuTarget
from ...records import dataclass
from ..analysis.effects import written_buffers
from ..analysis.loops import Loop, fresh_axis, is_loop, kernel_names, named_in_bounds
from ..analysis.nests import element_bytes, is_unit
from ..analysis.sizes import Sizes
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .scheduled import is_mapped, untiled_for_cpu
from .transforms import block_range, fill_local, perfect_chain, range_of, read_local, set_range

#: shortest row that is worth a copy: the lines of a shorter one are still in the nearest cache for the next row
SHORTEST = 64
#: how much faster a core is with copies, so that it may be that many times fewer cores
GAIN = 4


@dataclass(frozen=True)
class _Row:
    """What a row reads across memory: `buffer[start + stride*i]` for i below `length`, by loads in loops over i.

    line: bytes of a line of the cache: so many bytes of neighbouring rows are read together
    """

    line: int
    buffer: SSAValue
    start: Expr
    stride: Expr
    length: Expr
    loads: tuple[tuple[kernel.LoadOp, kernel.ForOp | kernel.ReduceOp], ...]

    @property
    def type(self) -> BufferType:
        """The type of the buffer."""
        type_ = self.buffer.type
        assert isinstance(type_, BufferType)
        return type_

    @property
    def element(self) -> int:
        """Bytes of an element."""
        return element_bytes(self.type)

    @property
    def pitch(self) -> Expr:
        """Elements from row to row of the copy: a line more than a row, as rows a power of two apart share few sets."""
        line = as_expr(self.line // self.element)
        return (ceildiv(self.length, line) + as_expr(1)) * line


@dataclass(frozen=True)
class KernelStageRows(KernelPass, kernels=untiled_for_cpu):
    """Copy rows that lie across memory into a local buffer, as many at once as share a line of the cache.

    Level: kernel.

    Precondition: in front of `kernel-map`; loops are serial. Only kernels for a CPU.
    Guarantee: where a nest over rows reads elements that lie side by side from row to row and far apart along the row,
    and writes its results side by side along the row, an iteration does a line's worth of rows. It copies what they
    read into a local buffer first, line by line, and reads the buffer. The buffers take half of the second cache at
    most. A remark says where there are too few rows for all cores, or where a row is too long.

    Lanes along either axis would touch a line of the cache for each element: softmax of a transposed matrix of
    1024 x 1024 took 9.0 ms on one core, and 1.5 in eager, which copies the matrix first.

        kernel.for i0 in 0 to 1024 {
          %s = kernel.reduce sum i1 in 0 to 1024 { %v = kernel.load %x[1024*i1 + i0] ... }
          kernel.for i1 in 0 to 1024 { ... kernel.store %r, %y[1024*i0 + i1] } }
    becomes
        kernel.for i2 in 0 to 64 {
          %rows = kernel.local : !kernel.buffer<f32, 16640, local>
          kernel.for i3 in 0 to 1024 { kernel.for i4 in 0 to 16 {
            %w = kernel.load %x[1024*i3 + 16*i2 + i4]  kernel.store %w, %rows[i3 + 1040*i4] } }
          kernel.for i0 in 16*i2 to 16*i2 + 16 {
            %s = kernel.reduce sum i1 in 0 to 1024 { %v = kernel.load %rows[1040*i0 - 16640*i2 + i1] ... }
            ... } }
    """

    name = "kernel-stage-rows"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Stage the rows of every nest of a kernel that is for a CPU and has no mapping yet."""
        if is_mapped(function):
            return
        written = written_buffers(function.body.block)
        for nest in list(function.body.block.ops):
            if isinstance(nest, kernel.ForOp) and not is_pinned(nest):
                _stage_nest(function, nest, written, facts)


def _stage_nest(function: kernel.FuncOp, nest: kernel.ForOp, written: set[SSAValue], facts: KernelFacts) -> None:
    chain = perfect_chain(nest)
    rows = chain[-1]
    staged = _across(rows, written, facts.target.line_bytes)
    if not staged or not _writes_along(rows):
        return
    objection = _objection(chain, staged, facts.target, facts.sizes)
    if objection is not None:
        remark("missed", KernelStageRows.name, rows, f"rows across memory are read where they lie: {objection}")
    elif counter(KernelStageRows.name):
        _stage(rows, staged, kernel_names(function))
        remark("passed", KernelStageRows.name, rows, f"{_count(staged)} rows at once, through a local buffer")


def _across(rows: kernel.ForOp, written: set[SSAValue], line: int) -> list[_Row]:
    """What loops inside read side by side along `rows` and far apart along themselves, and is only read."""
    found: dict[tuple[SSAValue, Expr, Expr, Expr], list[tuple[kernel.LoadOp, kernel.ForOp | kernel.ReduceOp]]] = {}
    for loop in _flat_loops(rows):
        for op in loop.body.block.ops:
            if isinstance(op, kernel.LoadOp) and op.buffer not in written and _is_across(op, rows, loop, line):
                index, axis = op.map.data[0], loop.axis.data
                stride = index.coefficient(axis)
                assert stride is not None
                key = (op.buffer, index.subs({axis: ZERO}), stride, loop.hi.data)
                found.setdefault(key, []).append((op, loop))
    return [_Row(line, *key, tuple(pairs)) for key, pairs in found.items()]


def _flat_loops(rows: kernel.ForOp) -> Iterator[kernel.ForOp | kernel.ReduceOp]:
    """The loops right inside of one that hold no loops themselves and begin at 0."""
    for op in rows.body.block.ops:
        if isinstance(op, kernel.ForOp | kernel.ReduceOp) and op.lo.data is ZERO and not _has_loops(op):
            yield op


def _has_loops(op: kernel.ForOp | kernel.ReduceOp) -> bool:
    return any(map(is_loop, op.body.block.ops))


def _is_across(load: kernel.LoadOp, rows: kernel.ForOp, along: Loop, line: int) -> bool:
    index, type_ = load.map.data[0], load.buffer.type
    if load.mask is not None or load.dynamic or not isinstance(type_, BufferType) or type_.local:
        return False
    far = index.coefficient(along.axis.data)
    if far is None or far is ZERO or not is_unit(index.coefficient(rows.axis.data)):
        return False
    stride = far.as_int()
    return stride is None or abs(stride) * element_bytes(type_) >= line


def _writes_along(rows: kernel.ForOp) -> bool:
    """Whether a loop inside stores elements side by side that lie far apart from row to row."""
    for loop in _flat_loops(rows):
        for op in loop.body.block.ops:
            if isinstance(op, kernel.StoreOp) and is_unit(op.map.data[0].coefficient(loop.axis.data)):
                far = op.map.data[0].coefficient(rows.axis.data)
                if far is not ZERO and not is_unit(far):
                    return True
    return False


def _count(staged: Sequence[_Row]) -> int:
    """Rows of a line of the cache, of the narrowest elements that are read."""
    return staged[0].line // min(row.element for row in staged)


def _objection(chain: Sequence[kernel.ForOp], staged: Sequence[_Row], target: CpuTarget, sizes: Sizes) -> str | None:
    """Why rows are better read where they lie; None where they are not."""
    count = _count(staged)
    if not named_in_bounds(chain).isdisjoint(loop.axis.data for loop in chain):
        return "one loop says how far another runs"
    if any(sizes.trips(loop) < SHORTEST for row in staged for _, loop in row.loads):
        return f"a row has fewer than {SHORTEST} elements"
    if sum(count * sizes.of(row.pitch) * row.element for row in staged) > target.l2_bytes // 2:
        return "a line's worth of them is larger than half of the second cache"
    blocks = prod(sizes.trips(loop) for loop in chain) / count
    return f"there are too few for {target.cores} cores" if blocks * GAIN < target.cores else None


def _stage(rows: kernel.ForOp, staged: Sequence[_Row], names: set[str]) -> None:
    """Strip-mine the loop over rows, and copy in front of the inner loop what it reads."""
    blocks, within = block_range(range_of(rows), _count(staged), names)
    body = rows.body.detach_block(0)
    inner = kernel.ForOp.of(*within, Region(body), location=rows.location)
    before: list[Operation] = []
    for row in staged:
        local = kernel.LocalOp.of(row.type.element, SymAttr.of(as_expr(_count(staged)) * row.pitch))
        local.buffer.name_hint = "rows"
        along, across = fresh_axis(names), fresh_axis(names)
        index = row.start.subs({within[0]: symbol(across)}) + row.stride * symbol(along)
        place = symbol(along) + row.pitch * (symbol(across) - within[1])
        axes = (along, ZERO, row.length), (across, *within[1:])
        before += [local, fill_local(local, place, row.loads[0][0], index, axes)]
        for load, along in row.loads:
            read_local(load, local, symbol(along.axis.data) + row.pitch * (symbol(within[0]) - within[1]))
    rows.body.add_block(Block([*before, inner, kernel.YieldOp.create()]))
    set_range(rows, blocks)
