"""Small models on a GPU: inference in both types, and a training step's gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from ..scripts import load_benchmark

pytestmark = pytest.mark.gpu

models = load_benchmark("models")
TRAINED = ("bert", "gpt2", "llama", "resnet50", "vit", "t5", "convnext", "mobilenetv3")


def _error(got: torch.Tensor, exact: torch.Tensor) -> float:
    return float((got.double() - exact).norm() / exact.norm())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", list(models.MODELS))
def test_inference(name: str, dtype: torch.dtype) -> None:
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        function, inputs = models.build(name, dtype, small=True, device="cuda")
        wide, wide_inputs = models.build(name, torch.float64, small=True, device="cuda")
        exact = wide(*wide_inputs)
        eager = _error(function(*inputs), exact)
        compiled = torch.compile(function, backend="inductile")
        for _ in range(2):
            assert _error(compiled(*inputs), exact) <= 2 * eager + (5e-3 if dtype is torch.bfloat16 else 1e-5)


def _gradients(name: str, dtype: torch.dtype, backend: str, autocast: bool = False) -> torch.Tensor:
    """All gradients of a step as one vector; a norm of each alone would be noise over noise where one is zero."""
    function, inputs = models.build(name, dtype, small=True, device="cuda")
    module: Any = getattr(function, "module", function)
    call = torch.compile(function, backend=backend) if backend else function
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        output = call(*inputs)
    output.float().square().mean().backward() if dtype is not torch.float64 else output.square().mean().backward()
    return torch.cat([p.grad.double().flatten() for p in module.parameters() if p.grad is not None])


@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("name", TRAINED)
def test_training_step(name: str, autocast: bool) -> None:
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        exact = _gradients(name, torch.float64, "")
        eager = _error(_gradients(name, torch.float32, "", autocast), exact)
        got = _error(_gradients(name, torch.float32, "inductile", autocast), exact)
    assert got <= 2 * eager + (1e-2 if autocast else 1e-4)
