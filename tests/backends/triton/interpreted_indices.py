"""Values computed of indices, which may need more bits than offsets do, in Triton's interpreter, against eager."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from .interpreted_training import Interpreted

CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "product": lambda x: torch.arange(x.shape[0]) * 300000 + x,
    "negative": lambda x: torch.arange(x.shape[0]) * -300000 + x,
    "square": lambda x: (torch.arange(x.shape[0]) * 7) ** 2 + x,
    "line": lambda x: (torch.arange(x.shape[0], dtype=torch.float64) * 299999.5).long() + x,
    "sum": lambda x: (torch.arange(x.shape[0]) * 300000).sum() + x,
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_values_beyond_32_bits(case: str, dynamic: bool) -> None:
    torch._dynamo.reset()
    x = torch.zeros(8000, dtype=torch.int64)
    got = torch.compile(CASES[case], backend=Interpreted(), dynamic=dynamic)(x)
    assert torch.equal(got, CASES[case](x))


def test_offset_that_divides_more_than_32_bits() -> None:
    torch._dynamo.reset()
    x = torch.arange(8000)

    def function(x: torch.Tensor) -> torch.Tensor:
        return x[torch.arange(8000) * 300000 // 300001]

    assert torch.equal(torch.compile(function, backend=Interpreted())(x), function(x))
