"""The part of a table that a commit runs."""

from __future__ import annotations

import pytest

from .rotation import part, part_of


def test_every_row_has_its_commit() -> None:
    rows = list(range(7))
    parts = [part_of(str(k), rows, 2) for k in range(30)]
    assert all(len(part) == 4 and part == sorted(part) for part in parts)
    assert part_of("a", rows, 2) == part_of("a", rows, 2)
    assert {row for part in parts for row in part} == set(rows)


def test_the_whole_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDUCTILE_WHOLE", "1")
    assert part(range(7), 3) == list(range(7))
