"""Shared libraries of kernels in this process, each loaded once. Light to import, as `calls` is."""

from __future__ import annotations

import ctypes
from pathlib import Path

from .cache import drop_entry, find_entry

_LIBRARIES: dict[Path, ctypes.CDLL] = {}
CHECKED: set[Path] = set()
"""Files whose content this process has compared with their names."""


def address_in(path: Path, symbol: str) -> int:
    """The address of a C function in a file. OSError for no library, AttributeError for one without that function."""
    library = _LIBRARIES.get(path)
    if library is None:
        library = _LIBRARIES[path] = ctypes.CDLL(str(path))
    address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    assert address is not None
    return address


def find_kernel(folder: Path, key: str, symbol: str) -> tuple[Path, int] | None:
    """File and address of a kernel in the cache, None when it is not there.

    One that does not load, or is said to be another function than `symbol`, is damage: it is warned of and removed.
    """
    place = find_entry(folder, key, CHECKED)
    if place is None:
        return None
    path, found = place
    try:
        if found == symbol:
            return path, address_in(path, symbol)
        reason = f"it names {found!r} instead of {symbol!r}"
    except (OSError, AttributeError) as error:
        reason = f"{path.name} does not load: {error}"
    drop_entry(folder, key, reason)
    return None
