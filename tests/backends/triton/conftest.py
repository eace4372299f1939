"""What runs in Triton's interpreter, which is slow: of each table, a quarter at each commit."""

from __future__ import annotations

import pytest


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.name.startswith("interpreted_"):
        item.add_marker(pytest.mark.rotates(6))
