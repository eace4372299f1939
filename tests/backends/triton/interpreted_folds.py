"""Lanes that compute an element of each part of an axis, in Triton's interpreter, against eager bit by bit."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
import torch

from .interpreted_training import Interpreted


def _quarters(x: torch.Tensor) -> torch.Tensor:
    a, b, c, d = x.split(32, -1)
    return x * 0.5 + torch.cat((-d, c.abs(), b, -a), -1)


def _rotate(x: torch.Tensor) -> torch.Tensor:
    return torch.cat((-x[..., 64:], x[..., :64]), -1)


def _positions(x: torch.Tensor) -> torch.Tensor:
    angle = torch.arange(128.0) * 0.01
    return x * angle.cos() + _rotate(x) * angle.sin()


def _in_place(x: torch.Tensor) -> torch.Tensor:
    x.copy_(_positions(x))
    return x + 1


def _updated(x: torch.Tensor) -> torch.Tensor:
    y = x * 3
    y[..., :64] += x[..., 64:]
    return y


#: name -> function, and the extents that the folded axis may have
CASES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "halves": (_positions, "64"),
    "quarters": (_quarters, "32"),
    "rows": (lambda x: x + torch.cat((x[:, 40:], -x[:, :40]), 1), "40"),
    "in place": (_in_place, "64"),
    "half of a copy": (_updated, "64"),
    "two results": (lambda x: torch.stack((_positions(x), _rotate(x) - x)), "64"),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_equals_eager(case: str, dynamic: bool) -> None:
    function, extent = CASES[case]
    torch._dynamo.reset()
    backend = Interpreted()
    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    for batch in (2, 3) if dynamic else (2,):
        x = torch.randn(batch, 80, 128, generator=torch.Generator().manual_seed(batch))
        x[0, :, ::7], x[1, :, ::5] = float("nan"), -0.0
        y = x.clone()
        if dynamic:
            torch._dynamo.mark_static(x, 1), torch._dynamo.mark_static(x, 2)
            torch._dynamo.mark_static(y, 1), torch._dynamo.mark_static(y, 2)
        got, expected = compiled(x), function(y)
        for one, other in ((got, expected), (x, y)):
            assert torch.equal(one.isnan(), other.isnan())
            assert torch.equal(one.nan_to_num(7.0), other.nan_to_num(7.0))
            assert torch.equal(one.signbit() & (one == 0), other.signbit() & (other == 0))
    assert re.search(rf"kernel\.for \w+ in 0 to {extent} map grid", backend.text), "no axis was folded"


def test_parts_that_leave_an_element() -> None:
    torch._dynamo.reset()
    backend = Interpreted()

    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.cat((x[:, 33:], -x[:, :33]), 1)

    x = torch.randn(80, 65, generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.compile(function, backend=backend)(x), function(x))
    assert re.search(r"kernel\.for \w+ in 0 to 65 map grid", backend.text)
