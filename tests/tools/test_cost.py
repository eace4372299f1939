"""`inductile-cost`."""

from __future__ import annotations

import json
from pathlib import Path

from .commands import ADD, run, write


def test_table_and_json(tmp_path: Path) -> None:
    path = write(tmp_path, "add.mlir", ADD)
    done = run("cost", path)
    assert done.status == 0
    name, times, read, _, written, *_ = done.out.splitlines()[2].split()
    assert name.startswith("sub_")
    assert (times, read, written) == ("1", "96", "48")
    (program,) = json.loads(run("cost", path, "--json", "--target", "cuda:90").out)
    assert (program["read"], program["written"], program["machine"]) == (96, 48, "cuda:90")
    (program,) = json.loads(run("cost", path, "--json", "--machine", "h200").out)
    assert program["machine"] == "h200"
    (eager,) = json.loads(run("cost", path, "--json", "--eager").out)
    assert [(row["name"], row["read"]) for row in eager["rows"]] == [("aten.sub.Tensor", 96), ("aten.relu", 48)]


def test_wrong_arguments(tmp_path: Path) -> None:
    path = write(tmp_path, "add.mlir", ADD)
    assert "write --symbol s0=1024" in run("cost", path, "--symbol", "s0").err
    assert "there is no function to cost" in run("cost", write(tmp_path, "none.mlir", "builtin.module {}")).err


def test_memory_over_time(tmp_path: Path) -> None:
    path = write(tmp_path, "add.mlir", ADD)
    done = run("cost", path, "--memory")
    assert done.status == 0 and "KiB alive over time" in done.out and "of them results" in done.out
    (profile,) = json.loads(run("cost", path, "--memory", "--json").out)
    assert profile["peak"] == profile["moments"][0][1] == 48 and profile["given"] == 0
    (profile,) = json.loads(run("cost", path, "--memory", "--held", "", "--json").out)
    assert profile["given"] == 96 and profile["peak"] == 144
    assert "leave --eager out" in run("cost", path, "--memory", "--eager").err
