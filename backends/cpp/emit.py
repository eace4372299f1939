"""One `kernel.func` to one C++ function."""

from __future__ import annotations

from ...dialects import kernel
from ..c_like.emit import KernelSource
from ..c_like.emit import emit_kernel as emit_like_c
from .language import CPP
from .loops import LoopEmitter


def emit_kernel(function: kernel.FuncOp, checked: bool = False) -> KernelSource:
    """Write a kernel in C++; see `c_like.emit`."""
    return emit_like_c(function, CPP, LoopEmitter, checked)
