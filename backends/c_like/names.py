"""Identifiers of kernels."""

from __future__ import annotations

import re

from typing_extensions import override

from ..printing.names import Names
from .language import Language

KEYWORDS = frozenset({
    "asm", "auto", "bool", "break", "case", "char", "const", "continue", "default", "do", "double", "else", "enum",
    "extern", "false", "float", "for", "goto", "if", "inline", "int", "linux", "long", "main", "register", "restrict",
    "return", "short", "signed", "sizeof", "static", "struct", "switch", "true", "typedef", "typeof", "union", "unix",
    "unsigned", "void", "volatile", "while",
})  # fmt: skip
#: words that printers use for what no op names
_OWN = frozenset({"failed", "lane", "lanes", "begin", "end", "all_failed", "report"})
_MAX_NAME = 60
_SUFFIXES = ("_data", "_extent", "_memory", "_end")


class KernelNames(Names):
    """The identifiers of one kernel."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self.reserved = KEYWORDS | _OWN | language.keywords | language.prelude.reserved
        self._temporaries = 0

    @override
    def clean(self, text: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_]", "_", text)[:_MAX_NAME]
        name = re.sub(r"__+", "_", name)
        if not name or not name[0].isalpha():
            name = "v" + name
        if name.endswith(_SUFFIXES):  # names of checked kernels are made of others and these
            name += "_v"
        return name

    def temporary(self) -> str:
        """A fresh name of a scalar, numbered in program order."""
        while True:
            name = f"v{self._temporaries}"
            self._temporaries += 1
            if self.take(name):
                return name
