"""The pass `kernel-cse`."""

from __future__ import annotations

from ...dialects import kernel
from ..analysis.effects import written_buffers
from .kernel_pass import KernelFacts, KernelPass
from .prune import prune_reductions
from .simplify_block import BlockSimplifier, remove_dead


class KernelCse(KernelPass):
    """Compute equal values once, and drop what nothing uses.

    Level: kernel.

    Precondition: none.
    Guarantee: no two equal pure ops, or loads from buffers that the kernel only reads, in one block or in a block
    inside of it; no load of what a store right before left there; no ops, loops and local buffers without effect; no
    reduction to results that nothing uses (an argmax whose index is not asked for is a max).

        %a = kernel.load %x[i0]
        %b = kernel.load %x[i0]
        kernel.store %a, %row[0]
        %c = kernel.load %row[0]
        %d = arith.addf %b, %c : f32
    becomes
        %a = kernel.load %x[i0]
        %d = arith.addf %a, %a : f32
    """

    name = "kernel-cse"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Simplify one kernel."""
        block = function.body.block
        BlockSimplifier(written_buffers(block)).run(block)
        while prune_reductions(block) | remove_dead(block):
            pass
