"""C++/OpenMP source from kernels, compiled and loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp


def emit_source(module: ModuleOp) -> str:
    """The C++ of the kernels of a module that are not scheduled for another generator, support code first."""
    from ...dialects import kernel
    from ...passes.kernel.scheduled import family_of
    from .emit import emit_kernel
    from .library import source_text

    kernels = [op for op in module.ops if isinstance(op, kernel.FuncOp)]
    functions = [each for each in kernels if (family := family_of(each)) is None or family.generator == "cpp"]
    return source_text([emit_kernel(function) for function in functions])
