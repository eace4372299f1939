"""Transposes in blocks, and lanes rid of what is the same in all of them, compute what eager does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "whole blocks": lambda x: x[:64, :64] + x[:64, :64].t(),
    "ragged blocks": lambda x: x + x.t(),
    "two transposes": lambda x: x.t() * (x + 1).t() + x,
    "transposed planes": lambda x: x.reshape(7, 10, 70).transpose(1, 2) + x.reshape(7, 70, 10),
    "written where it is read": lambda x: x.t().contiguous().mul_(2).t() + x,
    "rows scaled": lambda x: (x * (x[:, :1].exp() + 1) - x[0]).relu(),
    "lanes of an axis that may be empty": lambda x: x[:, 70:] * x[:, :1].exp(),
}


@pytest.mark.rotates(2, each="case")
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_equals_eager(case: str, dynamic: bool, dtype: torch.dtype) -> None:
    x = torch.randn(70, 70, generator=torch.Generator().manual_seed(0)).to(dtype)
    x[0, ::7] = float("nan")
    torch._dynamo.reset()
    compiled = torch.compile(
        CASES[case], backend="inductile", dynamic=dynamic, options={"emulate_precision_casts": True}
    )
    torch.testing.assert_close(compiled(x), CASES[case](x), equal_nan=True)
