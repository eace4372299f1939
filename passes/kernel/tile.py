"""The pass `kernel-tile`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i64

from ...dialects import kernel
from ...machines import CpuTarget
from ...records import dataclass
from .cpu_tiles import tile_for_cpu
from .gpu_blocks import GpuBlocks
from .gpu_tiles import tile_for_gpu
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import untiled
from .spread import has_programs


@dataclass(frozen=True)
class KernelTile(KernelPass, kernels=untiled):
    """Choose the sizes of tiles from one cost model, and block loops for caches and cores (tiling, strip-mining).

    Level: kernel.

    Precondition: `kernel-map` and `kernel-vectorize` say which axes run at once, and which in lanes. Tiles that loops
    have stay as they are, and so do kernels that say their `target`.
    Guarantee: for a CPU, the axis of lanes is blocked where the loops around it are too few for all cores, where rows
    that may meet are walked down one by one, and in a transpose, together with the axis across: square blocks, of
    which the inner loop across is serial. For a GPU, every loop in lanes has a tile, and the tiled axes of the grid are
    innermost; `per_thread` of a kernel says how many elements of a tile one thread works on, and `target` that it is
    tiled. The other options are the numbers that schedules for GPUs are made of (`gpu_blocks.py`), to try others:
    `schedule{elements=2048 per-thread=8}` gives them to all passes of the schedule.

        kernel.for i0 in 0 to 4096 map grid { %m = kernel.reduce max i1 in 0 to 4096 map vector { ... } ... }
    becomes
        kernel.for i0 in 0 to 4096 map grid { %m = kernel.reduce max i1 in 0 to 4096 map vector tile 4096 { ... } ... }
    and, for `cpp`,
        kernel.for i0 in 0 to 1048576 map vector tile 16 { ... }
    becomes
        kernel.for i1 in 0 to 64 map parallel {
          kernel.for i0 in 16384*i1 to 16384*i1 + 16384 map vector tile 16 { ... } }
    """

    name = "kernel-tile"
    optional: ClassVar[bool] = False
    elements: int = 0
    longest_row: int = 0
    step: int = 0
    least_step: int = 0
    column_step: int = 0
    least_column_step: int = 0
    per_thread: int = 0
    least_per_thread: int = 0
    bytes_per_thread: int = 0
    program_bytes: int = 0
    edge_bytes: int = 0
    overlap_launches: bool = False

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Tile every kernel that has no target yet."""
        sizes = facts.sizes
        if isinstance(facts.target, CpuTarget):
            tile_for_cpu(function, facts.target, sizes, self.name)
            return
        blocks = GpuBlocks.of(facts.target, self)
        if has_programs(function):
            overlaps = self.overlap_launches and facts.target.overlaps
            tile_for_gpu(function, facts.target, sizes, facts.ranges, blocks, self.name, overlaps)
        else:
            function.properties["per_thread"] = IntegerAttr(blocks.per_thread, i64)
        function.properties["target"] = StringAttr(facts.target.name)
