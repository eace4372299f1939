"""Memory that a call takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.profiler import ProfilerActivity, profile


def peak_bytes(call: Callable[[], Any]) -> int:
    """The most bytes that were allocated at once during a call, and not before it, from the profiler's events."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    live = peak = 0
    for event in profiler.profiler.kineto_results.events():  # pyright: ignore
        if event.name() == "[memory]":
            live += event.nbytes()  # pyright: ignore[reportAttributeAccessIssue]
            peak = max(peak, live)
    return peak
