"""A code generator, `my-c`: plain C as inductile writes it, compiled for reading and debugging, not for speed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from inductile.backends.c.language import C
from inductile.backends.c_like.generator import launcher_of, source_of

_FLAGS = ("-Og", "-g", *(flag for flag in C.flags if flag != "-O3"))
READABLE = replace(C, name="my-c", title="C to read", ending="c", flags=_FLAGS)


def emit_source(module: Any) -> str:
    """The text of the kernels that are scheduled for it."""
    return f"/* written by my_pass */\n{source_of(module, READABLE)}"


def make_launcher(config: Any = None, checked: bool = False) -> Any:
    """What compiles kernels and writes the lines that launch them."""
    return launcher_of(READABLE, config, checked)
