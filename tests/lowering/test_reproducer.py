"""Where reproducers go whose path nobody said."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from inductile.lowering.reproducer import store_reproducer


def _stored() -> Path:
    return Path(store_reproducer(None, "builtin.module {}", [], ValueError("broken")))


def test_they_are_kept_for_a_week_in_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path / "cache"))
    old, young = _stored(), _stored()
    mine = old.parent / "mine.mlir"
    mine.touch()
    assert old.parent == tmp_path / "cache" / "reproducers"
    for path, days in ((old, 8), (young, 6), (mine, 8)):
        os.utime(path, (0, time.time() - days * 24 * 60 * 60))
    newest = _stored()
    assert set(old.parent.iterdir()) == {young, newest, mine}


def test_where_the_cache_takes_none_they_are_temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    path = _stored()
    assert path.parent == tmp_path and "error: broken" in path.read_text()
