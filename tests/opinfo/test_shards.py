"""Shares of the database that are started again: after a death, a hang, and a device that is lost."""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

WORKER = """
import json, os, pathlib, sys, time
out, kind = sys.argv[1:]
done = len(open(out).readlines()) if os.path.exists(out) else 0
pathlib.Path(out + ".running").write_text("case")
if kind == "idle":
    sys.exit(3)
if kind == "hangs" and done == 1:
    open(out, "a").write("{}\\n")
    time.sleep(100)
open(out, "a").write("{}\\n")
sys.exit(0 if done == 3 else 75 if done else 139)
"""


@pytest.fixture
def shards() -> Iterator[ModuleType]:
    places = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*places, *sys.path])
        yield importlib.import_module("shards")


@pytest.mark.parametrize(("kind", "lines"), [("dies", 4), ("hangs", 4), ("idle", 0)])
def test_a_share_is_started_until_it_is_done(shards: ModuleType, kind: str, lines: int, tmp_path: Path) -> None:
    """It ends when nothing is left, and when two starts in a row gave nothing new."""
    out = str(tmp_path / "out.jsonl")
    shards.until_done(lambda: [sys.executable, "-c", WORKER, out, kind], out, 2, time.time() + 60)
    assert shards._lines(out) == lines


def test_a_case_cut_off_at_the_deadline_is_not_to_blame(shards: ModuleType, tmp_path: Path) -> None:
    out = str(tmp_path / "out.jsonl")
    Path(out).write_text("{}\n")
    shards.until_done(lambda: [sys.executable, "-c", WORKER, out, "hangs"], out, 100, time.time() - 3 + 1)
    assert not Path(f"{out}.running").exists()


def test_summary_is_one_line(shards: ModuleType) -> None:
    def result(case: str, status: str) -> dict[str, object]:
        return {"case": case, "status": status, "faults": ["x"]}

    results = {c: result(c, s) for c, s in (("a", "pass"), ("b", "fail"), ("c", "error"))}
    baseline = {c: result(c, s) for c, s in (("b", "fail"), ("c", "pass"))}
    line, well = shards.summary(results, baseline, 4, "cuda")
    assert line == "cuda: 3 of 4 cases run, 1 pass, 1 not owed, 1 owed and wrong: c"
    assert not well
    assert shards.summary({"a": results["a"]}, {}, 1, "cuda") == (
        "cuda: 1 of 1 cases run, 1 pass, 0 not owed, 0 owed and wrong",
        True,
    )


def test_a_lost_device_ends_the_process(shards: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The case that broke it is marked, though eager fails in the same way, and the rest is left to another process."""
    runner = importlib.import_module("run")

    def lost(result: dict[str, object]) -> bool:
        result |= {"status": "error", "faults": ["the device is lost: x"]}
        return True

    monkeypatch.setattr(runner, "broken_device", lost)
    monkeypatch.setattr(runner, "quick_dynamo", lambda: None)
    out = str(tmp_path / "out.jsonl")
    args = argparse.Namespace(
        shard="0/1", ops="abs", kinds="float32,int64", failures_of=None, out=out, every=1, jobs=0, count=None,
        until=None, limit=1, timeout=60, backend="eager",
    )  # fmt: skip
    assert runner.run_here(args) == shards.MORE
    lines = [json.loads(line) for line in Path(out).read_text().splitlines()]
    assert [r["status"] for r in lines] == ["error"]
    monkeypatch.setattr(runner, "broken_device", lambda _: False)
    assert runner.run_here(args) == 0
    assert len(Path(out).read_text().splitlines()) == 2
