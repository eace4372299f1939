"""The pass `kernel-stage-blocks`."""

from __future__ import annotations

from ...dialects import kernel
from ...dialects.kernel import BufferType
from ...dialects.sym import ZERO, Expr, SymAttr, as_expr, smin, symbol
from ...machines import CpuTarget
from ..analysis.effects import written_buffers
from ..analysis.loops import fresh_axis, is_loop, kernel_names
from ..analysis.nests import Nest, is_unit
from ..counters import counter
from .cpu_tiles import ACROSS, LONG, edge_of_blocks
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .scheduled import tiled_for_cpu
from .transforms import fill_local, perfect_chain, read_local


class KernelStageBlocks(KernelPass, kernels=tiled_for_cpu):
    """Read the blocks of a transpose through a small local buffer, so that memory is read along its lines.

    Level: kernel.

    Precondition: `kernel-tile` for a CPU, which makes square blocks; other kernels stay as they are.
    Guarantee: in a flat block (a serial loop around lanes) that fits half of the nearest cache, loads of places
    that are neighbours along the serial loop and far apart along the lanes read a local buffer instead. A loop in
    front copies these places into the buffer, line by line. The rows of such a block mostly lie a multiple of a
    power of two apart, so that they meet in a few sets of the cache: read by columns, each line would be fetched
    once for each of its elements. The copy scatters into the buffer, which the lanes then read side by side,
    because scattered stores are cheaper than gathers.

        kernel.for i1 in 64*i3 to 64*i3 + 64 { kernel.for i0 in 64*i2 to 64*i2 + 64 map vector tile 16 {
          %v = kernel.load %x[4096*i0 + i1] ... } }
    becomes
        %block = kernel.local : !kernel.buffer<f32, 4096, local>
        kernel.for i4 in 64*i2 to 64*i2 + 64 { kernel.for i5 in 64*i3 to 64*i3 + 64 map vector tile 16 {
          %w = kernel.load %x[4096*i4 + i5]  kernel.store %w, %block[...] ... } }
        kernel.for i1 ... { kernel.for i0 ... { %v = kernel.load %block[64*i1 + i0 - 4096*i3 - 64*i2] ... } }
    """

    name = "kernel-stage-blocks"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Stage what can be in every kernel for a CPU."""
        for nest in list(function.body.block.ops):
            if isinstance(nest, kernel.ForOp) and not is_pinned(nest):
                _stage_nest(function, nest, facts.target)


def _stage_nest(function: kernel.FuncOp, nest: kernel.ForOp, target: CpuTarget) -> None:
    chain = perfect_chain(nest)
    if len(chain) < 2 or (chain[-2].mapping.data, chain[-1].mapping.data) != ("serial", "vector"):
        return
    across, lane = chain[-2:]
    loads = _far_loads(function, across, lane)
    if not loads:
        return
    edge = edge_of_blocks(Nest.of(nest), target)
    if not (_is_block(across, ACROSS, edge) and _is_block(lane, LONG, edge)):
        return
    names, lanes = kernel_names(function), 1 if lane.tile is None else lane.tile.value.data
    for load in loads:
        if counter(KernelStageBlocks.name):
            _stage(load, across, lane, edge, lanes, names)


def _is_block(loop: kernel.ForOp, least: int, edge: int) -> bool:
    """Whether a loop runs at most `edge` times, and at least `least` times if its length is known."""
    trips = (loop.hi.data - loop.lo.data).as_int()
    return least <= trips <= edge if trips is not None else smin(loop.hi.data, loop.lo.data + edge) == loop.hi.data


def _far_loads(function: kernel.FuncOp, across: kernel.ForOp, lane: kernel.ForOp) -> list[kernel.LoadOp]:
    """What flat lanes read that lies side by side along `across` and far apart along them, and is only read."""
    ops = list(lane.body.block.ops)
    loads = [op for op in ops if isinstance(op, kernel.LoadOp) and _is_far(op, across.axis.data, lane.axis.data)]
    if not loads or any(map(is_loop, ops)):
        return []
    written = written_buffers(function.body.block)
    return [load for load in loads if load.buffer not in written]


def _is_far(load: kernel.LoadOp, across: str, lane: str) -> bool:
    index, type_ = load.map.data[0], load.buffer.type
    if load.mask is not None or load.dynamic or not isinstance(type_, BufferType) or type_.local:
        return False
    far = index.coefficient(lane)
    return is_unit(index.coefficient(across)) and not is_unit(far) and far is not ZERO


def _stage(
    load: kernel.LoadOp, across: kernel.ForOp, lane: kernel.ForOp, edge: int, lanes: int, names: set[str]
) -> None:
    """Copy what a load reads in a block first; `lanes` are those of the copy."""
    block, type_ = across.parent, load.buffer.type
    assert block is not None
    assert isinstance(type_, BufferType)
    local = kernel.LocalOp.of(type_.element, SymAttr.of(as_expr(edge * edge)))
    local.buffer.name_hint = "block"
    place, index = _place(across, lane, edge), load.map.data[0]
    fresh = {loop.axis.data: fresh_axis(names) for loop in (lane, across)}
    new = {old: symbol(name) for old, name in fresh.items()}
    axes = [(fresh[loop.axis.data], loop.lo.data, loop.hi.data) for loop in (lane, across)]
    copy = fill_local(local, place.subs(new), load, index.subs(new), axes, lanes)
    block.insert_ops_before([local, copy], across)
    read_local(load, local, place)


def _place(row: kernel.ForOp, column: kernel.ForOp, edge: int) -> Expr:
    return edge * (symbol(row.axis.data) - row.lo.data) + symbol(column.axis.data) - column.lo.data
