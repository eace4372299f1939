"""Snapshots of torch's allocator name what compiled programs allocate: buffer, kernel, the user's line."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any, Literal

import pytest
import torch

pytestmark = pytest.mark.gpu


def scores(x: torch.Tensor) -> torch.Tensor:
    ordered = torch.sort(torch.relu(x * 2), -1).values
    return ordered.softmax(-1) @ x


def test_a_history_changes_no_answer_and_ends() -> None:
    """Dynamic sizes, training, and calls behind the history, which run the ordinary text again."""
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.LayerNorm(64)).cuda()
    run = torch.compile(model, backend="inductile", dynamic=True)
    histories: list[Literal["all"] | None] = [None, "all", "all", None]
    for rows, history in zip((8, 16, 24, 32), histories, strict=True):
        torch.cuda.memory._record_memory_history(enabled=history)
        x = torch.randn(rows, 64, device="cuda")
        got = torch.autograd.grad(run(x).sin().sum(), tuple(model.parameters()))
        expected = torch.autograd.grad(model(x).sin().sum(), tuple(model.parameters()))
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-3)
    torch.cuda.memory._record_memory_history(enabled=None)


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
    named: list[dict[str, Any]] = []
    for entry in entries:
        files = [frame["filename"] for frame in entry["frames"]]
        ours = [frame for frame in entry["frames"] if frame["filename"].startswith("<inductile program ")]
        assert ours and ours[0]["name"] == "<lambda>" and ours[-1]["name"] == "run_recorded", files
        callers = [frame["name"] for frame in entry["frames"]]
        assert "test_allocations_have_the_frames_of_the_program" in callers, "who called it is there too"
        named.append(entry["frames"][entry["frames"].index(ours[0]) + 1])
        lines.append(linecache.getline(ours[0]["filename"], ours[0]["line"]).strip())
    print("\n".join(f"{entry['size']:>10}  {line}" for entry, line in zip(entries, lines, strict=True)))
    assert all(lines), "the line of the program can be looked up in this process"
    assert any("empty" in line for line in lines) and any("call" in line for line in lines)
    print("\n".join(f"{Path(each['filename']).name}:{each['line']} {each['name']}" for each in named))
    first = scores.__code__.co_firstlineno
    assert all(Path(each["filename"]).name == Path(__file__).name for each in named), named
    assert {each["line"] for each in named} <= {first + 1, first + 2}, "lines are the user's"
    assert any(each["name"] == "aten.sort" and each["line"] == first + 1 for each in named), named
    assert any(" for " in each["name"] for each in named), "a buffer is named with its kernel"
    alive = [block for segment in snapshot["segments"] for block in segment["blocks"] if block.get("frames")]
    assert any(frame["filename"].startswith("<inductile program ") for block in alive for frame in block["frames"])
