"""How far measuring is, on stderr."""

from __future__ import annotations

import sys
import time

#: seconds that nobody needs to be told of where stderr is no terminal, and between two lines then
_QUIET = 2.0
_WIDTH = 30


class Progress:
    """A bar on a terminal; elsewhere a line at most every two seconds, so that short work says nothing."""

    def __init__(self, title: str, total: int) -> None:
        self.title, self.total, self.done = title, total, 0
        self._is_terminal = sys.stderr.isatty()
        self._last = time.monotonic()

    def step(self, what: str) -> None:
        """One more is done."""
        self.done += 1
        if self._is_terminal:
            filled = _WIDTH * self.done // max(self.total, 1)
            bar = "█" * filled + " " * (_WIDTH - filled)
            sys.stderr.write(f"\r{self.title} |{bar}| {self.done}/{self.total} {what[:40]:40s}")
            sys.stderr.flush()
        elif time.monotonic() - self._last >= _QUIET:
            self._last = time.monotonic()
            print(f"{self.title}: {self.done}/{self.total} {what}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the bar."""
        if self._is_terminal and self.done:
            sys.stderr.write("\n")
            sys.stderr.flush()
