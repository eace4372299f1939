"""C++/OpenMP source from kernels, compiled and loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..config import Config
    from ..host.launchers import Launcher


def emit_source(module: ModuleOp) -> str:
    """The C++ of the kernels of a module that are not scheduled for another generator, support code first."""
    from ..c_like.generator import source_of
    from .language import CPP
    from .loops import LoopEmitter

    return source_of(module, CPP, LoopEmitter)


def make_launcher(config: Config | None = None, checked: bool = False) -> Launcher:
    """A launcher for the kernels of one program."""
    from ..c_like.generator import launcher_of
    from .language import CPP
    from .loops import LoopEmitter

    return launcher_of(CPP, config, checked, LoopEmitter)


def load() -> None:
    """Import what the two above need."""
    from ..c_like import generator  # noqa: F401
    from . import language, loops  # noqa: F401
