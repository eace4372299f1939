"""Functions over every value of a 16-bit type: approximate in float32, as exact as eager where it shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.gpu

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "exp": torch.exp,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "ratio": lambda x: x / (1 + torch.exp(-x)),
}


def every_value(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype).cuda()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_value(name: str, dtype: torch.dtype) -> None:
    """The nearest 16-bit value nearly always; else a neighbour of it, or what eager has in float32."""
    function, x = FUNCTIONS[name], every_value(dtype)
    got, eager = torch.compile(function, backend="inductile")(x), function(x.float()).to(dtype)
    want = function(x.double()).to(dtype)
    assert torch.equal(got.isnan(), want.isnan())
    got, eager, want = (y.nan_to_num(7.0, torch.inf, -torch.inf) for y in (got, eager, want))
    differ = got != want
    assert differ.float().mean() < 2e-3
    near = [torch.nextafter(want, torch.full_like(want, end)) for end in (torch.inf, -torch.inf)]
    assert bool((~differ | (got == eager) | (got == near[0]) | (got == near[1])).all())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounding_like_eager(dtype: torch.dtype) -> None:
    """`emulate_precision_casts` promises the bits of eager."""
    x = every_value(dtype)
    got = torch.compile(lambda x: torch.exp(x) * 2, backend="inductile", options={"emulate_precision_casts": True})(x)
    assert torch.equal(got.nan_to_num(7.0), (torch.exp(x) * 2).nan_to_num(7.0))
