"""The `.mlir` test runner, driven with tools made up here."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from .filecheck_runner.bless import bless_text, check_lines
from .filecheck_runner.execute import RunFailedError, Tool, call, check, load_tools
from .filecheck_runner.plugin import run_file
from .filecheck_runner.run_lines import RunLineError, Stage, parse_run_lines


def upper(argv: Sequence[str]) -> int:
    """Print the code lines of a file (or of stdin) in capitals; `-fail` fails, `-crash` raises."""
    if "-crash" in argv:
        raise KeyError("no such thing")
    if "-fail" in argv:
        print("error: asked to fail", file=sys.stderr)
        return 1
    text = sys.stdin.read() if argv[0] == "-" else Path(argv[0]).read_text()
    split = [line for line in text.splitlines() if not line.startswith("// ") or line == "// -----"]
    print("\n".join(split).strip().upper())
    return 0


def leave(argv: Sequence[str]) -> int:
    raise SystemExit(argv[0] if argv[0].isalpha() else int(argv[0]))


def test_tests_of_passes_check_what_the_pass_changes() -> None:
    """Whole outputs are for lowerings, printers and the text of dialects, where all of it is the point."""
    files = (Path(__file__).parent / "filecheck" / "passes").rglob("*.mlir")
    assert [str(file) for file in files if "-BLESS" in file.read_text()] == []


TOOLS: dict[str, Tool] = {"upper": upper, "leave": leave}


def run_text(folder: Path, text: str, bless: bool = False) -> str:
    path = folder / "case.mlir"
    path.write_text(text)
    run_file(path, TOOLS, bless)
    return path.read_text()


def test_matching_output_passes(tmp_path: Path) -> None:
    run_text(tmp_path, "// RUN: upper %s | filecheck %s\nabc\ndef\n// CHECK: ABC\n// CHECK-NEXT: DEF\n")


def test_wrong_check_fails_with_run_line_and_actual_output(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError) as failure:
        run_text(tmp_path, "// RUN: upper %s | filecheck %s\nabc\n// CHECK: ABD\n")
    report = str(failure.value)
    assert "case.mlir:1: RUN: upper %s | filecheck %s" in report
    assert 'Couldn\'t match "ABD"' in report
    assert report.endswith("--- actual output ---\nABC")


def test_every_run_line_counts(tmp_path: Path) -> None:
    text = "// RUN: upper %s | filecheck %s\n// RUN: upper %s | filecheck %s --check-prefix=TWO\nabc\n// CHECK: ABC\n"
    with pytest.raises(RunFailedError, match="No check strings found with prefix TWO"):
        run_text(tmp_path, text)
    run_text(tmp_path, text + "// TWO: B\n")


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("upper %s -fail", "upper exited with 1, expected 0"),
        ("upper %s -fail | filecheck %s", "upper exited with 1, expected 0"),
        ("not upper %s", "upper exited with 0, expected a failure"),
        ("leave 3", "leave exited with 3, expected 0"),
        ("not leave 0", "leave exited with 0, expected a failure"),
        ("not leave 70", "leave exited with 70, expected a failure (1 or 2)"),
        ("not upper %s -crash", "upper crashed: KeyError: 'no such thing'"),
    ],
)
def test_wrong_exit_status_fails(tmp_path: Path, command: str, reason: str) -> None:
    with pytest.raises(RunFailedError) as failure:
        run_text(tmp_path, f"// RUN: {command}\nabc\n// CHECK: ABC\n")
    assert reason in str(failure.value)


def test_announced_failure_with_stderr_merged(tmp_path: Path) -> None:
    run_text(tmp_path, "// RUN: not upper %s -fail 2>&1 | filecheck %s\n// CHECK: error: asked to fail\n")
    with pytest.raises(RunFailedError, match="is empty"):
        run_text(tmp_path, "// RUN: not upper %s -fail | filecheck %s\n// CHECK: error\n")


def test_stages_feed_one_another_and_lines_continue(tmp_path: Path) -> None:
    text = "// RUN: upper %s \\\n// RUN:   | upper - | filecheck %s\nabc\n// CHECK: ABC\n"
    run_text(tmp_path, text)


def test_tools_run_in_a_folder_of_their_own(tmp_path: Path) -> None:
    def write(argv: Sequence[str]) -> int:
        Path(argv[0]).write_text("// CHECK: ABC\n")
        Path("beside").touch()
        return 0

    path = tmp_path / "case.mlir"
    path.write_text("// RUN: write %t\n// RUN: upper %s | filecheck %t\nabc\n")
    before = os.getcwd()
    run_file(path, {**TOOLS, "write": write})
    assert os.getcwd() == before
    assert [file.name for file in tmp_path.iterdir()] == ["case.mlir"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("abc\n", "has no RUN line"),
        ("// RUN: lower %s\n", "unknown command 'lower'; known are upper, leave, filecheck"),
        ("// RUN: upper %s > out\n", "'>' needs a shell"),
        ("// RUN: upper %s && upper %s\n", "'&&' needs a shell"),
        ("// RUN: upper %s |\n", "empty command"),
        ("// RUN: upper '%s\n", "No closing quotation"),
        ("// RUN: upper %s \\\n", "ends in a backslash"),
    ],
)
def test_what_the_runner_cannot_do_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(RunLineError, match=message):
        run_text(tmp_path, text)


def test_substitutions_and_quotes() -> None:
    source = '// RUN: opt %s -p "tile{sizes=8,16}" %S/x %t.out %%s %sum'
    (line,) = parse_run_lines(source, Path("/a b/c.mlir"), Path("/tmp/d"))
    stage = Stage(("opt", "/a b/c.mlir", "-p", "tile{sizes=8,16}", "/a b/x", "/tmp/d/c.out", "%s", "%sum"))
    assert line.stages == (stage,)


def test_exit_by_message_prints_it() -> None:
    completed = call(leave, ["stop"])
    assert (completed.status, completed.err) == (1, "stop\n")


def test_the_declared_scripts_are_the_tools(tmp_path: Path) -> None:
    pyproject = tmp_path / "pyproject.toml"
    pyproject.write_text('[project.scripts]\nworking-folder = "os:fspath"\n')
    assert load_tools(pyproject)["working-folder"](b"x") == b"x"  # pyright: ignore[reportArgumentType]


BLESSABLE = """\
// RUN: upper %s | filecheck %s
a {{b}} [[c]]

d
// CHECK-BLESS
// CHECK: stale
// CHECK-NEXT: staler

// CHECK-NOT: Z
"""


def test_bless_rewrites_the_marked_block_only(tmp_path: Path) -> None:
    blessed = run_text(tmp_path, BLESSABLE, bless=True)
    expected = ["// CHECK: A {{\\{\\{}}B}} {{\\[\\[}}C]]", "// CHECK-EMPTY:", "// CHECK-NEXT: D"]
    stale = "// CHECK: stale\n// CHECK-NEXT: staler"
    assert blessed == BLESSABLE.replace(stale, "\n".join(expected))
    assert run_text(tmp_path, blessed, bless=True) == blessed
    run_text(tmp_path, blessed)


def test_without_bless_a_marked_block_is_checked(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match='Couldn\'t match "stale"'):
        run_text(tmp_path, BLESSABLE)


def test_bless_per_part_and_prefix(tmp_path: Path) -> None:
    text = (
        "// RUN: upper %s | filecheck %s\n// RUN: upper %s | filecheck %s --check-prefix=ALL\n"
        "a\n// CHECK-BLESS\n// -----\nb\n// CHECK-BLESS\n// ALL-BLESS\n"
    )
    blessed = run_text(tmp_path, text, bless=True)
    assert blessed.endswith(
        "a\n// CHECK-BLESS\n// CHECK: A\n// -----\nb\n// CHECK-BLESS\n// CHECK: B\n// ALL-BLESS\n// ALL: A\n// ALL: B\n"
    )


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("// RUN: upper %s -fail | filecheck %s\n// CHECK-BLESS\n// CHECK: OLD\n", RunFailedError),
        ("// RUN: upper %s | filecheck %s\na\n// CPU-BLESS\n// CHECK: A\n", RunLineError),
        ("// RUN: upper %s | filecheck %s\na\n// CHECK-BLESS\n// CHECK-BLESS\n", RunLineError),
    ],
)
def test_bless_writes_nothing_when_it_fails(tmp_path: Path, text: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        run_text(tmp_path, text, bless=True)
    assert (tmp_path / "case.mlir").read_text() == text


IR_LINES = st.text(st.sampled_from(' %{}[]()<>:,.*+?^$|\\"#@!_-=ab0\t'), max_size=24).map(str.rstrip)


@example(["[["])
@example(["[[ [[a]]", "[[1], [2]]"])
@given(st.lists(IR_LINES, min_size=1, max_size=8))
def test_blessed_checks_match_their_output(lines: list[str]) -> None:
    output = "\n".join(line if line.strip() else "" for line in lines).strip("\n") + "\n"
    checks = check_lines("CHECK", output, Path("/f/case.mlir"))
    if not checks:
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "case.mlir"
        path.write_text("\n".join(checks))
        assert call(lambda argv: check(argv, output), [str(path)]).status == 0


def test_blessed_paths_hold_in_any_checkout() -> None:
    path = Path("/home/someone/tests/case.mlir")
    source = "// CHECK-BLESS\n"
    blessed = bless_text(source, {"CHECK": f"error: {path}:3: bad\n"}, path)
    assert blessed == "// CHECK-BLESS\n// CHECK: error: {{.*}}case.mlir:3: bad\n"


def test_pytest_collects_reports_and_blesses(tmp_path: Path) -> None:
    here = Path(__file__).parent
    (tmp_path / "pyproject.toml").write_text(
        '[project.scripts]\nupper = "fake_tool:upper"\n[tool.pytest.ini_options]\ntestpaths = ["."]\n'
    )
    (tmp_path / "fake_tool.py").write_text(
        "def upper(argv):\n"
        "    text = open(argv[0]).read()\n"
        "    print(''.join(line for line in text.splitlines(True) if line[:2] != '//').upper())\n"
    )
    (tmp_path / "conftest.py").write_text("from filecheck_runner.plugin import *\n")
    (tmp_path / "Inputs").mkdir()
    (tmp_path / "Inputs" / "other.mlir").write_text("no test\n")
    (tmp_path / "good.mlir").write_text("// RUN: upper %s | filecheck %s\nabc\n// CHECK: ABC\n")
    bad = tmp_path / "bad.mlir"
    bad.write_text("// RUN: upper %s | filecheck %s\nabc\n// CHECK-BLESS\n// CHECK: OLD\n")

    def pytest_run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join((str(here), str(tmp_path)))},
            capture_output=True,
            text=True,
        )

    failed = pytest_run()
    assert failed.returncode == 1, failed.stdout + failed.stderr
    assert "1 failed, 1 passed" in failed.stdout
    assert "bad.mlir:1: RUN: upper %s | filecheck %s" in failed.stdout
    assert "--- actual output ---\nABC" in failed.stdout
    assert "Traceback" not in failed.stdout and "def runtest" not in failed.stdout
    blessed = pytest_run("--bless", "bad.mlir")
    assert blessed.returncode == 0, blessed.stdout
    assert bad.read_text().endswith("// CHECK-BLESS\n// CHECK: ABC\n")
