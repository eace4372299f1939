"""The pass `kernel-relax-atomics`."""

from __future__ import annotations

from ...dialects import kernel
from ..analysis.dependences import keeps_apart
from ..analysis.loops import loops_around, ops_in
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import untiled

#: mappings whose iterations run at once
AT_ONCE = ("grid", "parallel", "vector")


class KernelRelaxAtomics(KernelPass, kernels=untiled):
    """Combine in memory without atomic operations where no two iterations that run at once meet.

    Level: kernel.

    Precondition: behind `kernel-map` and `kernel-vectorize`, which say what runs at once, and in front of
    `kernel-tile`, behind which an axis is in blocks that do not show which places it keeps apart. Kernels that are
    tiled stay as they are.
    Guarantee: a store is not `atomic` if it writes other places in other iterations of every loop around it that
    runs iterations at once.

        kernel.for i1 in 0 to 64 map parallel {
          kernel.for i0 in 0 to s0 { ... kernel.store add atomic %v, %y[64*d0 + i1] (d0 = %j) ... } }
    becomes
        kernel.for i1 in 0 to 64 map parallel {
          kernel.for i0 in 0 to s0 { ... kernel.store add %v, %y[64*d0 + i1] (d0 = %j) ... } }
    """

    name = "kernel-relax-atomics"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Relax stores in every kernel that is not tiled yet."""
        for store in ops_in(function):
            if type(store) is kernel.StoreOp and store.atomic is not None:
                at_once = (loop for loop in loops_around(store) if loop.mapping.data in AT_ONCE)
                if all(keeps_apart(store, loop) for loop in at_once) and counter(self.name):
                    store.properties.pop("atomic")
