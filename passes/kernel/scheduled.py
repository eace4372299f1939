"""The kernels of a module by what their schedule is for, in front of `kernel-tile` and behind it."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ...dialects import kernel
from ...dialects.machine import targets_of
from ...dialects.raw import ops_in
from ...machines import CpuTarget, Family, GpuTarget, Target, target_named
from ..analysis.launches import cpu_kernels
from ..analysis.loops import is_loop
from .pinned import has_pinned


def family_of(function: kernel.FuncOp) -> Family | None:
    """The family of targets that a kernel is scheduled for; None for one that is not."""
    return None if function.target is None else target_named(function.target.data).family


def for_host(module: ModuleOp) -> set[str]:
    """The kernels on tensors of the host's memory, in a module whose target is a GPU."""
    return cpu_kernels(module) if isinstance(targets_of(module).main, GpuTarget) else set()


def untiled(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, Target]]:
    """The kernels that are not tiled, and what they will be tiled for, the module's target.

    Those on tensors of the host's memory are for the module's CPU in any case.
    """
    targets = targets_of(module)
    target, host, on_cpu = targets.main, targets.host, for_host(module)
    for function in module.body.block.ops:
        if isinstance(function, kernel.FuncOp) and function.target is None:
            yield function, host if function.sym_name.data in on_cpu else target


def is_mapped(function: Operation) -> bool:
    """Whether a kernel has a loop that is not serial: it has been through `kernel-map`."""
    return any(op.mapping.data != "serial" for op in ops_in(function) if is_loop(op))


def untiled_for_gpu(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, GpuTarget]]:
    """Those of them that are for a GPU."""
    if isinstance(targets_of(module).main, GpuTarget):
        for function, target in untiled(module):
            if isinstance(target, GpuTarget):
                yield function, target


def free_for_gpu(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, GpuTarget]]:
    """Those of them without a nest whose schedule is pinned: what one nest of a GPU's kernel is, others depend on."""
    return ((function, target) for function, target in untiled_for_gpu(module) if not has_pinned(function))


def untiled_for_cpu(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, CpuTarget]]:
    """Those of them that are for a CPU."""
    for function, target in untiled(module):
        if isinstance(target, CpuTarget):
            yield function, target


def tiled_for_gpu(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, GpuTarget]]:
    """The kernels that are tiled for a GPU and are not finished: `kernel-choose-warps` has not given them warps yet."""
    return ((function, target) for function, target in all_for_gpu(module) if function.num_warps is None)


def free_tiled_for_gpu(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, GpuTarget]]:
    """The kernels of `tiled_for_gpu` in which no nest has a pinned schedule."""
    return ((function, target) for function, target in tiled_for_gpu(module) if not has_pinned(function))


def all_for_gpu(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, GpuTarget]]:
    """The kernels that are tiled for a GPU, finished or not."""
    for function in module.body.block.ops:
        if isinstance(function, kernel.FuncOp) and function.target is not None:
            target = target_named(function.target.data)
            if isinstance(target, GpuTarget):
                yield function, target


def for_cpu(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, CpuTarget]]:
    """The kernels for a CPU, tiled or not."""
    yield from tiled_for_cpu(module)
    yield from untiled_for_cpu(module)


def tiled_for_cpu(module: ModuleOp) -> Iterator[tuple[kernel.FuncOp, CpuTarget]]:
    """The kernels that are tiled for a CPU."""
    for function in module.body.block.ops:
        if isinstance(function, kernel.FuncOp) and function.target is not None:
            target = target_named(function.target.data)
            if isinstance(target, CpuTarget):
                yield function, target
