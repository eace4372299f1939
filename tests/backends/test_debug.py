"""`inductile.debug.capture`: graphs of a function as reproducers that replay on its inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import inductile
from inductile.errors import UserError

from ..tools.commands import FAULTY_PASSES, opt, write


def loss_and_gradient(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.relu((x - w) @ w)
    y.sum().backward()
    return y


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    return write(tmp_path, "faulty_passes.py", FAULTY_PASSES)


def test_forward_and_backward_replay_with_options_and_inputs(tmp_path: Path, plugin: Path) -> None:
    from inductile.tools.plugins import load_plugin

    load_plugin(str(plugin))
    x, w = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4)
    options = {"insert": {"after:loop-inline": "swap-sub"}, "emulate_precision_casts": True}
    paths = inductile.debug.capture(loss_and_gradient, x, w, folder=str(tmp_path / "captured"), options=options)
    assert [Path(path).name for path in paths] == ["forward0.mlir", "backward1.mlir"]
    assert "emulate_precision_casts=true" in Path(paths[0]).read_text()
    forward, backward = (opt("--run-reproducer", path) for path in paths)
    assert (forward.status, backward.status) == (1, 0)
    assert "pass 'swap-sub' failed: it changes the answer: " in forward.err
    assert "(given inputs)" in forward.err
    assert x.grad is not None  # what the function does is done


def test_wrong_options_are_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="unknown option 'inserts'"):
        inductile.debug.capture(torch.sin, torch.randn(3), folder=str(tmp_path), options={"inserts": {}})
