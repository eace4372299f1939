"""A fault in a pass is found: pass and rewrite by bisection, a small program by reduction.

`pytest tests/workbench --bless` writes what was found, and in how many seconds, into the table of `docs/workbench.md`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from inductile.dialects.context import new_context
from inductile.tools.source import Source

from ..tools.commands import opt, run, write
from .faults import FAULTS, MODEL, Fault

PAGE = Path(__file__).parents[2] / "docs" / "workbench.md"
HEAD = """\
| fault | pass | rewrite | ops | numerics, s | bisect, s | reduce, s |
|---|---|---|---|---|---|---|
"""


def count(text: str) -> int:
    """Ops of a module, which has to be valid; functions count, the module does not."""
    source = Source(text, "reduced")
    module = source.parse(new_context())
    source.verify(module)
    return sum(1 for _ in module.walk()) - 1


def table_row(fault: Fault, cells: str) -> str:
    """A row of the table."""
    return f"| {fault.name} | {cells} |"


def table_rows(text: str) -> list[str]:
    """The rows of the page's table."""
    _, _, table = text.partition(HEAD)
    return table.partition("\n\n")[0].splitlines()


def enter(fault: Fault, cells: str) -> None:
    """Write a fault's row into the page; the others stay, those of faults that are no more go."""
    text = PAGE.read_text()
    old = {row.split(" | ")[0].strip("| "): row for row in table_rows(text)}
    old[fault.name] = table_row(fault, cells)
    new = [old[each.name] for each in FAULTS if each.name in old]
    PAGE.write_text(text.replace(HEAD + "\n".join(table_rows(text)), HEAD + "\n".join(new)))


def test_without_a_fault_nothing_is_found(tmp_path: Path) -> None:
    done = run("bisect", write(tmp_path, "model.mlir", MODEL), "--pipeline", "default")
    assert (done.status, done.out) == (1, ""), done.out


@pytest.mark.rotates(8)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_is_found(
    fault: Fault,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
    pytestconfig: pytest.Config,
) -> None:
    fault.seed(monkeypatch)
    guilty, small = tmp_path / "guilty.mlir", tmp_path / "small.mlir"
    model = write(tmp_path, "model.mlir", fault.program)
    pipeline = ("--pipeline", "default", *fault.flags)

    started = time.perf_counter()
    checked = opt(model, *pipeline, "--verify-each=numerics", "--crash-reproducer", tmp_path / "r.mlir")
    numerics = time.perf_counter() - started
    assert checked.status in (1, 70)
    assert f"pass '{fault.pass_name}' failed: " in checked.err

    started = time.perf_counter()
    found = run("bisect", model, *pipeline, "-o", guilty)
    bisection = time.perf_counter() - started
    assert found.status == 0
    assert found.out.startswith(f"guilty pass: {fault.pass_name}")
    assert f"\n  {fault.shows}" in found.out
    rewrite = re.search(r"guilty rewrite: ([\w-]+), number (\d+) of (\d+)", found.out)
    assert rewrite is not None
    assert rewrite[1] == fault.pass_name or rewrite[1].startswith(f"{fault.pass_name}-")  # one of its decisions

    started = time.perf_counter()
    reduced = run("reduce", guilty, "--run-reproducer", "-o", small)
    reduction = time.perf_counter() - started
    assert reduced.status == 0
    before, after = count(guilty.read_text()), count(small.read_text())
    assert after <= fault.most_ops < before

    seconds = f"{numerics:.1f} | {bisection:.1f} | {reduction:.1f}"
    cells = f"`{fault.pass_name}` | {rewrite[2]} of {rewrite[3]} | {before} → {after} | {seconds}"
    record_property("found", cells)
    print(table_row(fault, cells))
    if pytestconfig.getoption("bless"):
        enter(fault, cells)


def test_the_table_has_a_row_for_each_fault() -> None:
    rows = [(row.split(" | ")[0].strip("| "), row.split(" | ")[1].strip("`")) for row in table_rows(PAGE.read_text())]
    assert rows == [(fault.name, fault.pass_name) for fault in FAULTS]
