"""Compiling kernels for a GPU that need not be there: Triton carries its own assembler."""

from __future__ import annotations

from typing import Any

from .kernel import TritonKernel
from .loading import load_functions
from .targets import TritonTarget, target_named


def compile_options(kernel: TritonKernel, target: TritonTarget) -> dict[str, Any]:
    """Options of Triton's compiler for a kernel."""
    return {"num_warps": kernel.num_warps, "num_stages": kernel.num_stages, **target.options}


def compile_kernel(kernel: TritonKernel, target: str, wide_index: bool = False) -> Any:
    """Triton's compiled kernel for "cuda:90", "hip:gfx942", ...; `.asm` has every stage down to cubin or hsaco.

    wide_index: compile for buffers that need 64-bit offsets, where the kernel leaves that open
    """
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    gpu = target_named(target)
    constants: dict[str, Any] = dict(kernel.constexprs)
    if kernel.chooses_index:
        constants["INDEX"] = tl.int64 if wide_index else tl.int32
    source = ASTSource(load_functions([kernel])[0], dict(kernel.signature), constants)
    return triton.compile(
        source,
        target=GPUTarget(gpu.backend, gpu.arch, gpu.warp_size),
        options=compile_options(kernel, gpu),
    )
