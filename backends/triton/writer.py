"""Indented lines of Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines at a current depth."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 1
        self._comment = ""

    def line(self, text: str) -> None:
        """Add one line at the current depth."""
        if self._comment:
            self.lines.append("    " * self._depth + self._comment)
            self._comment = ""
        self.lines.append("    " * self._depth + text)

    def comment(self, text: str) -> None:
        """Put a comment above the next line; one that nothing follows is replaced."""
        self._comment = text

    @contextmanager
    def indented(self) -> Iterator[None]:
        """Lines inside are one level deeper."""
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1

    @contextmanager
    def apart(self) -> Iterator[list[str]]:
        """Lines inside go into a list of their own; `extend` adds them, for what has to stand before them."""
        outer, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = outer

    def extend(self, lines: list[str]) -> None:
        """Add lines that carry their indentation already."""
        self.lines.extend(lines)
