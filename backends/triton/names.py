"""Identifiers and comments of generated Python. Text from an IR file ends up here and nowhere else as text."""

from __future__ import annotations

import builtins
import keyword
import re

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
    return "# " + "".join(c if c.isprintable() else " " for c in text)


class Names:
    """Hands out identifiers, each once."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """`hint` as an identifier, with a number where it is taken."""
        base = identifier(hint)
        name = base
        while name in self._used:
            self._used[base] += 1
            name = f"{base}_{self._used[base]}"
        self._used[name] = 0
        return name
