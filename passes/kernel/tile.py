"""The pass `kernel-tile`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ...dialects import kernel
from ...machines import CpuTarget, GpuTarget, Target
from ..counters import counter
from . import strategy_cpu, strategy_gpu
from .cost import Sizes
from .gpu_blocks import GpuBlocks
from .launches import LaunchSizes
from .scheduled import untiled


@dataclass(frozen=True)
class KernelTile(ModulePass):
    """Map loops to the target's hardware: lanes, threads, blocks, from one cost model.

    Level: kernel.

    Precondition: all loops are serial and without tiles; iterations of a `kernel.for` are independent unless a store
    in it is `ordered`, or `atomic`.
    Guarantee: the loops are mapped to the target's hardware (`map`, `tile`), some are blocked, interchanged or joined
    before; `target` of each kernel says for which. On the CPU, blocks of a transpose get a local buffer. On a GPU,
    `per_thread` of a kernel says how many elements of a tile one thread works on, and a local buffer is `columnwise`
    where lanes lie along the iterations around it. Nothing else changes: the schedule is these attributes, loops and
    buffers. The passes behind it read them: `inductile-opt --print-pipeline schedule`. A kernel that is launched on CPU
    tensors is scheduled for the CPU in any case. The other options are the numbers that schedules for GPUs are made of
    (`gpu_blocks.py`), to try others: `schedule{elements=2048 per-thread=8}` gives them to all passes
    of the schedule.

        kernel.for i0 in 0 to s0 { %m = kernel.reduce max i1 in 0 to 4096 { ... } ... }
    becomes, for `cpp`,
        kernel.for i0 in 0 to s0 map parallel tile 25 {
          %m = kernel.reduce max i1 in 0 to 4096 map vector tile 64 { ... } ...
        }
    """

    name = "kernel-tile"
    level: ClassVar[str] = "kernel"
    elements: int = GpuBlocks.elements
    longest_row: int = GpuBlocks.longest_row
    step: int = GpuBlocks.step
    least_step: int = GpuBlocks.least_step
    column_step: int = GpuBlocks.column_step
    per_thread: int = GpuBlocks.per_thread
    least_per_thread: int = GpuBlocks.least_per_thread
    bytes_per_thread: int = GpuBlocks.bytes_per_thread
    edge_bytes: int = GpuBlocks.edge_bytes

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Schedule every kernel that has no target yet."""
        blocks = GpuBlocks.of(self)
        sizes = LaunchSizes(op)
        for function, target in untiled(op):
            if counter(self.name):
                schedule(function, target, sizes.of(function), blocks)
            else:
                function.properties["target"] = StringAttr(target.name)


def schedule(function: kernel.FuncOp, target: Target, sizes: Sizes, blocks: GpuBlocks) -> None:
    """Map the loops of one kernel for a target; `blocks` for a GPU."""
    if isinstance(target, CpuTarget):
        strategy_cpu.schedule(function, target, sizes)
    elif isinstance(target, GpuTarget):
        strategy_gpu.schedule(function, target, sizes, blocks)
    function.properties["target"] = StringAttr(target.name)
