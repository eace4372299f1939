"""The pass `kernel-choose-steps`."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64

from ...dialects import kernel
from ...dialects.sym import Ranges
from ...records import dataclass
from ..analysis.loops import loops_around, loops_in
from ..analysis.sizes import Sizes
from ..counters import counter
from .gpu_blocks import GpuBlocks, tile_along
from .gpu_steps import bytes_read_again, programs_of, tiles_of_steps
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import free_tiled_for_gpu
from .tiles import is_grid, is_persistent, is_tiled, tile_of
from .transforms import set_mapping


@dataclass(frozen=True)
class KernelChooseSteps(KernelPass, kernels=free_tiled_for_gpu):
    """Strip-mine loops over long rows for a GPU: equal steps where rows are read again, short ones of many programs.

    Level: kernel.

    Precondition: `kernel-tile` for a GPU; what goes through memory is known (`kernel-spill`). Other kernels stay as
    they are.
    Guarantee: loops over rows that are read again take equal steps. If there are more programs than run at once
    with steps of `least_step` elements, a loop over a row that fills a program has steps of at most that length.
    Tiles only get smaller; `per_thread` of the kernel is what suits them. Scans, and rows in registers, stay as
    they are.

        kernel.func @sums(...) target "cuda:90" per_thread 32 {
          %s = kernel.reduce sum i1 in 0 to 32768 map vector tile 8192 { ... } ... }
    becomes
        kernel.func @sums(...) target "cuda:90" per_thread 16 {
          %s = kernel.reduce sum i1 in 0 to 32768 map vector tile 2048 { ... } ... }
    """

    name = "kernel-choose-steps"
    step: int = 0
    least_step: int = 0
    per_thread: int = 0

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Choose steps for the loops over long rows of one kernel."""
        target, blocks, sizes, ranges = facts.target, GpuBlocks.of(facts.target, self), facts.sizes, facts.ranges
        again = bytes_read_again(function, sizes, ranges)
        step = min(tiles_of_steps(function)) if again else blocks.step_for(programs_of(function, sizes), target)
        if not blocks.least_step <= step < blocks.step or not shorten_steps(function, step, sizes, ranges):
            return
        if not again and function.per_thread is not None:
            per_thread = min(function.per_thread.value.data, blocks.per_thread)
            function.properties["per_thread"] = IntegerAttr(per_thread, i64)


def shorten_steps(function: kernel.FuncOp, step: int, sizes: Sizes, ranges: Ranges) -> bool:
    """Give loops over rows that each fill a program tiles of at most `step` elements; whether there are such loops."""
    rows = [
        op
        for op in loops_in(function.body.block)
        if is_tiled(op) and not (is_grid(op) or is_persistent(op, ranges) or isinstance(op, kernel.ScanOp))
        if not any(map(is_tiled, loops_around(op)))
    ]
    for op in rows:
        if tile_of(op) > step and counter(KernelChooseSteps.name):
            set_mapping(op, "vector", tile_along(sizes.trips(op), step))
    return bool(rows)
