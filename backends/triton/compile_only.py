"""Compiling kernels for a GPU that need not be there: Triton carries its own assembler."""

from __future__ import annotations

import dataclasses
from typing import Any

from .kernel import TritonKernel
from .loading import load_functions
from .targets import triton_target
from .variants import compile_variant, likely_variant


def compile_kernel(kernel: TritonKernel, target: str, wide_index: bool = False) -> Any:
    """Triton's compiled kernel for "cuda:90", "hip:gfx942", ...; `.asm` has every stage down to cubin or hsaco.

    It is the variant that a program compiles when it is loaded. wide_index: compile for buffers that need 64-bit
    offsets, where the kernel leaves that open
    """
    variant = dataclasses.replace(likely_variant(kernel), wide=wide_index)
    return compile_variant(kernel, load_functions([kernel])[0], triton_target(target), variant)
