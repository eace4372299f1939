"""`--verify-diagnostics`: `// expected-error {{text}}` in a file, on the error's line or `@above` / `@below` it."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence

from ..errors import InductileError

_EXPECTED = re.compile(r"//\s*expected-error\s*(?:@(above|below|unknown|[+-]\d+))?\s*\{\{(.*?)\}\}")
_LINE = re.compile(r":(\d+):\d+: error: ")


def expectations(text: str) -> list[tuple[int | None, str]]:
    """(line from 1 or None for any line, text) of each expected error."""
    found: list[tuple[int | None, str]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        for match in _EXPECTED.finditer(line):
            place = match.group(1)
            shift = {None: 0, "above": -1, "below": 1}.get(place)
            if shift is None and place != "unknown":
                shift = int(place)
            found.append((None if shift is None else number + shift, match.group(2)))
    return found


def check_diagnostics(parts: Sequence[tuple[str, Callable[[], str]]], name: str) -> int:
    """Run each part; 0 when exactly the expected errors came, else print what differs and return 1."""
    wrong = 0
    for text, run in parts:
        expected = expectations(text)
        message = _error_of(run)
        if message is None:
            for _, wanted in expected:
                print(f"{name}: expected error was not produced: {wanted}", file=sys.stderr)
            wrong += len(expected)
            continue
        line = _LINE.search(message)
        at = int(line.group(1)) if line else None
        if not any(wanted in message and place in (None, at) for place, wanted in expected):
            print(f"{name}: unexpected error: {message}", file=sys.stderr)
            wrong += 1
    return int(wrong > 0)


def _error_of(run: Callable[[], str]) -> str | None:
    try:
        run()
    except InductileError as error:
        return str(error)
    return None
