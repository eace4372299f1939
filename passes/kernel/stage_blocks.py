"""Blocks of a transpose read through a small local buffer, so that memory is read along its lines."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, Region

from ...dialects import kernel
from ...dialects.kernel import BufferType
from ...dialects.sym import ZERO, Expr, MapAttr, SymAttr, as_expr, symbol
from ..counters import counter
from .axes import fresh_axis
from .cost import is_unit
from .effects import written_buffers
from .transforms import set_mapping


def stage_blocks(
    function: kernel.FuncOp, across: kernel.ForOp, lane: kernel.ForOp, edge: int, lanes: int, names: set[str]
) -> None:
    """Copy what a square block reads along `across` to a local buffer first, transposed, in place.

    across, lane: the loops within one block, `lane` the only op in `across`; both of at most `edge` iterations
    lanes: SIMD lanes of the copy

    The rows of such a block lie a multiple of a power of two apart, as sizes mostly are, and so meet in a few sets of
    the cache; read by columns, each line would be fetched once for each of its elements. The copy reads along lines and
    scatters into the buffer, which the lanes then read side by side: scattered stores are cheaper than gathers.
    """
    written = written_buffers(function.body.block)
    for load in list(lane.body.block.ops):
        if not isinstance(load, kernel.LoadOp) or load.buffer in written or load.mask is not None or load.dynamic:
            continue
        index, type_ = load.map.data[0], load.buffer.type
        far = index.coefficient(lane.axis.data)
        along = is_unit(index.coefficient(across.axis.data)) and not is_unit(far) and far is not ZERO
        if isinstance(type_, BufferType) and not type_.local and along and counter("kernel-tile-stage"):
            _stage(load, type_, across, lane, edge, lanes, names)


def _stage(
    load: kernel.LoadOp,
    type_: BufferType,
    across: kernel.ForOp,
    lane: kernel.ForOp,
    edge: int,
    lanes: int,
    names: set[str],
) -> None:
    block = across.parent
    assert block is not None
    local = kernel.LocalOp.of(type_.element, SymAttr.of(as_expr(edge * edge)))
    local.buffer.name_hint = "block"
    place = _place(across, lane, edge)
    block.insert_ops_before([local, _copy(load, local, place, (lane, across), lanes, names)], across)
    staged = kernel.LoadOp.of(local.buffer, MapAttr.of(place), location=load.location)
    lane.body.block.insert_op_before(staged, load)
    load.results[0].replace_all_uses_with(staged.results[0])
    lane.body.block.erase_op(load)


def _place(row: kernel.ForOp, column: kernel.ForOp, edge: int) -> Expr:
    return edge * (symbol(row.axis.data) - row.lo.data) + symbol(column.axis.data) - column.lo.data


def _copy(
    load: kernel.LoadOp,
    local: kernel.LocalOp,
    place: Expr,
    loops: Sequence[kernel.ForOp],
    lanes: int,
    names: set[str],
) -> Operation:
    """`local[place] = load`, for the axes of `loops` under new names, the last of them in lanes."""
    fresh = {loop.axis.data: fresh_axis(names) for loop in loops}
    new = {old: symbol(name) for old, name in fresh.items()}
    value = kernel.LoadOp.of(load.buffer, MapAttr.of(load.map.data[0].subs(new)), location=load.location)
    store = kernel.StoreOp.of(value.results[0], local.buffer, MapAttr.of(place.subs(new)), location=load.location)
    ops: list[Operation] = [value, store]
    for loop in reversed(loops):
        body = Region(Block([*ops, kernel.YieldOp.create()]))
        outer = kernel.ForOp.of(fresh[loop.axis.data], loop.lo.data, loop.hi.data, body, location=load.location)
        if loop is loops[-1]:
            set_mapping(outer, "vector", lanes)
        ops = [outer]
    return ops[0]
