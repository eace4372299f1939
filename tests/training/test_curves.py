"""The benchmark that compares curves of the loss, a few steps of each variant."""

from __future__ import annotations

import sys

import pytest

from ..scripts import load_benchmark
from ..warm.python import python

_curves = load_benchmark("curves")


@pytest.mark.rotates(3)
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "ddp" else name for name in _curves.VARIANTS],
)
def test_curves_stay_together(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    if name == "ddp":
        monkeypatch.setattr(sys, "executable", python())
    assert _curves.main(["--steps", "6", "--layers", "1", "--variants", name]) == 0, capsys.readouterr().out
    assert f"| {name} | 2." in capsys.readouterr().out


def test_a_curve_that_parts_is_told() -> None:
    """A wrong gradient, as far from eager as a learning rate that is a hundredth off."""
    exact = [2.4, 2.0, 1.7]
    curves = {"eager": exact, "float64": [x + 2e-7 for x in exact], "compiled": [2.4, 2.004, 1.707]}
    curves |= {kind: [x - 1e-7 for x in exact] for kind in _curves.PERTURBED}
    assert _curves.Result.of("plain", curves).ratio > 1000
