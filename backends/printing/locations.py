"""The user's lines, for comments."""

from __future__ import annotations

from functools import lru_cache
from pathlib import PurePosixPath

from xdsl.dialects.builtin import FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute


def source_lines(location: Attribute, parts: int = 1) -> list[str]:
    """`file:line` of a location, several for a fused one, each once; none when it is unknown.

    parts: how many parts of the path are shown: a folder tells files of one name apart
    """
    if isinstance(location, FileLineColLoc):
        return [f"{_end_of_path(location.filename.data, parts)}:{location.line.data}"]
    if isinstance(location, NameLoc):
        return [location.desc.data]
    if isinstance(location, FusedLoc):
        found = (line for each in location.locations.data for line in source_lines(each, parts))  # pyright: ignore
        return list(dict.fromkeys(found))
    return []


@lru_cache(maxsize=1024)
def _end_of_path(path: str, parts: int) -> str:
    return "/".join(PurePosixPath(path).parts[-parts:])


def one_line(text: str) -> str:
    """Text that stays inside one comment line, whatever it contains."""
    return "".join(c if c.isprintable() else " " for c in text)
