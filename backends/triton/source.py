"""Source text of all kernels of a module."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ModuleOp

from ...dialects import kernel
from ...dialects.sym import Ranges
from ...passes.analysis.launch_facts import launch_ranges
from ...passes.kernel.scheduled import family_of
from .kernel import TritonKernel
from .kernel_emitter import emit_kernel

_IMPORTS = (
    ("libdevice.", "from triton.language.extra import libdevice"),
    ("prelude.", f"from {__package__} import prelude"),
    ("nvidia.", f"from {__package__} import nvidia"),
    ("special.", f"from {__package__} import special"),
)


def emit(module: ModuleOp) -> list[TritonKernel]:
    """The kernels of a module that are not scheduled for another generator, in order."""
    facts = launch_ranges(module)
    return [
        emit_kernel(op, facts.get(op.sym_name.data, Ranges()))
        for op in module.ops
        if isinstance(op, kernel.FuncOp) and not _is_for_another(op)
    ]


def _is_for_another(op: kernel.FuncOp) -> bool:
    family = family_of(op)
    return family is not None and family.triton is None


def file_text(kernels: Iterable[TritonKernel]) -> str:
    """A Python file with the kernels, which imports what they use."""
    bodies = [k.source for k in kernels]
    imports = ["import triton", "import triton.language as tl"]
    imports += [line for word, line in _IMPORTS if any(word in body for body in bodies)]
    return "\n\n\n".join(["\n".join(imports), *bodies]) + "\n"


def emit_source(module: ModuleOp) -> str:
    """Python text of the module's kernels."""
    return file_text(emit(module))
