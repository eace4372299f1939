"""Indented lines of C++."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class Writer:
    """Collects lines; blocks in braces indent by two spaces."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._depth = 0

    def line(self, text: str) -> None:
        """Add one line at the current depth."""
        self.lines.append("  " * self._depth + text)

    def pragma(self, text: str) -> None:
        """Add a `#pragma` line."""
        self.line(f"#pragma {text}")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Lines inside are in braces after `head`."""
        self.line(f"{head} {{" if head else "{")
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            self.line(tail)

    @contextmanager
    def apart(self, inner: int = 0) -> Iterator[list[str]]:
        """Lines inside go into a list of their own, indented `inner` levels deeper; `extend` adds them."""
        outer, self.lines = self.lines, []
        self._depth += inner
        try:
            yield self.lines
        finally:
            self._depth -= inner
            self.lines = outer

    def extend(self, lines: list[str]) -> None:
        """Add lines that carry their indentation already."""
        self.lines.extend(lines)
