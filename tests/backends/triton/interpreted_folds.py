"""Axes that lanes take in parts, side by side, or all as one, in Triton's interpreter, against eager bit by bit."""

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


def _normalised(x: torch.Tensor) -> torch.Tensor:
    return _positions(x / x.abs().amax(-1, keepdim=True))


def _pairs(x: torch.Tensor) -> torch.Tensor:
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * 0.5 - odd, even + odd * 0.5), -1).flatten(-2)


#: name -> function, and what the IR of its kernel then has
CASES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], str]] = {
    "halves": (_positions, "in 0 to 64 map"),
    "quarters": (_quarters, "in 0 to 32 map"),
    "rows": (lambda x: x + torch.cat((x[:, 40:], -x[:, :40]), 1), "in 0 to 40 map"),
    "in place": (_in_place, "in 0 to 64 map"),
    "normalised": (_normalised, "in 0 to 64 map"),
    "pairs": (_pairs, r"store .*2\*i\d+ \+ 1"),
    "pairs behind": (lambda x: torch.stack((x, -x), -1), r"store .*2\*i\d+ \+ 1"),
    "triples": (lambda x: torch.stack((x, -x, x + 1), -1), r"index i\d+ mod 3"),
    "padded": (lambda x: torch.nn.functional.pad(x[..., :33], (1, 1)) * 2, r"index i\d+ mod 35"),
    "half of a copy": (_updated, "in 0 to 64 map"),
    "two results": (lambda x: torch.stack((_positions(x), _rotate(x) - x)), "in 0 to 64 map"),
}
#: what is not five rows of 128: each row takes the interpreter milliseconds
SHAPES = {"rows": (80, 16)}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("dynamic", [False, True])
def test_equals_eager(case: str, dynamic: bool) -> None:
    function, shown = CASES[case]
    torch._dynamo.reset()
    backend = Interpreted()
    compiled = torch.compile(function, backend=backend, dynamic=dynamic)
    for batch in (2, 3) if dynamic else (2,):
        x = torch.randn(batch, *SHAPES.get(case, (5, 128)), generator=torch.Generator().manual_seed(batch))
        x[0, :, ::7], x[1, :, ::5] = float("nan"), -0.0
        y = x.clone()
        if dynamic:
            for tensor, dim in ((x, 1), (x, 2), (y, 1), (y, 2)):
                torch._dynamo.mark_static(tensor, dim)
        got, expected = compiled(x), function(y)
        for one, other in ((got, expected), (x, y)):
            assert torch.equal(one.isnan(), other.isnan())
            assert torch.equal(one.nan_to_num(7.0), other.nan_to_num(7.0))
            assert torch.equal(one.signbit() & (one == 0), other.signbit() & (other == 0))
    assert re.search(shown, backend.text), "no such axis"


def test_parts_that_leave_an_element() -> None:
    torch._dynamo.reset()
    backend = Interpreted()

    def function(x: torch.Tensor) -> torch.Tensor:
        return x + torch.cat((x[:, 33:], -x[:, :33]), 1)

    x = torch.randn(80, 65, generator=torch.Generator().manual_seed(0))
    assert torch.equal(torch.compile(function, backend=backend)(x), function(x))
    assert re.search(r"kernel\.for \w+ in 0 to 5200 map grid", backend.text)
