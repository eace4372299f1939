"""Frames of allocations in the second text of a program, by which snapshots of memory name buffers."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
import torch

import inductile
from inductile.backends import runnable
from inductile.backends.host import HostProgram, program, runtime


def scores(x: torch.Tensor) -> torch.Tensor:
    ordered = torch.sort(torch.relu(x * 2), -1).values
    return ordered.softmax(-1) @ x


FIRST = scores.__code__.co_firstlineno


def _frames() -> list[tuple[str, int, str]]:
    """(file, line, function) from the inside."""
    frame: FrameType | None = sys._getframe(2)
    found = []
    while frame is not None:
        found.append((frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name))
        frame = frame.f_back
    return found


@pytest.fixture
def allocated(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[str, int, str]]]:
    """The frames of each allocation, as if this CPU's memory had a history."""
    found: list[list[tuple[str, int, str]]] = []
    real = runtime.empty_cpu

    def empty(*arguments: Any) -> torch.Tensor:
        found.append(_frames())
        return real(*arguments)

    monkeypatch.setattr(runtime, "empty_cpu", empty)
    monkeypatch.setattr(program, "is_gpu", lambda _: True)
    monkeypatch.setattr(runnable, "is_recorded", lambda: True)
    torch.compiler.reset()
    return found


def test_a_buffer_has_a_frame_with_its_kernel_and_line(allocated: list[list[tuple[str, int, str]]]) -> None:
    x = torch.randn(32, 32)
    run = torch.compile(scores, backend=inductile.backend(memory_pool=False, cache_graphs=False))
    torch.testing.assert_close(run(x), scores(x))
    first, *_ = allocated
    assert [name for _, _, name in first[:4]] == ["<lambda>", "relu for mul_compare_where_0", "at", "run_recorded"]
    assert first[0][0].startswith("<inductile program ") and first[0][0].endswith(", recorded>")
    assert first[1][:2] == (__file__, FIRST + 1), "the user's line"
    assert any(name == "test_a_buffer_has_a_frame_with_its_kernel_and_line" for *_, name in first), "who called it"


def test_without_a_history_the_first_text_runs(
    allocated: list[list[tuple[str, int, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runnable, "is_recorded", lambda: False)
    x = torch.randn(32, 32)
    torch.compile(scores, backend=inductile.backend(memory_pool=False, cache_graphs=False))(x)
    assert allocated and all(each[0][2] == "run" for each in allocated)


def test_every_allocation_is_in_a_frame(allocated: list[list[tuple[str, int, str]]]) -> None:
    """Also calls of ATen with several results, symbols, and memory that is taken over."""
    programs: list[HostProgram] = []
    real = HostProgram.run_recorded

    def noted(self: HostProgram) -> Any:
        programs.append(self)
        return real(self)

    def many(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        values, places = torch.topk(x.exp(), 3, -1)
        return values + 1, places, (x @ x.t()).softmax(-1) + x.sum(), *torch.unbind(x * 2)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HostProgram, "run_recorded", noted)
        run = torch.compile(many, backend=inductile.backend(cache_graphs=False), dynamic=True)
        for rows in (4, 7):
            x = torch.randn(rows, 8)
            torch.testing.assert_close(run(x), many(x))
    source = programs[-1].source
    text = source[source.index("def run(") :].splitlines()  # behind what is computed once for these sizes
    recorded = programs[-1].recorded.splitlines()
    assert len(text) == len(recorded), "lines are the same"
    changed = [after for before, after in zip(text, recorded, strict=True) if before != after][1:]
    assert any("at('aten.topk', " in line and line.lstrip().startswith("t") for line in changed), recorded
    assert all(f", {__file__!r}, " in line for line in changed)
    assert all("at(" in line for line in recorded if " = empty(" in line or " = call" in line)
