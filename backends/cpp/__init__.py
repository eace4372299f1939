"""C++/OpenMP source from kernels, compiled and loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def emit_source(module: ModuleOp, target: str = "cpp") -> str:
    """The C++ of all kernels of a module as one file, support code first."""
    from ...dialects import kernel
    from .emit import emit_kernel
    from .library import source_text

    functions = [op for op in module.ops if isinstance(op, kernel.FuncOp)]
    return source_text([emit_kernel(function) for function in functions])
