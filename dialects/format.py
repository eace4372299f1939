"""The version of the text of IR: files that tools write say it in their first lines, and whatever reads IR looks.

    // inductile format: 1

It is a comment, so that other tools that read MLIR's syntax pass over it. Text without the line is of this version:
what people type, and tests. The number grows when text that was valid before would be refused now, or mean something
else; ops, attributes and passes that are added need no new number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ..errors import UserError

#: the version that is written and read
FORMAT = 1
#: line that says the version, and its beginning
PREFIX = "// inductile format: "
HEADER = f"{PREFIX}{FORMAT}"
#: how a line of the table of locations begins, which ends a file
NAMED_LOCATION = re.compile(r"#loc[0-9]*+ = loc\(")
#: version -> what makes text of the next version of it, line by line, so that messages name lines of the file. A
#: version that is missing is refused
UPGRADES: Mapping[int, Callable[[str], str]] = {}

#: comments and empty lines in front of everything else
_PREAMBLE = re.compile(r"(?:[ \t]*+(?://[^\n]*+)?+\n)*+")
_VERSION = re.compile(rf"^{PREFIX}([^\n]*)$", re.MULTILINE)


def format_of(text: str, name: str = "<unknown>") -> int:
    """The version that the first comments of a text say; `FORMAT` where they say none.

    UserError for one that is no number.
    """
    preamble = _PREAMBLE.match(text)
    found = _VERSION.search(text, 0, preamble.end() if preamble is not None else 0)
    if found is None:
        return FORMAT
    word = found[1].strip()
    if not (word.isascii() and word.isdigit() and len(word) < 10):
        raise UserError(f"{name}: error: {word!r} is no version of the format of IR", f"write `{HEADER}`, or nothing")
    return int(word)


def upgraded(text: str, name: str = "<unknown>") -> str:
    """Text of this version for text of this or an earlier one. UserError for a version that is not read."""
    version = format_of(text, name)
    if version > FORMAT:
        problem = f"{name}: error: the file has format {version}, and this version of inductile reads {FORMAT}"
        raise UserError(problem, "read it with the inductile that wrote it, or a newer one")
    while version < FORMAT:
        upgrade = UPGRADES.get(version)
        if upgrade is None:
            problem = f"{name}: error: the file has format {version}, which is no longer read"
            raise UserError(problem, f"write it again with this version of inductile, which writes format {FORMAT}")
        text, version = upgrade(text), version + 1
    return text


__all__ = ["FORMAT", "HEADER", "PREFIX", "UPGRADES", "format_of", "upgraded"]
