"""Compiling the kernels of several modules side by side, before any of them becomes a program."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp

from ...dialects import kernel
from ...passes.kernel.scheduled import family_of
from .bound import is_interpreting
from .compilers import SERVER
from .request import Request
from .source import emit
from .targets import triton_target
from .variants import likely_variant, request_of


def compile_ahead(modules: Sequence[ModuleOp], jobs: int = 0) -> None:
    """Let the compile server of this process compile all kernels, at most `jobs` at once, into Triton's cache.

    Programs that are made of the modules later find them there. Without a server they compile by themselves.
    """
    if is_interpreting() or not SERVER.is_running:
        return
    requests: list[Request] = []
    for module in modules:
        functions = {each.sym_name.data: each for each in module.ops if isinstance(each, kernel.FuncOp)}
        for source in emit(module):
            function = functions[source.name]
            family = family_of(function)
            if family is not None and family.generator == "triton" and function.target is not None:
                requests.append(request_of(source, triton_target(function.target.data), likely_variant(source)))
    SERVER.compile(requests, jobs)
