"""Torch's own switches show what inductile does: logs, the debug folder, structured traces, counters and times."""

from __future__ import annotations

import io
import json
import logging
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
from torch._dynamo.utils import compile_times, counters
from torch._logging import _internal as internal

import inductile
from inductile.backends import torch_logs

_PROGRAM = """
import logging, sys
import torch

def f(x, w):
    return torch.softmax((x @ w).relu(), -1) + 1

x, w = torch.randn(8, 64), torch.randn(64, 32)
with torch.no_grad():
    torch.compile(f, backend="inductile", options={"trace.graph_diagram": True})(x, w)
    torch.compile(f, backend="inductile")(x[:, :32], w[:32])
"""


@pytest.fixture(scope="module")
def switched_on(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder and the standard error of a process with all switches on."""
    folder = tmp_path_factory.mktemp("switches")
    names = "output_code,post_grad_graphs,perf_hints,recompiles,inductor,inductile.passes"
    switches = {
        "TORCH_LOGS": names, "TORCH_TRACE": "traced", "TORCH_COMPILE_DEBUG": "1", "TORCH_COMPILE_DEBUG_SAVE_REAL": "1",
    }  # fmt: skip
    command = [sys.executable, "-c", _PROGRAM]
    done = subprocess.run(command, env=os.environ | switches, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder, done.stderr


def test_switches_of_the_environment(switched_on: tuple[Path, str]) -> None:
    lines = switched_on[1].splitlines()

    def said(mark: str, text: str) -> bool:
        return any(mark in line and text in line for line in lines)

    assert said("[__output_code]", "# kernels.cpp") and said("[__output_code]", "def run(args):")
    assert said("[__post_grad_graphs]", "torch.ops.aten.mm.default") and said("[__post_grad_graphs]", "aten.mm(")
    assert said("[__perf_hints]", "aten.mm is a library's")
    assert said("[__recompiles]", "size mismatch")
    assert said("backends/compile_graph.py", "compiled inference: 1 launch of 1 kernel;")
    assert said("backends/torch_logs.py", "[loop-inline] passed")
    assert not said("[__fusion]", "") and not said("[__kernel_code]", "")
    told = [line for line in lines if "compiled inference" in line]
    assert len(told) == len(set(told)) == 2, "each line once"
    told = [line for line in lines if "backends/torch_logs.py" in line and "remark:" in line and "[__" not in line]
    said_by_text = [line.partition("] ")[2] for line in told]
    assert said_by_text and len(said_by_text) == len(set(said_by_text)), "also where a module below has handlers"


def test_debug_folder_has_the_names_that_people_know(switched_on: tuple[Path, str], tmp_path: Path) -> None:
    from inductile.tools import run

    (folder,) = switched_on[0].glob("torch_compile_debug/run_*/inductile/inference_0")
    names = {path.name for path in folder.iterdir()}
    expected = {"fx_graph_readable.py", "fx_graph_transformed.mlir", "ir_pre_fusion.txt", "ir_post_fusion.txt"}
    assert expected | {"output_code.py", "program.mlir", "graph_diagram.dot", "index.html", "inputs"} <= names
    assert "loop.fusion" not in (folder / "ir_pre_fusion.txt").read_text()
    assert "loop.fusion" in (folder / "ir_post_fusion.txt").read_text()
    dot = (folder / "graph_diagram.dot").read_text()
    assert '"aten.mm"' in dot and '"launch softmax_0"' in dot and "forward_0 -> " in dot
    text = (folder / "output_code.py").read_text()
    assert "def run(args):" in text and 'extern "C"' in text
    arguments: list[list[str]] = []
    main = run.main

    def keeping(argv: list[str]) -> int:
        arguments.append(argv)
        return main([*argv, "--output", str(tmp_path / "y.npy")])

    script = folder / "output_code.py"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit, match="0"):
        patch.setattr(run, "main", keeping)
        runpy.run_path(str(script), run_name="__main__")
    x, w = (torch.from_numpy(numpy.load(folder / "inputs" / f"{number}.npy")) for number in range(2))
    y = torch.from_numpy(numpy.load(tmp_path / "y.npy"))
    torch.testing.assert_close(y, torch.softmax((x @ w).relu(), -1) + 1)
    assert arguments[0].count("--input") == 2


def test_structured_trace(switched_on: tuple[Path, str]) -> None:
    (log,) = switched_on[0].glob("traced/*.log")
    records = [json.loads(line[line.index("{") :]) for line in log.read_text().splitlines() if line.startswith("V")]
    artifacts = {each["artifact"]["name"] for each in records if "artifact" in each}
    expected = (
        "graph_transformed",
        "ir_pre_fusion",
        "ir_post_fusion",
        "schedule",
        "kernel_code_softmax_0",
        "remarks",
        "times",
    )
    assert {f"inductile_inference_{name}" for name in expected} <= artifacts
    assert any(each.get("inductor_output_code") == {"filename": "inference.py"} for each in records)
    assert any("inductor_post_grad_graph" in each for each in records)
    assert any("inductor_pre_grad_graph" in each for each in records)
    (link,) = [each["link"] for each in records if "link" in each][:1]
    assert link["name"] == "inductile_inference_0_report"
    assert Path(link["url"].removeprefix("file://")).read_text().startswith("<!doctype html>")
    assert all("frame_id" in each for each in records if "inductor_output_code" in each)


@pytest.fixture
def set_logs() -> Iterator[Any]:
    if "TORCH_LOGS" in os.environ:
        pytest.skip("torch does not listen to set_logs then")
    torch.compiler.reset()
    yield internal.set_logs
    internal.set_logs()
    torch.compiler.reset()


def compiled_stderr(function: Any, *inputs: Any) -> str:
    """What a compile prints to standard error."""
    text = io.StringIO()
    with redirect_stderr(text):
        torch.compile(function, backend="inductile")(*inputs)
    return text.getvalue()


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        ({"fusion": True}, "[loop-fuse]"),
        ({"schedule": True}, "host.func @forward"),
        ({"kernel_code": True}, 'extern "C"'),
        ({"ir_post_fusion": True}, "loop.generate"),
        ({"pre_grad_graphs": True}, "class GraphModule"),
        ({"inductor": logging.INFO}, "compiled inference"),
        ({"all": logging.INFO}, "compiled inference"),
        ({"modules": {"inductile": logging.INFO}}, "[loop-fuse]"),
        ({"modules": {"inductile.passes.loop.fuse": logging.INFO}}, "[loop-fuse]"),
    ],
)  # fmt: skip
def test_set_logs(set_logs: Any, switch: dict[str, Any], expected: str) -> None:
    torch_logs.enter()
    with redirect_stderr(io.StringIO()) as said:
        set_logs(**switch)  # in torch 2.11 the stream is that of this moment
        torch.compile(lambda x: (x.sin().sum(0) + 1).softmax(0), backend="inductile")(torch.randn(8, 8))
    text = said.getvalue()
    assert expected in text
    others = {"fusion", "schedule", "kernel_code", "ir_post_fusion", "pre_grad_graphs"} - set(switch)
    assert not any(f"[__{name}]" in text for name in others)
    if "inductile.passes.loop.fuse" in switch.get("modules", {}):
        assert "[loop-inline]" not in text


@pytest.mark.parametrize(("switches", "is_said"), [("all", True), ("all,-dynamo", True), ("all,-inductor", False)])
def test_all_of_torch_means_ours_too(switches: str, is_said: bool) -> None:
    program = """
import torch
torch.compile(lambda x: x.sin() + 1, backend="inductile")(torch.randn(8))
"""
    variables = os.environ | {"TORCH_LOGS": switches}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert ("compiled inference: 1 launch" in done.stderr) == is_said


def test_graphs_of_aotautograd_are_shown_though_the_cache_has_them(
    set_logs: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("INDUCTILE_GRAPH_CACHE", "1")
    monkeypatch.setenv("INDUCTILE_CACHE_DIR", str(tmp_path))
    set_logs()
    counters.clear()
    for _ in range(2):
        torch.compiler.reset()
        assert compiled_stderr(lambda x: x.sin() + 3, torch.randn(8)) == ""
    assert counters["inductile"]["graphs from the cache"] == 1, dict(counters["inductile"])
    torch.compiler.reset()
    with redirect_stderr(text := io.StringIO()):
        set_logs(aot_graphs=True)  # in torch 2.11 the stream is that of this moment
        torch.compile(lambda x: x.sin() + 3, backend="inductile")(torch.randn(8))
    assert "torch.ops.aten.sin" in text.getvalue()


def test_nothing_is_said_unasked(set_logs: Any) -> None:
    set_logs()
    assert not torch_logs.wants_remarks() and not torch_logs.shows("output_code")
    assert compiled_stderr(lambda x: x.sin() + 1, torch.randn(8)) == ""


def test_counters_times_and_explain(set_logs: Any) -> None:
    counters.clear()
    x = torch.randn(8, 8, requires_grad=True)

    def function(x: torch.Tensor) -> torch.Tensor:
        y = (x @ x).relu()
        torch._dynamo.graph_break()
        return y.sum(1) * 2

    torch.compile(function, backend="inductile")(x).sum().backward()
    counted = counters["inductile"]
    assert (counted["graphs"], counted["forward_graphs"], counted["backward_graphs"]) == (4, 2, 2)
    assert counted["kernels"] > 0 and counted["launches"] >= counted["kernels"]
    assert counted["aten_calls: aten.mm"] == 3 == counted["aten_calls"]
    times = compile_times("str")
    assert all(
        f"inductile.{name}" in times for name in ("import", "graph", "loop", "kernel", "host", "forward", "backward")
    )
    explained = torch._dynamo.explain(function)(x.detach())
    assert explained.graph_count == 2 and explained.graph_break_count == 1
    assert len(inductile.explain(function)(x.detach()).reports) == 2
