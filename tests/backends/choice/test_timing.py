"""What a GPU is measured with, on a device that only counts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from inductile.backends.choice import timing


class _Device:
    """Events of a device that takes no time; what is enqueued between them is written down."""

    class Event:
        def __init__(self, enable_timing: bool) -> None:
            assert enable_timing

        def record(self) -> None: ...

        def elapsed_time(self, _: Any) -> float:
            return 0.5

    def synchronize(self) -> None: ...


def test_a_slow_host_is_waited_for_by_more_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    flushes: dict[str, int] = {"fast": 0, "slow": 0}
    waiting, now = 0, 0.0

    class Flush:
        def zero_(self) -> None:
            nonlocal waiting
            waiting += 1

    def run(name: str, seconds: float) -> None:
        nonlocal waiting, now
        now += seconds
        flushes[name], waiting = max(flushes[name], waiting), 0

    monkeypatch.setattr(timing, "time", SimpleNamespace(perf_counter=lambda: now))
    monkeypatch.setattr(torch, "get_device_module", lambda _: _Device())
    monkeypatch.setattr(torch, "empty", lambda *_, **__: Flush())
    found = timing.microseconds({"fast": lambda: run("fast", 1e-5), "slow": lambda: run("slow", 0.001)}, "cuda")
    assert found == {"fast": 500.0, "slow": 500.0}
    assert flushes == {"fast": 2, "slow": 41}
