"""Sizes that only the data decide: what uses them comes after what makes them, and both may stand beside others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

CASES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a sum and a count": lambda x: x.sum() + x.nonzero().shape[0],
    "a count of what is computed beside": lambda x: x.sum() * 2 + (x > 0).nonzero().shape[0] + x.sum(0),
    "a kernel that feeds the count and one that uses it": lambda x: (x * 2) + (x * 2).nonzero().shape[0],
    "a tensor of that size": lambda x: torch.ones(x.nonzero().shape[0]) * x.sum(),
    "temporaries in front of that size and behind it": lambda x: (
        (x.sin().sort().values * x.cos().sort().values).sum()
        + (x[x > 0].sin().sort().values * x[x > 0].cos().sort().values).sum()
    ),
    "two counts": lambda x: x.sum() + x.nonzero().shape[0] * (x > 1).nonzero().shape[0],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_equals_eager(case: str, dynamic: bool) -> None:
    torch._dynamo.reset()
    x = torch.tensor([1.0, 0.0, 2.0, 3.0])
    compiled = torch.compile(CASES[case], backend="inductile", fullgraph=True, dynamic=dynamic)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        torch.testing.assert_close(compiled(x), CASES[case](x))


EXTREMA: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "maximum": lambda x: x[x > 5].max(),
    "minimum": lambda x: x[x > 5].min(),
    "maximum along the only axis": lambda x: x[x > 5].max(0)[0],
}


@pytest.mark.parametrize("case", EXTREMA)
def test_extrema_of_what_turns_out_empty_raise(case: str) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(EXTREMA[case], backend="inductile", fullgraph=True)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        x = torch.tensor([1.0, 6.0, 9.0, 3.0])
        assert compiled(x) == EXTREMA[case](x)
        with pytest.raises((RuntimeError, IndexError), match="Expected reduction dim"):
            compiled(torch.zeros(4))
