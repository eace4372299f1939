"""Long tables that repeat one mechanism: each commit runs a part of them, and in time all are run.

A table is the rows that `part` draws, or the parameters of a test marked `rotates(of)`; where the mark says
`each="case"`, those with which one value of that parameter meets. `INDUCTILE_WHOLE=1 make test` runs the whole tables;
tests that are named, by `::` or by `-k`, run whole too.
"""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")


@cache
def commit() -> str:
    """The commit of this tree; a fixed word where there is no repository."""
    command = ["git", "rev-parse", "HEAD"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    except OSError:
        return "none"
    return done.stdout.strip() if done.returncode == 0 else "none"


def part(rows: Sequence[T], of: int) -> list[T]:
    """One of `of` rows, in their order, drawn by the commit alone."""
    return list(rows) if is_whole() else part_of(commit(), rows, of)


def is_whole() -> bool:
    """Whether nothing rotates."""
    return os.environ.get("INDUCTILE_WHOLE", "0") not in ("", "0")


def part_of(commit: str, rows: Sequence[T], of: int) -> list[T]:
    """The rows that a commit takes."""
    taken = random.Random(commit).sample(range(len(rows)), -(-len(rows) // of))
    return [rows[k] for k in sorted(taken)]


def rotated(config: pytest.Config, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The tests without the parameters that other commits run."""
    if is_whole() or config.getoption("keyword") or any("::" in each for each in config.args):
        return list(items)
    tables: dict[tuple[str, int | None], list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("rotates") is not None:
            tables.setdefault(_table(item), []).append(item)
    others: set[pytest.Item] = set()
    for rows in tables.values():
        others.update(set(rows).difference(part_of(f"{commit()} {rows[0].nodeid}", rows, _marker(rows[0]).args[0])))
    return [item for item in items if item not in others]


def _marker(item: pytest.Item) -> pytest.Mark:
    marker = item.get_closest_marker("rotates")
    assert marker is not None
    return marker


def _table(item: pytest.Item) -> tuple[str, int | None]:
    """Of which table a test is a row: its name, and which object the parameter is that `each` names."""
    name = item.nodeid.partition("[")[0]
    each = _marker(item).kwargs.get("each")
    return name, None if each is None else id(vars(item)["callspec"].params[each])
