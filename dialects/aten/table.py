"""The table of schemas, read at the first question and parsed line by line on demand."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .schema import Schema, parse_schema

TABLE = Path(__file__).with_name("schemas.txt")


@cache
def _lines() -> list[str]:
    """The lines, as the file has them: in order."""
    return [line for line in TABLE.read_text(encoding="utf-8").split("\n") if line and not line.startswith("#")]


def _lines_from(text: str) -> Iterator[str]:
    """The lines that begin with a text: a graph asks for some thirty of thousands."""
    lines = _lines()
    for place in range(bisect_left(lines, text), len(lines)):
        if not lines[place].startswith(text):
            return
        yield lines[place]


def schema_of(name: str) -> Schema | None:
    """The schema of an overload such as `slice.Tensor`; None when the table has no such line."""
    line = None if "(" in name else next(_lines_from(f"{name}("), None)
    return None if line is None else _parse(line)


@cache
def _parse(line: str) -> Schema:
    return parse_schema(line)


def overload_names() -> Iterator[str]:
    """Names of all overloads of the table, `slice.Tensor`, without `.default`."""
    return (line.partition("(")[0] for line in _lines())


def overloads_of(packet: str) -> Iterator[str]:
    """Names of the overloads of a packet such as `slice`."""
    return (line.partition("(")[0] for end in "(." for line in _lines_from(f"{packet}{end}"))
