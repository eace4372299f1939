"""Triton source from kernels, compiled and launched.

Importing this package loads nothing: kernels import `prelude` from it, in processes that only compile.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .kernel import TritonKernel
    from .launch import make_launcher
    from .source import emit, emit_source, file_text

__all__ = ["TritonKernel", "emit", "emit_source", "file_text", "make_launcher"]

_LAZY = {
    "TritonKernel": ".kernel",
    "make_launcher": ".launch",
    **dict.fromkeys(("emit", "emit_source", "file_text"), ".source"),
}


def __getattr__(name: str) -> Any:
    """Load a public name on first use; raises `AttributeError` for any other."""
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LAZY[name], __name__), name)
