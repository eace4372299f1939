"""What the documentation shows is what happens."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ..filecheck_runner.execute import load_tools
from .documents import blessed, matches, run_page

ROOT = Path(__file__).parents[2]
PAGES = sorted(path.name for path in (ROOT / "docs").glob("*.md") if "```console" in path.read_text())
TOOLS = load_tools(ROOT / "pyproject.toml")


@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_is_shown(page: str, tmp_path: Path) -> None:
    path = ROOT / "docs" / page
    text = path.read_text()
    runs = list(run_page(text, tmp_path, TOOLS))
    if os.environ.get("INDUCTILE_BLESS") == "1":
        text = blessed(text, runs)
        path.write_text(text)
        runs = list(run_page(text, tmp_path, TOOLS))
    for command, printed in runs:
        assert matches(command.output, printed), f"$ {command.line}\n{printed}"


def test_pages_are_run() -> None:
    assert {"first_pass.md", "softmax.md", "workbench.md"} <= set(PAGES)


def test_the_map_names_files_that_exist() -> None:
    named = set(re.findall(r"`((?:tools|backends|lowering|passes|dialects|tests)/[\w/.]*)`", _map()))
    assert len(named) > 20
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_map_leaves_out_no_layer() -> None:
    text = _map()
    folders = [p for level in ("passes", "lowering", "backends") for p in (ROOT / level).iterdir() if p.is_dir()]
    names = [f"{p.parent.name}/{p.name}" for p in folders if (p / "__init__.py").exists() and p.name != "common"]
    assert [name for name in sorted(names) if name not in text] == []


def _map() -> str:
    return (ROOT / "docs" / "architecture.md").read_text()
