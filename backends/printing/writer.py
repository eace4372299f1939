"""Indented lines of source text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines at a current depth."""

    def __init__(self, indent: str = "  ", depth: int = 0) -> None:
        self.lines: list[str] = []
        self._indent = indent
        self._depth = depth
        self._comment = ""

    def line(self, text: str) -> None:
        """Add one line at the current depth."""
        if self._comment:
            self.lines.append(self._indent * self._depth + self._comment)
            self._comment = ""
        self.lines.append(self._indent * self._depth + text)

    def comment(self, text: str) -> None:
        """Put a comment above the next line; one that nothing follows is replaced."""
        self._comment = text

    def pragma(self, text: str) -> None:
        """Add a `#pragma` line."""
        self.line(f"#pragma {text}")

    @contextmanager
    def indented(self, levels: int = 1) -> Iterator[None]:
        """Lines inside are one level deeper, or several."""
        self._depth += levels
        try:
            yield
        finally:
            self._depth -= levels

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Lines inside are in braces after `head`."""
        self.line(f"{head} {{" if head else "{")
        with self.indented():
            yield
        self.line(tail)

    @contextmanager
    def apart(self, inner: int = 0) -> Iterator[list[str]]:
        """Lines inside go into a list of their own, indented `inner` levels deeper.

        `extend` adds them, also for what has to stand before them.
        """
        outer, self.lines = self.lines, []
        try:
            with self.indented(inner):
                yield self.lines
        finally:
            self.lines = outer

    def extend(self, lines: list[str]) -> None:
        """Add lines that carry their indentation already."""
        self.lines.extend(lines)
