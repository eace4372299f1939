"""Where a call on the CPU spends its time: in the libraries, in the operating system, by kernel and operator."""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

Run = Callable[[], Any]


def in_libraries(call: Run) -> dict[str, tuple[int, float]]:
    """Calls of oneDNN and MKL in one call, and their milliseconds, by kind and implementation."""
    mkldnn, mkl = torch.backends.mkldnn, torch.backends.mkl
    with tempfile.TemporaryFile("w+") as lines:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(lines.fileno(), 1)
        try:
            with mkldnn.verbose(mkldnn.VERBOSE_ON), mkl.verbose(mkl.VERBOSE_ON):
                call()
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        lines.seek(0)
        told = [spent for spent in map(_spent, lines) if spent is not None]
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for kind, took in told:
        found[kind] = found[kind][0] + 1, round(found[kind][1] + took, 4)
    return dict(found)


def in_system(call: Run) -> tuple[int, float]:
    """Page faults of a call, and its milliseconds in the operating system."""
    before = resource.getrusage(resource.RUSAGE_THREAD)
    call()
    behind = resource.getrusage(resource.RUSAGE_THREAD)
    return behind.ru_minflt - before.ru_minflt, round(1e3 * (behind.ru_stime - before.ru_stime), 2)


def _spent(line: str) -> tuple[str, float] | None:
    """What a line of a library's log names, and its milliseconds."""
    if line.startswith("MKL_VERBOSE ") and ") " in line and " CNR:" in line:
        routine, _, rest = line.removeprefix("MKL_VERBOSE ").partition("(")
        took = rest.partition(") ")[2].split()[0]
        number = float(took.rstrip("smunp"))
        return f"mkl {routine}", number * {"ms": 1, "us": 1e-3, "ns": 1e-6}.get(took.lstrip("0123456789.e+-"), 1e3)
    if ",exec," not in line:
        return None
    row = line.rstrip().split(",")
    kind = row.index("exec") + 2  # behind it the implementation, at the end of the line its milliseconds
    return " ".join(row[kind : kind + 2]), float(row[-1])


def by_name(call: Run, calls: int = 3, most: int = 40) -> dict[str, tuple[int, float]]:
    """Events of one call and their microseconds, by name; of several calls the least for each place in the order.

    Only the `most` longest ones are told. The profiler's own time is in them: some tenths of a microsecond an event.
    """
    best: dict[tuple[str, int], float] = {}
    for _ in range(calls):
        with profile(activities=[ProfilerActivity.CPU]) as profiler:
            call()
        seen: dict[str, int] = defaultdict(int)
        events: Any = profiler.events()
        for event in sorted(events, key=lambda each: each.time_range.start):
            place = event.name, seen[event.name]
            seen[event.name] += 1
            best[place] = min(best.get(place, float("inf")), event.self_cpu_time_total)
    found: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))
    for (name, _), took in best.items():
        found[name] = found[name][0] + 1, round(found[name][1] + took, 1)
    return dict(sorted(found.items(), key=lambda each: -each[1][1])[:most])
