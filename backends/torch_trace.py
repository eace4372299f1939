"""`TORCH_TRACE=DIR`: records of ours in torch's structured trace, which tlparse shows. And torch's counters and times.

Uses `torch._logging._internal.trace_structured`, the logger behind it, and `counters`, `dynamo_timed` and
`compilation_time_metrics` of `torch._dynamo.utils`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch._dynamo import utils
from torch._logging._internal import trace_structured

from .graph_report import GraphReport

NAME = "inductile"


def is_traced() -> bool:
    """Whether records go anywhere."""
    return bool(logging.getLogger("torch.__trace").handlers)


def record(name: str, metadata: Mapping[str, Any], payload: Any) -> None:
    """One record: text, or what JSON can say."""
    trace_structured(name, lambda: dict(metadata), payload_fn=lambda: payload, expect_trace_id=False)


def record_artifact(name: str, payload: Any) -> None:
    """A record that tlparse lists under its name."""
    encoding = "string" if isinstance(payload, str) else "json"
    record("artifact", {"name": f"{NAME}_{name}", "encoding": encoding}, payload)


def record_link(name: str, page: Path) -> None:
    """A record that tlparse lists as a link to a file."""
    trace_structured("link", lambda: {"name": f"{NAME}_{name}", "url": page.absolute().as_uri()}, expect_trace_id=False)


@contextmanager
def timed(kind: str) -> Iterator[None]:
    """The compile of a graph, among torch's times and events."""
    with utils.dynamo_timed(f"{NAME}.{kind}"):
        yield


def phase_of(stage: str) -> str:
    """The phase of a stage of a report: the level of a pass, or the stage itself."""
    level, dash, _ = stage.partition("-")
    return level if dash and level in ("graph", "lower", "loop", "kernel", "host") else stage.replace(" ", "_")


def count(report: GraphReport) -> None:
    """Add a graph to `torch._dynamo.utils.counters["inductile"]` and its phases to `compile_times()`."""
    counters = utils.counters[NAME]
    found = {
        "graphs": 1,
        f"{report.kind}_graphs": 1,
        "kernels": len(report.kernels),
        "launches": sum(report.kernels.values()),
        "aten_calls": sum(report.aten_calls.values()),
        **{f"aten_calls: {name}": number for name, number in report.aten_calls.items()},
        "passes_left_out": len(report.failures),
    }
    for name, number in found.items():
        counters[name] += number
    for phase, seconds in phases(report).items():
        utils.compilation_time_metrics.setdefault(f"{NAME}.{phase}", []).append(seconds)


def phases(report: GraphReport) -> dict[str, float]:
    """Seconds of each phase."""
    found: dict[str, float] = {}
    for stage, seconds in report.seconds.items():
        found[phase_of(stage)] = found.get(phase_of(stage), 0.0) + seconds
    return found


def count_eager() -> None:
    """Count a graph that torch runs, op by op."""
    utils.counters[NAME]["graphs_in_eager"] += 1
