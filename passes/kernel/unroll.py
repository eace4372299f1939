"""The pass `kernel-unroll`."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr, i64

from ...dialects import kernel
from ...dialects.sym import Ranges
from ...records import dataclass
from ..analysis.loops import Loop, loops_in
from ..analysis.nests import element_bytes
from ..counters import counter
from .gpu_blocks import GpuBlocks, power_below
from .gpu_legality import is_innermost
from .gpu_rows import keeps_several
from .gpu_steps import bytes_read_again, loops_over_columns, programs_of, tiles_of_steps, waits_for_rows
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import free_tiled_for_gpu
from .tiles import extent_of, is_grid, is_persistent, is_tiled, steps

#: steps of a loop over rows that are read once whose loads are on their way together. Of a row that is read again none
#: is worth it: group norm's forward pass, 32 warps, takes 0.0306 ms on an H200, with two steps written out 0.0313, with
#: five 0.0376, for it then takes more than 32 registers and half of the programs wait for the others
AHEAD = 2
#: the same of columns at most
MOST_AHEAD = 4
#: registers of a thread for what such steps load and for the sums that they are added to: where as many threads run as
#: there are places for, of the 32 that each has then, and at most
AHEAD_REGISTERS = 24
MOST_REGISTERS = 160
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
    unroll: int = 0

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Unroll loops in every kernel for a GPU."""
        ranges, wanted = facts.ranges, GpuBlocks.of(facts.target, self).unroll
        again = bytes_read_again(function, facts.sizes, ranges)
        programs = programs_of(function, facts.sizes)
        steps_ahead = 1 if again or waits_for_rows(function) else _steps_ahead(function, facts)
        unroll_steps(function, wanted or steps_ahead, ranges)
        if programs <= facts.target.processors:
            _unroll_in_lanes(function)


def _steps_ahead(function: kernel.FuncOp, facts: KernelFacts) -> int:
    """Steps whose loads are on their way together.

    Of columns as many as load `bytes_per_thread` bytes a thread, and twice as many where several warps take moments,
    which is a chain of arithmetic, as far as registers allow; all of a few. On an H200, in bfloat16, variances of
    200704 x 64 take 20.8 us in 784 programs of two warps with four steps of 32 bytes a thread. Those of 4096 x 16384,
    in 2,048 programs of one warp, take 54.9 us so, and 46.4 with four steps of 16 bytes.
    """
    loops = loops_over_columns(function, facts.ranges)
    if not loops or not all(isinstance(op, kernel.ReduceOp) for op in loops):
        return AHEAD
    tile = max(tiles_of_steps(function))
    blocks = GpuBlocks.of(facts.target)
    per_thread = blocks.per_thread if function.per_thread is None else function.per_thread.value.data
    warps = blocks.warps_for(tile, per_thread, facts.target)
    own = tile // (warps * facts.target.warp)
    ahead = min(_steps_of(op, own, warps, blocks) for op in loops)
    threads = min(programs_of(function, facts.sizes) * warps * facts.target.warp, facts.target.room)
    registers = min(AHEAD_REGISTERS * facts.target.room // threads, MOST_REGISTERS)
    while ahead > AHEAD and max(own * _registers(op, ahead) for op in loops) > registers:
        ahead //= 2
    return ahead


def _steps_of(op: Loop, own: int, warps: int, blocks: GpuBlocks) -> int:
    """Steps of a loop for a thread of so many warps that has so many elements of each; all of a few."""
    wanted = blocks.bytes_per_thread * (2 if warps > 1 and keeps_several(op) else 1) // max(own * _bytes_loaded(op), 1)
    trips = steps(op).as_int()
    return MOST_AHEAD if trips is not None and trips <= MOST_AHEAD else max(min(power_below(wanted), MOST_AHEAD), AHEAD)


def _registers(op: Loop, ahead: int) -> int:
    """Registers for an element of a tile: of the loads of so many steps of a loop, and of what it carries."""
    return ahead * _bytes_loaded(op) // 4 + len(op.results)


def _bytes_loaded(op: Loop) -> int:
    return sum(element_bytes(each.buffer.type) for each in op.body.block.ops if isinstance(each, kernel.LoadOp))


def unroll_steps(function: kernel.FuncOp, count: int, ranges: Ranges) -> None:
    """Write out `count` steps, if more than one, of all loops over long rows that have several times as many."""
    columns = loops_over_columns(function, ranges)
    for op in _loops_over_rows(function, ranges) if count > 1 else ():
        wanted = count if op not in columns else _dividing(steps(op).as_int(), count)
        trips = steps(op).as_int()
        few = trips is not None and trips < LEAST_STEPS * wanted
        if wanted > 1 and not (few and op not in columns) and counter(KernelUnroll.name):
            op.properties["unroll"] = IntegerAttr(wanted, i64)


def _dividing(trips: int | None, count: int) -> int:
    """Steps of which a loop that runs a few times leaves none over: `count`, half of that, or as many as it can."""
    if trips is None or trips >= LEAST_STEPS * count:
        return count
    return next((each for each in (count, count // 2) if each > 1 and trips % each == 0), min(count, trips))


def _unroll_in_lanes(function: kernel.FuncOp) -> None:
    """Write out steps of innermost serial reductions of known length."""
    for op in loops_in(function.body.block):
        trips = extent_of(op).as_int()
        if not isinstance(op, kernel.ReduceOp) or op.mapping.data != "serial" or "unroll" in op.properties:
            continue
        if is_innermost(op) and trips is not None and trips >= STEPS_IN_LANES and counter(KernelUnroll.name):
            op.properties["unroll"] = IntegerAttr(STEPS_IN_LANES, i64)


def _loops_over_rows(function: kernel.FuncOp, ranges: Ranges) -> Iterator[Loop]:
    """Loops that a program runs tile by tile, but for those of matrix units, which have stages of their own.

    Not those around rows that are one tile each, whose accumulators fill the registers: group norm's sums for each
    channel, 16 images of 4096 points, took 0.0283 ms on an H200 with two steps written out and 0.0227 without.
    """
    for op in loops_in(function.body.block):
        is_other = is_grid(op) or isinstance(op, kernel.ScanOp) or op.mapping.data == "matrix"
        if is_tiled(op) and not is_other and not is_persistent(op, ranges):
            yield op
