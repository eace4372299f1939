"""The part of a table that a commit runs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from . import rotation
from .rotation import part, part_of, rotated


def test_every_row_has_its_commit() -> None:
    rows = list(range(7))
    parts = [part_of(str(k), rows, 2) for k in range(30)]
    assert all(len(part) == 4 and part == sorted(part) for part in parts)
    assert part_of("a", rows, 2) == part_of("a", rows, 2)
    assert {row for part in parts for row in part} == set(rows)


def test_the_whole_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDUCTILE_WHOLE", "1")
    assert part(range(7), 3) == list(range(7))


class Item:
    """As much of pytest's as rotation reads."""

    def __init__(self, nodeid: str, mark: Any = None, **params: object) -> None:
        self.nodeid, self.mark, self.callspec = nodeid, mark, SimpleNamespace(params=params)

    def get_closest_marker(self, name: str) -> Any:
        return self.mark if name == "rotates" else None


def _items() -> list[Any]:
    """Seven parameters of a marked test, and what stays whole."""
    mark = pytest.mark.rotates(3).mark
    table = [Item(f"a.py::f[{k}]", mark) for k in range(7)]
    return [*table, Item("a.py::g", mark), *(Item(f"a.py::h[{k}]") for k in range(4))]


def _config(keyword: str = "", *args: str) -> Any:
    return SimpleNamespace(getoption={"keyword": keyword}.get, args=args)


def test_parameters_of_a_marked_test_rotate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INDUCTILE_WHOLE", raising=False)
    items = _items()
    seen: set[str] = set()
    for k in range(30):
        monkeypatch.setattr(rotation, "commit", lambda k=k: str(k))
        kept = [item.nodeid for item in rotated(_config("", "tests"), items)]
        assert len(kept) == 3 + 1 + 4
        assert kept[3:] == ["a.py::g", *(f"a.py::h[{j}]" for j in range(4))]
        seen.update(kept)
    assert seen == {item.nodeid for item in items}


def test_what_is_named_does_not_rotate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INDUCTILE_WHOLE", raising=False)
    items = _items()
    assert rotated(_config("f"), items) == rotated(_config("", "a.py::f"), items) == items
    monkeypatch.setenv("INDUCTILE_WHOLE", "1")
    assert rotated(_config(), items) == items


def test_each_value_of_a_parameter_keeps_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("INDUCTILE_WHOLE", raising=False)
    mark = pytest.mark.rotates(2, each="case").mark
    items: list[Any] = [
        Item(f"a.py::f[{case}-{mode}]", mark, case=case, mode=mode) for case in range(9) for mode in (0, 1)
    ]
    kept: list[Any] = rotated(_config(), items)
    assert [item.callspec.params["case"] for item in kept] == list(range(9))
    assert {item.callspec.params["mode"] for item in kept} == {0, 1}


class TestOfRealRows:
    """What pytest itself makes of a decorated test."""

    @pytest.mark.rotates(2, each="case")
    @pytest.mark.parametrize("mode", [False, True])
    @pytest.mark.parametrize("case", [object(), object(), object()], ids=["a", "b", "c"])
    def test_row(self, case: object, mode: bool, request: pytest.FixtureRequest) -> None:
        del case, mode
        name = request.node.nodeid.partition("[")[0]
        rows: list[Any] = [item for item in request.session.items if item.nodeid.startswith(f"{name}[")]
        config = _config("", "tests")
        kept: list[Any] = rotated(config, rows)
        if len(rows) == 6:  # the test was named
            assert len(kept) == (6 if rotation.is_whole() else 3)
        assert len({id(item.callspec.params["case"]) for item in kept}) == 3
