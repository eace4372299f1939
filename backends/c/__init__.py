"""Plain C11 source from kernels, for one thread: a whole code generator on top of `c_like`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ..config import Config
    from ..host.launchers import Launcher


def emit_source(module: ModuleOp) -> str:
    """The C of the kernels of a module that are scheduled for it, support code first."""
    from ..c_like.generator import source_of
    from .language import C

    return source_of(module, C)


def make_launcher(config: Config | None = None, checked: bool = False) -> Launcher:
    """A launcher for the kernels of one program."""
    from ..c_like.generator import launcher_of
    from .language import C

    return launcher_of(C, config, checked)
