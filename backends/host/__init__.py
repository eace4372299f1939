"""Host programs: the Python around the kernels, as an executable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .executable import HostProgram

if TYPE_CHECKING:
    from .program import build

__all__ = ["HostProgram", "build"]


def __getattr__(name: str) -> Any:
    """`build`, which loads the emitters, on first use: programs from the cache run without them."""
    if name != "build":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .program import build

    return build
