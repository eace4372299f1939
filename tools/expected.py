"""`--verify-diagnostics`: `// expected-error {{text}}` in a file, on the error's line or `@above`, `@below`, `@+2`.

`expected-remark` likewise, for remarks of passes. Every expected diagnostic has to come, and every error has to be
expected; other remarks are left alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

from ..errors import InductileError
from ..passes.remarks import Remark, collecting
from ..records import dataclass
from .source import Source

_EXPECTED = re.compile(r"//\s*expected-(error|remark)\s*(?:@\s*(above|below|unknown|[+-]\d+))?\s*\{\{(.*?)\}\}")
_ERROR = re.compile(r":(\d+):\d+: error: ")
_SHIFTS = {"": 0, "above": -1, "below": 1}


@dataclass(frozen=True)
class Diagnostic:
    """An error or a remark; `line` from 1, None for a place that is unknown (or, expected, for any)."""

    kind: str
    line: int | None
    text: str

    def matches(self, came: Diagnostic) -> bool:
        """Whether this expectation fits what came."""
        return self.kind == came.kind and self.text in came.text and self.line in (None, came.line)

    def __str__(self) -> str:
        return f"{self.kind} at line {self.line}: {self.text}" if self.line else f"{self.kind}: {self.text}"


def expectations(source: Source) -> list[Diagnostic]:
    """What the comments of a file, or a part of one, announce."""
    found: list[Diagnostic] = []
    for number, line in enumerate(source.text.splitlines(), start=source.first_line + 1):
        for kind, place, text in _EXPECTED.findall(line):
            at = None if place == "unknown" else number + (_SHIFTS[place] if place in _SHIFTS else int(place))
            found.append(Diagnostic(kind, at, text))
    return found


def check_diagnostics(parts: Sequence[tuple[Source, Callable[[], object]]]) -> int:
    """Run each part; 0 when exactly the expected diagnostics came, else print what differs and return 1."""
    wrong = 0
    for source, run in parts:
        expected = expectations(source)
        came = _diagnostics(source, run)
        missing = [e for e in expected if not any(e.matches(c) for c in came)]
        surplus = [c for c in came if c.kind == "error" and not any(e.matches(c) for e in expected)]
        for diagnostic in missing:
            print(f"{source.name}: expected, but did not come: {diagnostic}", file=sys.stderr)
        for diagnostic in surplus:
            print(f"{source.name}: came unexpected: {diagnostic}", file=sys.stderr)
        wrong += len(missing) + len(surplus)
    return int(wrong > 0)


def _diagnostics(source: Source, run: Callable[[], object]) -> list[Diagnostic]:
    came: list[Diagnostic] = []
    with collecting() as remarks:
        try:
            run()
        except InductileError as error:
            message = str(error)
            line = _ERROR.search(message)
            came.append(Diagnostic("error", int(line.group(1)) if line else None, message))
    return came + [_remark(source, remark) for remark in remarks]


def _remark(source: Source, remark: Remark) -> Diagnostic:
    file, _, line = remark.location.rpartition(":")
    return Diagnostic("remark", int(line) if file == source.name else None, str(remark))
