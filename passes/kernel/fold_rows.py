"""The pass `kernel-fold-rows`."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from ...dialects import kernel
from ..analysis.effects import is_local, written_buffers
from ..analysis.loops import is_loop
from .fold_lanes import fold_lanes
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import free_for_gpu
from .spread import programs


class KernelFoldRows(KernelPass, kernels=free_for_gpu):
    """Let a lane compute an element of each part of a row that conditions cut in equal parts (thread coarsening).

    Level: kernel.

    Precondition: behind `kernel-map`; kernels that are tiled, or are not for a GPU, stay as they are.
    Guarantee: what `kernel-fold-lanes` does with axes of the grid is done with loops inside of the grid, along
    which lanes will lie, if such a loop reads only buffers that the kernel does not write, and stores to no local
    buffer. Layer norm in front of a rotation:

        kernel.for i0 in 0 to 512 map grid { ... kernel.for i1 in 0 to 128 { %i = kernel.index i1
          %n = kernel.index 64  %c = arith.cmpi slt, %i, %n : i64  %v = kernel.load %x[128*i0 + i1]
          %r = kernel.load %x[128*i0 + i1 + 64] if %c else %z ... kernel.store %o, %y[128*i0 + i1] } }
    becomes
        kernel.for i0 in 0 to 512 map grid { ... kernel.for i1 in 0 to 64 { %v = kernel.load %x[128*i0 + i1]
          %r = kernel.load %x[128*i0 + i1 + 64] ... kernel.store %p, %y[128*i0 + i1 + 64] } }
    """

    name = "kernel-fold-rows"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Fold rows in every kernel that will be for a GPU."""
        for chain in programs(function):
            if all(loop.tile is None for loop in chain):
                _fold_rows(function, chain[-1].body.block)


def _fold_rows(function: kernel.FuncOp, block: Block) -> None:
    loops = [op for op in block.ops if isinstance(op, kernel.ForOp)]
    written = written_buffers(function.body.block) if loops else set[SSAValue]()
    for loop in loops:
        ops = list(loop.body.block.ops)
        reads = (op.buffer for op in ops if isinstance(op, kernel.LoadOp))
        keeps = any(isinstance(op, kernel.StoreOp) and is_local(op.buffer) for op in ops)
        if not (keeps or any(map(is_loop, ops)) or any(buffer in written for buffer in reads)):
            fold_lanes(function, [loop], KernelFoldRows.name)
