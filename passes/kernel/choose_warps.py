"""The pass `kernel-choose-warps`."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IntegerAttr, i64

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.sym import Expr, Ranges
from ...machines import GpuTarget
from ...records import dataclass
from ..analysis.loops import Loop, loops_in
from ..analysis.nests import is_unit
from ..analysis.sizes import Sizes
from ..counters import counter
from .gpu_blocks import GpuBlocks, fill_up, fit_cache, programs_in_cache
from .gpu_rows import keeps_several
from .gpu_steps import (
    all_programs_of,
    bytes_read_again,
    loops_over_columns,
    takes_rows_at_once,
    tiles_of_steps,
    waits_for_rows,
)
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import tiled_for_gpu
from .tiles import is_tiled

#: share of the threads that a GPU has a place for up to which more warps share moments of columns, whose tiles are as
#: large as keeps the memory busy: variances of 12544 x 512, 392 programs with tiles of 2,048, take 16 us on an H200 by
#: 4 warps and 18 by 8, those of 2048 x 1024 in 512 programs with tiles of 1,024 11.6 by 2 and 13.7 by 4
FILLED_BY_MOMENTS = 16
#: warps of a program from which on half of the room is left to the next launch, where launches overlap
LEAST_BESIDE = 2


@dataclass(frozen=True)
class KernelChooseWarps(KernelPass, kernels=tiled_for_gpu):
    """Choose the warps of each GPU kernel's programs, and how many programs run where they read memory again.

    Level: kernel.

    Precondition: `kernel-tile` for a GPU, with the tiles that are to stay; `per_thread` of a kernel says how many
    elements of a tile one thread works on. Other kernels, and those that have warps, stay as they are.
    Guarantee: every kernel for a GPU has `num_warps`, and no `per_thread` any more. As few programs run at once as find
    the rows that they read again in the cache, by more warps or by `programs`. The option `warps` sets the warps.

        kernel.func @softmax(...) target "cuda:90" per_thread 16 { ... map vector tile 4096 ... }
    becomes
        kernel.func @softmax(...) target "cuda:90" num_warps 8 { ... map vector tile 4096 ... }
    """

    name = "kernel-choose-warps"
    warps: int = 0
    per_thread: int = 0
    least_per_thread: int = 0
    overlap_launches: bool = False
    """Leave half of the room to programs of the next launch."""

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Choose warps for every kernel for a GPU."""
        if counter(self.name):
            overlaps = self.overlap_launches and facts.target.overlaps
            blocks = GpuBlocks.of(facts.target, self)
            choose_warps(function, facts.target, blocks, facts.sizes, facts.ranges, overlaps)


@dataclass(frozen=True)
class _Program:
    """What is known of one program.

    elements:   elements of its largest tile
    per_thread: and of those that one thread works on
    programs:   how many there are
    again:      bytes that it reads again
    """

    elements: int
    per_thread: int
    programs: int
    again: int


def choose_warps(
    function: kernel.FuncOp,
    target: GpuTarget,
    blocks: GpuBlocks,
    sizes: Sizes,
    ranges: Ranges,
    overlaps: bool = False,
) -> None:
    """Choose the warps and programs of one kernel; `overlaps`: programs of the next launch begin beside them."""
    per_thread = function.properties.pop("per_thread", None)
    program = _Program(
        max(tiles_of_steps(function), default=1),
        per_thread.value.data if isinstance(per_thread, IntegerAttr) else blocks.per_thread,
        all_programs_of(function, sizes),
        bytes_read_again(function, sizes, ranges),
    )
    warps, programs = _warps(function, program, target, blocks, ranges, overlaps)
    function.properties["num_warps"] = IntegerAttr(min(warps, target.warps), i64)
    if programs is not None and counter("kernel-choose-warps-programs"):
        function.properties["programs"] = IntegerAttr(programs, i64)


def _warps(
    function: kernel.FuncOp, program: _Program, target: GpuTarget, blocks: GpuBlocks, ranges: Ranges, overlaps: bool
) -> tuple[int, int | None]:
    """Warps of a program, and how many programs there are if not one for each row."""
    again = program.again
    if blocks.warps:
        return blocks.warps, None
    scanned = least_scanned(function, blocks)
    warps = blocks.warps_for(program.elements, max(program.per_thread, scanned), target)
    least = blocks.per_thread if waits_for_rows(function) else blocks.least_per_thread
    least = program.per_thread if takes_rows_at_once(function) else least  # lanes of a column are a thread's own
    along_rows = scanned == blocks.per_thread  # where all programs run at once, more threads wait for memory
    most = blocks.warps_for(program.elements, max(least, scanned // 2 if along_rows else scanned), target)
    moments = any(map(keeps_several, loops_over_columns(function, ranges)))
    room = target.room // (FILLED_BY_MOMENTS if moments else 2 if overlaps and warps >= LEAST_BESIDE else 1)
    warps = fill_up(warps, most, program.programs, target, room)
    if not again:
        return warps, None
    at_once = programs_in_cache(again, target)
    threads = at_once * most * target.warp
    several = 2 * target.processors <= at_once < program.programs
    if several and target.room <= 2 * threads < 2 * target.room and _is_one_nest(function):
        return most, at_once  # half of the room is enough where each thread has a whole vector on its way
    return fit_cache(warps, min(2 * most, target.warps), program.programs, again, target), None


def _is_one_nest(function: kernel.FuncOp) -> bool:
    """Whether nothing beside one nest wants a program of its own: a loop, a store or a check."""
    apart = (op for op in function.body.block.ops if isinstance(op, Loop | kernel.StoreOp | kernel.AssertOp))
    return [isinstance(op, Loop) for op in apart] == [True]


def least_scanned(function: kernel.FuncOp, blocks: GpuBlocks) -> int:
    """The fewest elements that one thread should scan; 0 where the kernel scans nothing.

    Each thread adds up what all warps in front of it have found, so that few threads with many elements are better. In
    a scan down columns, neighbours along the scan lie in different lanes, and a thread takes twice as many elements. It
    does not where a scan carries pairs, such as a value with its place: twice as many would fill the registers.
    """
    scans = [op for op in loops_in(function.body.block) if isinstance(op, kernel.ScanOp) and is_tiled(op)]
    twice = any(len(yielded(op.body)) == 1 and not any(map(_are_neighbours, _strides(op))) for op in scans)
    return blocks.per_thread * (2 if twice else 1) if scans else 0


def _are_neighbours(stride: Expr | None) -> bool:
    """Whether neighbours along a scan lie side by side in memory, in its order or the other way round."""
    return is_unit(stride) or (stride is not None and is_unit(-stride))


def _strides(op: kernel.ScanOp) -> Iterator[Expr | None]:
    """Distances of neighbours along a scan's axis in the memory that it accesses."""
    for access in op.walk():
        if isinstance(access, kernel.LoadOp | kernel.StoreOp) and not isinstance(access.buffer.owner, kernel.LocalOp):
            yield access.map.data[0].coefficient(op.axis.data)
