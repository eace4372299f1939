"""`inductile.explain` as a table."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import inductile


def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x) * 2
    z = torch.softmax(y @ w, -1)
    return (z @ w).exp() + z


def test_table() -> None:
    x, w = torch.randn(4, 8), torch.randn(8, 8)
    explanation = inductile.explain(model)(x, w)
    torch.testing.assert_close(explanation.result, model(x, w))
    text = str(explanation)
    assert "inference: " in text
    (call,) = [line.split() for line in text.splitlines() if line.startswith("  aten.mm ")]
    assert call == ["aten.mm", "ATen", "call", "2"]
    rows = [line for line in text.splitlines() if line.startswith(f"  {Path(__file__).name}:")]
    assert any("lower-aten-to-loop" in r and "missed" in r and "aten.mm has no lowering" in r for r in rows)
    assert any("loop-inline" in r and "passed" in r for r in rows)
    assert any("loop-fuse" in r for r in rows)
    lines = [int(row.split(":")[1].split()[0]) for row in rows]
    assert lines == sorted(lines)
    kinds = {(r.pass_name, r.kind) for r in explanation.remarks}
    assert ("host-reuse", "passed") in kinds


def test_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert str(inductile.explain(lambda x: x)(torch.ones(2))) == "nothing was compiled"
