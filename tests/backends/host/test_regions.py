"""Regions in profiles: calls of graphs and launches, with the user's lines; nothing while nobody profiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from inductile.backends.config import Config
from inductile.backends.graphs import private
from inductile.backends.graphs.recording import Recorded


def compiled(**options: Any) -> tuple[Callable[..., Any], torch.Tensor]:
    torch._dynamo.reset()

    def two_sums(x: torch.Tensor) -> Any:
        rows = x.sum(1)
        return rows, (x * 2).sum(0)

    run, x = torch.compile(two_sums, backend="inductile", options=options), torch.randn(300, 200)
    for got, expected in zip(run(x), two_sums(x), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    return run, x


def profiled(run: Callable[..., Any], *args: Any) -> list[str]:
    with profile(activities=[ProfilerActivity.CPU]) as found:
        run(*args)
    return [event.key for event in found.key_averages()]


def test_a_profile_shows_the_graph_and_each_kernel_with_its_line() -> None:
    run, x = compiled()
    names = profiled(run, x)
    (graph,) = [name for name in names if name.startswith("inductile inference")]
    assert "test_regions.py:" in graph
    kernels = [name for name in names if name.startswith("sum_") and "test_regions.py:" in name]
    assert len(kernels) >= 2
    assert profiled(run, x)  # and again, with the text that is there
    torch.testing.assert_close(run(x)[0], x.sum(1), rtol=1e-4, atol=1e-4)


def test_training_shows_forward_and_backward() -> None:
    torch._dynamo.reset()
    run = torch.compile(lambda x: (x.sin() * 2).sum(), backend="inductile")
    x = torch.randn(100, requires_grad=True)
    run(x).backward()
    names = profiled(lambda: run(x).backward())
    for kind in ("forward", "backward"):
        assert any(name.startswith(f"inductile {kind}") for name in names)


def test_ranges_of_nvtx_where_the_option_asks_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    ranges: list[str] = []
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", ranges.append)
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: ranges.append("end"))
    run, x = compiled()
    run(x)
    assert not ranges
    run, x = compiled(nvtx=True)
    ranges.clear()
    run(x)
    assert ranges[0].startswith("inductile inference") and ranges[1].startswith("sum_")
    assert ranges.count("end") * 2 == len(ranges) and ranges[-2:] == ["end", "end"]


def test_a_replay_is_a_region(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "record_in_tree", lambda model, inputs, static, **facts: model)
    recorded = Recorded(lambda args: args, (), {}, Config(cudagraphs=True))
    assert "inductile part, recorded" in profiled(recorded, [torch.ones(1)])
