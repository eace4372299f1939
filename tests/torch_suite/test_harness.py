"""The harness for Inductor's tests, on a small module of the same shape."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from ..warm.python import python

HERE = Path(__file__).parent


def run(out: Path, *more: str) -> subprocess.CompletedProcess[str]:
    script = str(HERE / "run.py")
    # where torch cannot be forked, a process starts over, as the interpreter itself: a warm one hands on no pipes
    command = [python(), script, "--file", str(HERE / "small_suite.py"), "--out", str(out), *more]
    environment = os.environ | {"SMALL_SUITE_DIES": "1"}
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def test_counts_failures_and_what_is_not_owed(tmp_path: Path) -> None:
    """What passes, fails, is not owed, is skipped, and kills its process; a second run has nothing left to do."""
    out = tmp_path / "suite.jsonl"
    done = run(out)
    assert done.returncode == 1, done.stderr
    lines = [json.loads(line) for line in (tmp_path / "suite.jsonl").read_text().splitlines()]
    status = {line["test"].removeprefix("CpuTests.test_").removesuffix("_cpu"): line["status"] for line in lines}
    assert status == {"sum": "pass", "default_backend": "pass", "wrong": "fail", "metrics": "not owed",
                      "skips": "skipped", "another_version": "skipped", "dies": "fail",
                      "zero_left": "fail"}  # fmt: skip
    compiled = {line["test"]: line["graphs"] for line in lines if line["status"] == "pass"}
    assert list(compiled.values()) == [1, 1]
    assert "| of those that pass, compile no graph | 0 |" in done.stdout
    assert "| pass | 2 |" in done.stdout and "| fail | 3 |" in done.stdout
    assert "counts what Inductor did | 1 |" in done.stdout
    assert "this torch has no torch._inductor.compile_fx.name_of_another_version" in str(lines)
    before = (tmp_path / "suite.jsonl").read_text()
    assert "| pass | 2 |" in run(out, "--report").stdout
    assert (tmp_path / "suite.jsonl").read_text() == before


def test_what_fails_behind_a_failure_runs_again(tmp_path: Path) -> None:
    """With --fresh a failure counts only in a process in which none was before; what passes behind one counts."""
    done = run(tmp_path / "suite.jsonl", "--fresh", "--only", "sum|wrong|zero_left")
    assert "| pass | 2 |" in done.stdout and "| fail | 1 |" in done.stdout, done.stdout + done.stderr


def test_tests_of_recorded_graphs_have_rules_of_their_own(tmp_path: Path) -> None:
    """There a wrong count of recordings is owed; the words in which Inductor says what it skips are not."""
    sys.path.insert(0, str(HERE))
    import not_owed

    suite = tmp_path / "test_cudagraph_trees.py"
    lines = (
        "def test_a():",
        "    assert cudagraphs == [2]",
        "    FileCheck().check(",
        "        'skipping'",
        "    ).run(text)",
    )
    suite.write_text("\n".join([*lines, ""]))
    scope: dict[str, object] = {}
    exec(compile(suite.read_text(), str(suite), "exec"), scope)
    words = "reads the words in which Inductor says why a graph is not recorded"
    for line, why in ((2, None), (3, words), (5, words)):
        problem = f'  File "{suite}", line {line}, in test_a\nAssertionError: Scalars are not equal!'
        assert not_owed.reason("T.test_a", scope["test_a"], "cuda", problem) == why  # pyright: ignore[reportArgumentType]


def test_says_what_is_missing(tmp_path: Path) -> None:
    """No checkout: one line that says what to give."""
    command = [sys.executable, str(HERE / "run.py"), "--checkout", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--checkout" in done.stderr and "Traceback" not in done.stderr
