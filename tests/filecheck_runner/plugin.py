"""The pytest hooks that collect and run `.mlir` tests; `tests/conftest.py` re-exports them."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from .bless import bless_file
from .execute import RunFailedError, Tool, load_tools, run
from .run_lines import RunLineError, parse_run_lines

_TOOLS = pytest.StashKey[dict[str, Tool]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--bless",
        action="store_true",
        default=os.environ.get("INDUCTILE_BLESS") == "1",
        help="rewrite the expected output below BLESS markers of .mlir tests (also INDUCTILE_BLESS=1)",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Every `.mlir` file is a test, but for the inputs of other tests in folders named `Inputs`."""
    if file_path.suffix == ".mlir" and "Inputs" not in file_path.parts:
        return MlirFile.from_parent(parent, path=file_path)
    return None


class MlirFile(pytest.File):
    """A `.mlir` test file; all its RUN lines are one test, since a later one may read files of an earlier."""

    def collect(self) -> Iterator[pytest.Item]:
        yield MlirItem.from_parent(self, name="RUN")


class MlirItem(pytest.Item):
    def runtest(self) -> None:
        stash = self.config.stash
        if _TOOLS not in stash:
            stash[_TOOLS] = load_tools(self.config.rootpath / "pyproject.toml")
        run_file(self.path, stash[_TOOLS], bless=bool(self.config.getoption("bless")))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        # a crash of a tool keeps its traceback, a failed check is told by its report alone
        if isinstance(excinfo.value, RunFailedError | RunLineError) and excinfo.value.__cause__ is None:
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.nodeid


def run_file(path: Path, tools: Mapping[str, Tool], bless: bool = False) -> None:
    """Run the test file `path`, after rewriting its marked blocks when `bless` is set.

    Raises `RunFailedError` or `RunLineError`. The tools run in a temporary folder, where `%t` lies.
    """
    with tempfile.TemporaryDirectory(prefix="inductile-test-") as folder, contextlib.chdir(folder):
        lines = parse_run_lines(path.read_text(encoding="utf-8"), path, Path(folder))
        if not lines:
            raise RunLineError(f"{path.name} has no RUN line")
        if bless and bless_file(path, lines, tools):
            lines = parse_run_lines(path.read_text(encoding="utf-8"), path, Path(folder))
        for line in lines:
            run(line, path, tools)
