"""Snapshots of torch's allocator name what compiled programs allocate: the program and its line, and who called it."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest
import torch

pytestmark = pytest.mark.gpu


def scores(x: torch.Tensor) -> torch.Tensor:
    ordered = torch.sort(torch.relu(x * 2), -1).values
    return ordered.softmax(-1) @ x


def test_allocations_have_the_frames_of_the_program() -> None:
    x = torch.randn(256, 256, device="cuda")
    run = torch.compile(scores, backend="inductile")
    run(x)
    torch.cuda.synchronize()
    torch.cuda.memory._record_memory_history(max_entries=10_000, stacks="python")
    try:
        result = run(x)
        snapshot: Any = torch.cuda.memory._snapshot()
    finally:
        torch.cuda.memory._record_memory_history(enabled=None)
    torch.testing.assert_close(result, scores(x), rtol=1e-2, atol=1e-3)

    entries = [entry for trace in snapshot["device_traces"] for entry in trace if entry["action"] == "alloc"]
    assert entries, "something is allocated"
    lines: list[str] = []
    for entry in entries:
        files = [frame["filename"] for frame in entry["frames"]]
        ours = [frame for frame in entry["frames"] if frame["filename"].startswith("<inductile program ")]
        assert ours and ours[0]["name"] == "run", files
        assert any(Path(each).name == Path(__file__).name for each in files), "who called it is there too"
        lines.append(linecache.getline(ours[0]["filename"], ours[0]["line"]).strip())
    print("\n".join(f"{entry['size']:>10}  {line}" for entry, line in zip(entries, lines, strict=True)))
    assert all(lines), "the line of the program can be looked up in this process"
    assert any("empty" in line for line in lines) and any("call" in line for line in lines)
    alive = [block for segment in snapshot["segments"] for block in segment["blocks"] if block.get("frames")]
    assert any(frame["filename"].startswith("<inductile program ") for block in alive for frame in block["frames"])
