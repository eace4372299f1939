"""What the documentation shows is what happens."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from ..filecheck_runner.execute import load_tools
from .documents import READ, RUN, blessed, blocks, matches, run_page

ROOT = Path(__file__).parents[2]
TEXTS = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])
}
BLOCKS = [(page, block) for page, text in TEXTS.items() for block in blocks(text)]
PAGES = list(dict.fromkeys(page for page, block in BLOCKS if block.language in RUN and block.reason is None))
LEFT_OUT = {f"{page}:{block.line}": block.reason for page, block in BLOCKS if block.reason is not None}
TOOLS = load_tools(ROOT / "pyproject.toml")


@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_is_shown(page: str, tmp_path: Path) -> None:
    path, text = ROOT / page, TEXTS[page]
    runs = list(run_page(text, tmp_path, TOOLS))
    if os.environ.get("INDUCTILE_BLESS") == "1":
        text = blessed(text, runs)
        path.write_text(text)
        runs = list(run_page(text, tmp_path, TOOLS))
    for command, printed in runs:
        assert matches(command.output, printed), f"$ {command.line}\n{printed}"


@pytest.mark.parametrize("place", LEFT_OUT)
def test_blocks_that_are_not_run(place: str) -> None:
    pytest.skip(f"{place}: {LEFT_OUT[place]}")


def test_pages_are_run() -> None:
    assert {"README.md", *(f"docs/{name}.md" for name in ("first_pass", "softmax", "workbench"))} <= set(PAGES)


def test_blocks_say_what_they_are() -> None:
    """So that no command is left out because nobody knows it for one."""
    assert [f"{page}:{block.line}" for page, block in BLOCKS if block.language not in RUN + READ + ("text",)] == []


def test_an_error_is_no_line_that_a_page_leaves_out() -> None:
    """A command whose file is missing printed what a page need not show."""
    assert matches("...\n", "one\nerror of 1e-3\n") and matches("...\nerror: no file\n", "one\nerror: no file\n")
    assert not matches("...\n", "error: no file\n") and not matches("...\n", "x.mlir: error: cannot read it\n")


def test_a_block_that_fails_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    page = '```sh\ncd here\nA=1 python -c \'import os; open(os.environ["A"], "w")\'  # writes\n```\n'
    assert list(run_page(page, tmp_path, TOOLS)) == []
    assert (tmp_path / "here" / "1").exists()
    failing = ("sh\ninductile-opt none.mlir", "python\nraise SystemExit(3)", "sh\npython -c 'raise SystemExit(3)'")
    for body in failing:
        with pytest.raises(AssertionError, match="status"):
            list(run_page(f"```{body}\n```\n", tmp_path, TOOLS))
        assert list(run_page(f"<!-- not run: why -->\n```{body}\n```\n", tmp_path, TOOLS)) == []


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
