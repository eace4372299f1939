"""The kernels of a module by what their schedule is for: what the passes behind `kernel-tile` go through."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp

from ...dialects import kernel
from .targets import CpuTarget, GpuTarget, target_named


def tiled_for_gpu(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, GpuTarget]]:
    """The kernels that are tiled for a GPU and have no warps yet: those that have are finished."""
    for function in module.body.block.ops:
        if isinstance(function, kernel.FuncOp) and function.target is not None and function.num_warps is None:
            target = target_named(function.target.data)
            if isinstance(target, GpuTarget):
                yield function, target


def tiled_for_cpu(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, CpuTarget]]:
    """The kernels that are tiled for a CPU."""
    for function in module.body.block.ops:
        if isinstance(function, kernel.FuncOp) and function.target is not None:
            target = target_named(function.target.data)
            if isinstance(target, CpuTarget):
                yield function, target
