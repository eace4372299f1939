"""The pass `kernel-tile`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ...dialects import host, kernel
from ...dialects.aten.types import TensorType
from . import strategy_cpu, strategy_gpu
from .cost import Sizes
from .targets import CpuTarget, Target, target_named


@dataclass(frozen=True)
class KernelTile(ModulePass):
    """Level: kernel.

    Precondition: all loops are serial and without tiles; iterations of a `kernel.for` are independent unless a store
    in it is `ordered`, or `atomic`.
    Guarantee: the loops are mapped to the target's hardware (`map`, `tile`), some are blocked, interchanged or joined
    before; `target` of each kernel says for which. Nothing else changes: the schedule is these attributes and loops.
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
        calls = _launches(op)
        for function in op.body.block.ops:
            if isinstance(function, kernel.FuncOp) and function.target is None:
                on_cpu, hints = calls.get(function.sym_name.data, (False, {}))
                schedule(function, target_named("cpp") if on_cpu else target, Sizes(hints))


def schedule(function: kernel.FuncOp, target: Target, sizes: Sizes) -> None:
    """Map the loops of one kernel for a target."""
    if isinstance(target, CpuTarget):
        strategy_cpu.schedule(function, target, sizes)
    else:
        strategy_gpu.schedule(function, target, sizes)
    function.properties["target"] = StringAttr(target.name)


def _launches(module: ModuleOp) -> dict[str, tuple[bool, dict[str, int]]]:
    """For each kernel that is launched: whether on CPU tensors only, and hints of its symbols' values."""
    symbols: dict[str, list[str]] = {}
    for function in module.body.block.ops:
        if isinstance(function, kernel.FuncOp):
            symbols[function.sym_name.data] = [s.data for s in function.symbols]
    calls: dict[str, tuple[bool, dict[str, int]]] = {}
    for function in module.body.block.ops:
        if not isinstance(function, host.FuncOp):
            continue
        hints = {s.data.name: s.data.hint for s in function.symbols if s.data.hint is not None}
        sizes = Sizes(hints)
        for op in function.body.block.ops:
            if isinstance(op, host.LaunchOp) and op.kernel.root_reference.data not in calls:
                name = op.kernel.root_reference.data
                values = {s: sizes.of(v) for s, v in zip(symbols.get(name, ()), op.symbols.data, strict=False)}
                calls[name] = _on_cpu(op), values
    return calls


def _on_cpu(launch: host.LaunchOp) -> bool:
    types = [value.type for value in launch.buffers]
    return all(isinstance(t, TensorType) and t.device == "cpu" for t in types)
