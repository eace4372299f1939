"""Every n-th case of torch's operator database against eager; `run.py` runs all of them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

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
@pytest.mark.parametrize("shard", range(SHARDS))
def test_sample_of_operators(runner: ModuleType, shard: int) -> None:
    exceptions = importlib.import_module("exceptions").EXCEPTIONS
    chosen = runner.cases.all_cases()[shard * EVERY :: SHARDS * EVERY]
    assert chosen
    results = [runner.run_case(case, "inductile", 1, SECONDS) for case in chosen if case.name not in exceptions]
    wrong = {r["case"]: r["faults"] for r in results if r["status"] != "pass"}
    assert not wrong


def test_exceptions_are_cases(runner: ModuleType) -> None:
    """The table names nothing that the database lacks."""
    known = {case.name for case in runner.cases.all_cases()}
    assert sorted(set(importlib.import_module("exceptions").EXCEPTIONS) - known) == []
