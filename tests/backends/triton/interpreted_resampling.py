"""Resampling, whose indices are computed in floating point, in Triton's interpreter, against eager bit by bit."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from .interpreted_training import Interpreted

Tensor = torch.Tensor
X = torch.randn(1, 2, 6, 7, generator=torch.Generator().manual_seed(0))

#: name -> function, and whether all its indices are expressions
CASES: dict[str, tuple[Callable[[Tensor], Tensor], bool]] = {
    "twice": (lambda x: F.interpolate(x, scale_factor=2), True),
    "other sizes": (lambda x: F.interpolate(x, size=(13, 4)), True),
    "exact": (lambda x: F.interpolate(x, scale_factor=1.5, mode="nearest-exact"), True),
    "half": (lambda x: F.interpolate(x, scale_factor=0.5), True),
    "three axes": (lambda x: F.interpolate(x[:, None], scale_factor=(1, 2, 3)), True),
    "halved index": (lambda x: x[..., (torch.arange(14) * 0.5).long()], True),
    "from the end": (lambda x: x[..., (torch.arange(3) * -1.0 - 1).long()], True),
    "there and back": (lambda x: x[..., ((torch.arange(7.0) - 3).abs() * 0.5).long()], False),
}


@pytest.mark.parametrize("case", CASES)
def test_equals_eager(case: str) -> None:
    function, expressions = CASES[case]
    torch._dynamo.reset()
    backend = Interpreted()
    assert torch.equal(torch.compile(function, backend=backend, dynamic=False)(X), function(X))
    assert ("f32 to i64" not in backend.text) == expressions


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
@pytest.mark.parametrize("align", [False, True])
def test_weights_are_those_of_eager(mode: str, align: bool) -> None:
    def function(x: Tensor) -> Tensor:
        return F.interpolate(x, scale_factor=2, mode=mode, align_corners=align)

    torch._dynamo.reset()
    backend = Interpreted()
    compiled = torch.compile(function, backend=backend, dynamic=False)(X)
    torch.testing.assert_close(compiled, function(X), rtol=1e-5, atol=1e-5)
