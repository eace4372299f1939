"""The example that trains a small GPT in eager and compiled: the two curves of the loss stay together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).parents[2] / "examples" / "train_gpt.py"


def _train(*options: str) -> str:
    run = subprocess.run(
        [sys.executable, str(_SCRIPT), *options], capture_output=True, text=True, timeout=900, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
    return run.stdout


def test_curves_stay_together() -> None:
    assert "step   29" in _train("--steps", "30", "--layers", "1")


@pytest.mark.slow
@pytest.mark.parametrize("options", [
    ("--checkpointing", "--accumulation", "2"),
    ("--autocast",),
    ("--dropout", "0.1", "--checkpointing"),
    ("--compile-optimizer",),
], ids=lambda options: options[0].strip("-"))  # fmt: skip
def test_variants(options: tuple[str, ...]) -> None:
    _train("--steps", "30", *options)


@pytest.mark.slow
def test_two_hundred_steps_learn_to_sort() -> None:
    """Float noise grows with the steps; what is learned does not differ."""
    shown = _train("--steps", "200")
    last = next(line for line in shown.splitlines() if line.startswith("step  199"))
    assert float(last.split()[-1]) < 0.3
