"""Tests of other files may load plugins, with which no graph is cached."""

from __future__ import annotations

import pytest

from inductile.backends.graph_cache import identity


@pytest.fixture(autouse=True)
def _no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "added_groups", frozenset)
