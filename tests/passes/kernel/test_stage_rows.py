"""Rows that lie across memory, read through a buffer, equal eager's answer; and the pass has fired."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

import inductile

Program = Callable[[torch.Tensor], torch.Tensor]

PROGRAMS: dict[str, Program] = {
    "softmax": lambda x: x.transpose(-1, -2).softmax(-1),
    "layer norm": lambda x: F.layer_norm(x.transpose(-1, -2), (x.shape[-2],)),
    "flattened image": lambda x: x.unflatten(-2, (-1, 5)).permute(0, 3, 1, 2).flatten(2).log_softmax(-1),
    "part of each row": lambda x: x[:, 3:, 1:].transpose(-1, -2).softmax(-1),
}


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, torch.float32) for name in PROGRAMS] + [("softmax", torch.bfloat16)]
)
def test_equals_eager(name: str, dtype: torch.dtype) -> None:
    program = PROGRAMS[name]
    torch._dynamo.reset()
    x = torch.randn(3, 205, 333, generator=torch.Generator().manual_seed(0)).to(dtype)
    assert "rows at once, through a local buffer" in str(inductile.explain(program)(x))
    _check(program, torch.compile(program, backend="inductile"), x)


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_equals_eager_for_any_size(name: str) -> None:
    program = PROGRAMS[name]
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="inductile", dynamic=True)
    for rows, columns in ((205, 333), (515, 96), (70, 18)):
        _check(program, compiled, torch.randn(2, rows, columns, generator=torch.Generator().manual_seed(rows)))


def _check(program: Program, compiled: Program, x: torch.Tensor) -> None:
    expected, answer = program(x), compiled(x)
    assert answer.stride() == expected.stride()
    torch.testing.assert_close(answer, expected)
