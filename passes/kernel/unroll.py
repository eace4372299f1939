"""The pass `kernel-unroll`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, i64

from ...dialects import kernel
from ...dialects.sym import Ranges
from ..analysis.loops import Loop, loops_in
from ..analysis.nests import element_bytes
from ..counters import counter
from .gpu_blocks import COLUMN_ELEMENTS, GpuBlocks, power_below
from .gpu_legality import is_innermost
from .gpu_steps import bytes_read_again, programs_of, tiles_of_steps, waits_for_rows
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import free_tiled_for_gpu
from .tiles import extent_of, is_grid, is_persistent, is_tiled, steps

#: steps of a loop over rows that are read once whose loads are on their way together. Of a row that is read again none
#: is worth it: group norm's forward pass, 32 warps, takes 0.0306 ms on an H200, with two steps written out 0.0313, with
#: five 0.0376, for it then takes more than 32 registers and half of the programs wait for the others
AHEAD = 2
#: the same where the tiles of all programs are so small that two steps of them leave the memory waiting
MOST_AHEAD = 4
#: registers of a thread for what such steps load and for the sums that they are added to, of the 64 that a thread has
#: where as many programs run as a processor has places for
AHEAD_REGISTERS = 48
#: steps that are written out of a reduction that each lane does for itself, where so few programs run that nothing
#: hides how long each step waits for its loads
STEPS_IN_LANES = 8
#: times that a loop runs at least for each step that is written out
LEAST_STEPS = 4


@dataclass(frozen=True)
class KernelUnroll(KernelPass, kernels=free_tiled_for_gpu):
    """Unroll loops over long rows for a GPU, so that the loads of several steps are on their way together.

    Level: kernel.

    Precondition: `kernel-tile` for a GPU, with the tiles that are to stay (`kernel-choose-steps`); other kernels stay
    as they are.
    Guarantee: loops over rows that are read once, and have several times as many steps, have two written out
    (`unroll 2`), or `unroll` of them where that option is not 0, or four where the tiles of all programs are too small
    to keep the memory busy and registers allow it; and so have reductions that each lane does for itself where there
    are fewer programs than processors. That is what software pipelining would do here, without its copies: nothing but
    loads of a step waits for memory.

        %s = kernel.reduce sum i1 in 0 to 32768 map vector tile 2048 { ... }
    becomes
        %s = kernel.reduce sum i1 in 0 to 32768 map vector tile 2048 unroll 2 { ... }
    """

    name = "kernel-unroll"
    unroll: int = GpuBlocks.unroll

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Unroll loops in every kernel for a GPU."""
        ranges, wanted = facts.ranges, GpuBlocks.of(self).unroll
        again = bytes_read_again(function, facts.sizes, ranges)
        programs = programs_of(function, facts.sizes)
        steps_ahead = 1 if again or waits_for_rows(function) else _steps_ahead(function, programs, facts)
        unroll_steps(function, wanted or steps_ahead, ranges)
        if programs <= facts.target.processors:
            _unroll_in_lanes(function)


def _steps_ahead(function: kernel.FuncOp, programs: int, facts: KernelFacts) -> int:
    """Steps whose loads are on their way together: as many elements of all programs as keep the memory busy.

    Those are `AHEAD` steps of `COLUMN_ELEMENTS` for each place for a thread, as `GpuBlocks.column_step_for` has tiles
    of sums. What is a group of several numbers, as a mean with a sum of squares, has smaller ones for want of
    registers: the variance of 8192 x 4096, tiles of 256 in 2,048 programs, takes 31.6 us on an H200 with two steps and
    25.5 with four. Then a step is one load of 16 bytes a thread, and 32 programs of one warp a processor have 16 KiB
    on their way, where latency times bandwidth is twice that.
    """
    loops = list(_loops_over_rows(function, facts.ranges))
    if not all(isinstance(op, kernel.ReduceOp) for op in loops) or not loops:
        return AHEAD
    tile = max(tiles_of_steps(function))
    wanted = AHEAD * COLUMN_ELEMENTS * facts.target.room
    ahead = max(min(power_below(wanted // max(programs * tile, 1)), MOST_AHEAD), AHEAD)
    per_thread = GpuBlocks.per_thread if function.per_thread is None else function.per_thread.value.data
    own = tile // (GpuBlocks().warps_for(tile, per_thread, facts.target) * facts.target.warp)
    while ahead > AHEAD and max(own * _registers(op, ahead) for op in loops) > AHEAD_REGISTERS:
        ahead //= 2
    return ahead


def _registers(op: Loop, ahead: int) -> int:
    """How many registers one element of a tile takes: for the loads of `ahead` steps, and for what the loop carries."""
    loads = sum(element_bytes(each.buffer.type) for each in op.body.block.ops if isinstance(each, kernel.LoadOp))
    return ahead * loads // 4 + len(op.results)


def unroll_steps(function: kernel.FuncOp, count: int, ranges: Ranges) -> None:
    """Write out `count` steps, if more than one, of all loops over long rows that have several times as many."""
    for op in _loops_over_rows(function, ranges) if count > 1 else ():
        trips = steps(op).as_int()
        if (trips is None or trips >= LEAST_STEPS * count) and counter(KernelUnroll.name):
            op.properties["unroll"] = IntegerAttr(count, i64)


def _unroll_in_lanes(function: kernel.FuncOp) -> None:
    """Write out steps of innermost serial reductions of known length."""
    for op in loops_in(function.body.block):
        trips = extent_of(op).as_int()
        if not isinstance(op, kernel.ReduceOp) or op.mapping.data != "serial" or "unroll" in op.properties:
            continue
        if is_innermost(op) and trips is not None and trips >= STEPS_IN_LANES and counter(KernelUnroll.name):
            op.properties["unroll"] = IntegerAttr(STEPS_IN_LANES, i64)


def _loops_over_rows(function: kernel.FuncOp, ranges: Ranges) -> Iterator[Loop]:
    """Loops that a program runs tile by tile.

    Not those around rows that are one tile each, whose accumulators fill the registers: group norm's sums for each
    channel, 16 images of 4096 points, took 0.0283 ms on an H200 with two steps written out and 0.0227 without.
    """
    for op in loops_in(function.body.block):
        if is_tiled(op) and not (is_grid(op) or isinstance(op, kernel.ScanOp) or is_persistent(op, ranges)):
            yield op
