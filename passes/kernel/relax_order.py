"""The pass `kernel-relax-order`."""

from __future__ import annotations

from ...dialects import kernel
from ..analysis.loops import ops_in
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import untiled_for_gpu


class KernelRelaxOrder(KernelPass, kernels=untiled_for_gpu):
    """Let plain stores of a GPU kernel that may meet win in any order: eager does not say either which of them does.

    Level: kernel.

    Precondition: in front of `kernel-map`; kernels that are tiled, or are not for a GPU, stay as they are.
    Guarantee: no store that sets an element is `ordered` or `atomic`. What combines with memory keeps its order, and
    keeps its kernel to one program.

        kernel.store ordered %v, %y[d0] (d0 = %j)
    becomes
        kernel.store %v, %y[d0] (d0 = %j)
    """

    name = "kernel-relax-order"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Relax stores in every kernel that will be for a GPU."""
        for store in ops_in(function):
            if type(store) is kernel.StoreOp and _is_bound(store) and counter(self.name):
                store.properties.pop("ordered", None)
                store.properties.pop("atomic", None)


def _is_bound(store: kernel.StoreOp) -> bool:
    return store.kind.data == "set" and (store.ordered is not None or store.atomic is not None)
