"""A fault in a pass is found: pass and rewrite by bisection, a small program by reduction."""

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


def count(text: str) -> int:
    """Ops of a module, which has to be valid; functions count, the module does not."""
    source = Source(text, "reduced")
    module = source.parse(new_context())
    source.verify(module)
    return sum(1 for _ in module.walk()) - 1


def test_without_a_fault_nothing_is_found(tmp_path: Path) -> None:
    done = run("bisect", write(tmp_path, "model.mlir", MODEL), "--pipeline", "default")
    assert (done.status, done.out) == (1, ""), done.out


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.replace(" ", "-"))
def test_a_fault_is_found(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Callable[[str, object], None]
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

    figures = f"rewrite {rewrite[2]} of {rewrite[3]}, {before} -> {after} ops"
    times = f"numerics {numerics:.1f} s, bisect {bisection:.1f} s, reduce {reduction:.1f} s"
    record_property("found", f"{figures}; {times}")
    print(f"{fault.name}: {figures}; {times}")
