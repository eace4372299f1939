"""The table of schemas, read at the first question and parsed line by line on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .schema import Schema, parse_schema

_LINE = re.compile(r"^(([^#(\n][^(\n]*)\(.*)$", re.MULTILINE)
TABLE = Path(__file__).with_name("schemas.txt")


@cache
def _lines() -> dict[str, str]:
    """Lines by the overload's name, `slice.Tensor`, without `.default`."""
    return {name: line for line, name in _LINE.findall(_text())}


@cache
def _text() -> str:
    return f"\n{TABLE.read_text(encoding='utf-8')}\n"


def schema_of(name: str) -> Schema | None:
    """The schema of an overload such as `slice.Tensor`; None when the table has no such line."""
    text = _text()  # a graph asks for some thirty of its thousands of lines
    begin = text.find(f"\n{name}(") + 1
    return _parse(text[begin : text.find("\n", begin)]) if begin and "(" not in name else None


@cache
def _parse(line: str) -> Schema:
    return parse_schema(line)


def overload_names() -> Iterator[str]:
    """Names of all overloads of the table, `slice.Tensor`."""
    return iter(_lines())
