"""Every n-th case of torch's operator database against eager, a sixth of these at each commit; `run.py` runs all."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from ..rotation import part
from ..versions import torch_version

EVERY = 29
SHARDS = 10
SECONDS = 120


@pytest.fixture(scope="module")
def runner() -> Iterator[ModuleType]:
    """`run.py` with the modules beside it, which it imports as a script does."""
    places = [str(Path(__file__).parent), str(Path(__file__).parent.parent)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*places, *sys.path])
        yield importlib.import_module("run")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shard", part(range(SHARDS), 6))
def test_sample_of_operators(runner: ModuleType, shard: int) -> None:
    exceptions = importlib.import_module("exceptions").EXCEPTIONS
    chosen = runner.cases.all_cases()[shard * EVERY :: SHARDS * EVERY]
    assert chosen
    results = [runner.run_case(case, "inductile", 1, SECONDS) for case in chosen if case.name not in exceptions]
    wrong = {r["case"]: r["faults"] for r in results if r["status"] != "pass"}
    assert not wrong


def test_exceptions_are_cases(runner: ModuleType) -> None:
    """The table names nothing that the database lacks."""
    if torch_version() < (2, 14):
        pytest.skip("the table is that of torch 2.14, whose database has more cases")
    known = {case.name for case in runner.cases.all_cases()}
    assert sorted(set(importlib.import_module("exceptions").EXCEPTIONS) - known) == []


def test_page(runner: ModuleType) -> None:
    """What a case became, who is owed, and that nothing is claimed for cases that were not run."""
    report = importlib.import_module("report")
    lines = [
        {"case": "add:float32", "status": "pass", "samples": 2, "faults": [], "graphs": 1, "kernels": 2, "aten": {}},
        {
            "case": "mm:float32",
            "status": "pass",
            "samples": 1,
            "faults": [],
            "graphs": 1,
            "kernels": 0,
            "aten": {"aten.mm": 1},
        },
        {
            "case": "exp:float32",
            "status": "fail",
            "samples": 1,
            "faults": ["out0: values"],
            "graphs": 1,
            "kernels": 1,
            "aten": {},
        },
        {
            "case": "cov:float32",
            "status": "error",
            "samples": 1,
            "faults": ["a <b>"],
            "graphs": 0,
            "kernels": 0,
            "aten": {},
        },
    ]
    baseline = [{"case": "cov:float32", "status": "error", "faults": ["a <b>"]}]
    results, excused = {r["case"]: r for r in lines}, {r["case"]: r for r in baseline}
    page = report.coverage_page(results, excused, [*results, "sin:float32"], 7, "")
    assert "| float32 | 5 | 4 | 2 | 1 | 1 | 1 | 66.67 % |" in page
    assert "| float32 | 1 | 0 | 1 | 0 | 0 |" in page
    assert "- `exp:float32` fail: out0: values" in page
    assert "- `cov:float32`: aot_eager fails as well: a &lt;b>" in page
    assert "`aten.mm` 1." in page
