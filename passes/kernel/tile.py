"""The pass `kernel-tile`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ...dialects import kernel
from ..counters import counter
from . import strategy_cpu, strategy_gpu
from .cost import Sizes
from .launches import cpu_kernels, launch_sizes
from .targets import CpuTarget, Target, target_named


@dataclass(frozen=True)
class KernelTile(ModulePass):
    """Map loops to the target's hardware: lanes, threads, blocks, from one cost model.

    Level: kernel.

    Precondition: all loops are serial and without tiles; iterations of a `kernel.for` are independent unless a store
    in it is `ordered`, or `atomic`.
    Guarantee: the loops are mapped to the target's hardware (`map`, `tile`), some are blocked, interchanged or joined
    before; `target` of each kernel says for which. On the CPU, a local buffer goes where the row of a result holds the
    same values (`read_back.py`) or is written only when they are no longer needed (`write_ahead.py`), and blocks of a
    transpose get one. Nothing else changes: the schedule is these attributes, loops and buffers.
    A kernel that is launched on CPU tensors is scheduled for the CPU in any case.

        kernel.for i0 in 0 to s0 { %m = kernel.reduce max i1 in 0 to 4096 { ... } ... }
    becomes, for `cpp`,
        kernel.for i0 in 0 to s0 map parallel tile 25 {
          %m = kernel.reduce max i1 in 0 to 4096 map vector tile 64 { ... } ...
        }
    """

    name = "kernel-tile"
    level: ClassVar[str] = "kernel"
    target: str = "cpp"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Schedule every kernel that has no target yet."""
        target = target_named(self.target)
        sizes, on_cpu = launch_sizes(op), cpu_kernels(op)
        for function in op.body.block.ops:
            if isinstance(function, kernel.FuncOp) and function.target is None:
                name = function.sym_name.data
                chosen = target_named("cpp") if name in on_cpu else target
                if counter(self.name):
                    schedule(function, chosen, sizes.get(name, Sizes()))
                else:
                    function.properties["target"] = StringAttr(chosen.name)


def schedule(function: kernel.FuncOp, target: Target, sizes: Sizes) -> None:
    """Map the loops of one kernel for a target."""
    if isinstance(target, CpuTarget):
        strategy_cpu.schedule(function, target, sizes)
    else:
        strategy_gpu.schedule(function, target, sizes)
    function.properties["target"] = StringAttr(target.name)
