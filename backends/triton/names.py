"""Identifiers and comments of generated Python."""

from __future__ import annotations

import builtins
import keyword
import re

from typing_extensions import override

from ..printing import names as printing
from ..printing.locations import one_line

_WORD = re.compile(r"[^A-Za-z0-9_]+")
#: names of modules that kernels use, and of the constant that holds the type of indices
_RESERVED = frozenset({"tl", "triton", "libdevice", "prelude", "special", "INDEX"})
_LONGEST = 40


def identifier(text: str) -> str:
    """A Python identifier made from any text, the text itself where it is one; never a keyword or a builtin."""
    name = _WORD.sub("_", text).strip("_")[:_LONGEST] or "v"
    if name[0].isdigit():
        name = f"v{name}"
    if keyword.iskeyword(name) or hasattr(builtins, name) or name in _RESERVED:
        name += "_"
    return name


def comment(text: str) -> str:
    """Text that stays inside one comment line, whatever it contains."""
    return f"# {one_line(text)}"


class Names(printing.Names):
    """The identifiers of one kernel."""

    first = 1

    @override
    def clean(self, text: str) -> str:
        return identifier(text)
