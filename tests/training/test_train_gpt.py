"""The example that trains a small GPT in eager and compiled: the two curves of the loss stay together."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ..scripts import load_example
from ..warm.python import python

_SCRIPT = Path(__file__).parents[2] / "examples" / "train_gpt.py"


def test_the_script() -> None:
    command = [python(), str(_SCRIPT), "--steps", "30", "--layers", "1"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
    assert "step   29" in run.stdout


@pytest.mark.rotates(2)
@pytest.mark.parametrize("options", [
    ("--checkpointing", "--accumulation", "2"),
    ("--autocast", "--layers", "1"),
    ("--dropout", "0.1", "--checkpointing"),
    ("--compile-optimizer", "--layers", "1"),
], ids=lambda options: options[0].strip("-"))  # fmt: skip
def test_variants(options: tuple[str, ...]) -> None:
    assert load_example("train_gpt").main(["--steps", "30", *options]) == 0


def test_two_hundred_steps_learn_to_sort(capsys: pytest.CaptureFixture[str]) -> None:
    """Float noise grows with the steps; what is learned does not differ."""
    assert load_example("train_gpt").main(["--steps", "200"]) == 0
    shown = capsys.readouterr().out
    last = next(line for line in shown.splitlines() if line.startswith("step  199"))
    assert float(last.split()[-1]) < 0.3
