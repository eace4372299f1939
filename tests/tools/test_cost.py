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
    (program,) = json.loads(run("cost", path, "--json", "--machine", "h100").out)
    assert (program["read"], program["written"], program["machine"]) == (96, 48, "h100")
    (eager,) = json.loads(run("cost", path, "--json", "--eager").out)
    assert [(row["name"], row["read"]) for row in eager["rows"]] == [("aten.sub.Tensor", 96), ("aten.relu", 48)]


def test_wrong_arguments(tmp_path: Path) -> None:
    path = write(tmp_path, "add.mlir", ADD)
    assert "write --symbol s0=1024" in run("cost", path, "--symbol", "s0").err
    assert "there is no function to cost" in run("cost", write(tmp_path, "none.mlir", "builtin.module {}")).err
