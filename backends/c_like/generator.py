"""A code generator from a language: source of a module, and a launcher of its kernels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from ...dialects import kernel
from ...passes.kernel.scheduled import family_of
from .emit import KernelSource, emit_kernel
from .language import Language
from .launch import CpuLauncher
from .library import source_text
from .loops import SerialLoops

if TYPE_CHECKING:
    from ..config import Config
    from ..host.launchers import Launcher


def _emit(language: Language, walk: type[SerialLoops], function: kernel.FuncOp, checked: bool) -> KernelSource:
    return emit_kernel(function, language, walk, checked)


def source_of(module: ModuleOp, language: Language, walk: type[SerialLoops] = SerialLoops) -> str:
    """The text of the kernels of a module that are not scheduled for another generator, support code first."""
    kernels = [op for op in module.ops if isinstance(op, kernel.FuncOp)]
    functions = [each for each in kernels if (f := family_of(each)) is None or f.generator == language.name]
    sources = [emit_kernel(function, language, walk) for function in functions]
    return source_text(sources) if sources else language.prelude.text(())


def launcher_of(
    language: Language, config: Config | None, checked: bool, walk: type[SerialLoops] = SerialLoops
) -> Launcher:
    """A launcher for the kernels of one program; `checked` kernels check what they do."""
    emit = partial(_emit, language, walk)
    if config is None:
        return CpuLauncher(language, emit, checked=checked)
    return CpuLauncher(language, emit, config.compile_threads, config.cache, checked)
