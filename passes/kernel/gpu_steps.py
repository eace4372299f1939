"""Loops over rows that do not fit into the registers of a GPU's program, once all loops of a kernel are tiled.

What a program does in one step: elements of its tile, with how many warps, and how many steps are written out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.sym import Expr, Ranges
from ..counters import counter
from .axes import Loop, loops_around, loops_in
from .cost import Sizes, element_bytes, is_unit
from .gpu_blocks import GpuBlocks, fill_up, fit_cache, programs_in_cache, tile_along
from .gpu_legality import is_innermost
from .targets import GpuTarget
from .tiles import is_grid, is_persistent, is_tiled, steps, tile_of
from .transforms import set_mapping

#: steps of a loop over rows that are read once whose loads are on their way together. Of a row that is read again none
#: is worth it: group norm's forward pass, 32 warps, takes 0.0306 ms on an H200, with two steps written out 0.0313, with
#: five 0.0376, for it then takes more than 32 registers and half of the programs wait for the others
AHEAD = 2
#: times that a loop runs at least for each step that is written out
LEAST_STEPS = 4


@dataclass
class Share:
    """What is known of one program before its steps are settled.

    elements:   elements of its largest tile
    per_thread: and of those that one thread works on
    programs:   how many there are
    """

    elements: int
    per_thread: int
    programs: int


def settle_steps(
    function: kernel.FuncOp, share: Share, target: GpuTarget, blocks: GpuBlocks, sizes: Sizes, ranges: Ranges
) -> None:
    """Choose steps for the loops over long rows of a tiled kernel, and the warps of a program, in place.

    Loops over rows that are read again take equal steps, and as few programs run at once as find theirs in the cache.
    """
    again = bytes_read_again(function, sizes, ranges)
    step = min(tiles_of_steps(function)) if again else blocks.step_for(share.programs, target)
    if blocks.least_step <= step < blocks.step and shorten_steps(function, step, sizes, ranges):
        per_thread = share.per_thread if again else min(share.per_thread, blocks.per_thread)
        share = Share(max(tiles_of_steps(function)), per_thread, share.programs)
    warps, programs = _warps(function, share, again, target, blocks)
    unroll = blocks.unroll or (1 if again or waits_for_rows(function) else AHEAD)
    unroll_steps(function, unroll, ranges)
    function.properties["num_warps"] = IntegerAttr(min(warps, target.warps), i64)
    if programs is not None and counter("kernel-tile-programs"):
        function.properties["programs"] = IntegerAttr(programs, i64)


def _warps(
    function: kernel.FuncOp, share: Share, again: int, target: GpuTarget, blocks: GpuBlocks
) -> tuple[int, int | None]:
    """Warps of a program that reads `again` bytes again, and how many programs there are if not one for each row."""
    if blocks.warps:
        return blocks.warps, None
    scanned = least_scanned(function, blocks)
    warps = blocks.warps_for(share.elements, max(share.per_thread, scanned), target)
    least = blocks.per_thread if waits_for_rows(function) else blocks.least_per_thread
    most = blocks.warps_for(share.elements, max(least, scanned), target)
    warps = fill_up(warps, most, share.programs, target)
    if not again:
        return warps, None
    at_once = programs_in_cache(again, target)
    threads = at_once * most * target.warp
    several = 2 * target.processors <= at_once < share.programs
    if several and target.room <= 2 * threads < 2 * target.room and _is_one_nest(function):
        return most, at_once  # half of the room is enough where each thread has a whole vector on its way
    return fit_cache(warps, min(2 * most, target.warps), share.programs, again, target), None


def _is_one_nest(function: kernel.FuncOp) -> bool:
    """Whether nothing beside one nest wants a program of its own: a loop, a store or a check."""
    apart = (op for op in function.body.block.ops if isinstance(op, Loop | kernel.StoreOp | kernel.AssertOp))
    return [isinstance(op, Loop) for op in apart] == [True]


def waits_for_rows(function: kernel.FuncOp) -> bool:
    """Whether a program takes rows one after the other and its warps wait for each other at the end of each."""
    reductions = (op for op in loops_in(function.body.block) if isinstance(op, kernel.ReduceOp) and is_tiled(op))
    return any(isinstance(around := op.parent_op(), kernel.ForOp) and not is_grid(around) for op in reductions)


def least_scanned(function: kernel.FuncOp, blocks: GpuBlocks) -> int:
    """Elements that one thread scans at least, since each thread adds up what all warps in front of it have found.

    Twice as many of columns, of which neighbours along the scan lie in different lanes, but for pairs, which would fill
    the registers. 0 where nothing is scanned.
    """
    scans = [op for op in loops_in(function.body.block) if isinstance(op, kernel.ScanOp) and is_tiled(op)]
    twice = any(len(yielded(op.body)) == 1 and not any(map(is_unit, _strides(op))) for op in scans)
    return blocks.per_thread * (2 if twice else 1) if scans else 0


def _strides(op: kernel.ScanOp) -> Iterator[Expr | None]:
    """Distances of neighbours along a scan's axis in the memory that it accesses."""
    for access in op.walk():
        if isinstance(access, kernel.LoadOp | kernel.StoreOp) and not isinstance(access.buffer.owner, kernel.LocalOp):
            yield access.map.data[0].coefficient(op.axis.data)


def bytes_read_again(function: kernel.FuncOp, sizes: Sizes, ranges: Ranges) -> int:
    """Bytes of the rows of one program that more than one of its loops reads."""
    readers: dict[SSAValue, set[Loop]] = {}
    bytes_of: dict[SSAValue, int] = {}
    for op in function.walk():
        if not isinstance(op, kernel.LoadOp):
            continue
        around = loops_around(op)
        path, used = [loop for loop in around if not is_grid(loop)], op.map.data[0].free_symbols
        own = any(is_grid(loop) and loop.axis.data in used for loop in around)
        if own and any(not is_persistent(loop, ranges) for loop in path):
            spans = [tile_of(loop) if is_grid(loop) else sizes.trips(loop) for loop in around if loop.axis.data in used]
            readers.setdefault(op.buffer, set()).add(path[0])
            bytes_of[op.buffer] = prod(spans) * element_bytes(op.buffer.type)
    return sum(size for buffer, size in bytes_of.items() if len(readers[buffer]) > 1)


def shorten_steps(function: kernel.FuncOp, step: int, sizes: Sizes, ranges: Ranges) -> bool:
    """Give loops over rows that each fill a program tiles of at most `step` elements; whether there are such loops."""
    rows = [
        op
        for op in loops_in(function.body.block)
        if is_tiled(op) and not (is_grid(op) or is_persistent(op, ranges) or isinstance(op, kernel.ScanOp))
        if not any(map(is_tiled, loops_around(op)))
    ]
    for op in rows:
        if tile_of(op) > step and counter("kernel-tile-step"):
            set_mapping(op, "vector", tile_along(sizes.trips(op), step))
    return bool(rows)


def tiles_of_steps(function: kernel.FuncOp) -> list[int]:
    """Elements of the tile of each innermost loop of a kernel."""
    return [prod(map(tile_of, (*loops_around(op), op))) for op in loops_in(function.body.block) if is_innermost(op)]


def unroll_steps(function: kernel.FuncOp, count: int, ranges: Ranges) -> None:
    """Write out `count` steps, if more than one, of all loops over long rows that have several times as many."""
    for op in _loops_over_rows(function, ranges) if count > 1 else ():
        trips = steps(op).as_int()
        if (trips is None or trips >= LEAST_STEPS * count) and counter("kernel-tile-unroll"):
            op.properties["unroll"] = IntegerAttr(count, i64)


def _loops_over_rows(function: kernel.FuncOp, ranges: Ranges) -> Iterator[Loop]:
    """Loops that a program runs tile by tile.

    Not those around rows that are one tile each, whose accumulators fill the registers: group norm's sums for each
    channel, 16 images of 4096 points, took 0.0283 ms on an H200 with two steps written out and 0.0227 without.
    """
    for op in loops_in(function.body.block):
        if is_tiled(op) and not (is_grid(op) or isinstance(op, kernel.ScanOp) or is_persistent(op, ranges)):
            yield op
