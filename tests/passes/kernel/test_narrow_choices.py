"""All numbers of bfloat16 through what chooses among them: `kernel-narrow-choices`."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

CHOICES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": torch.relu,
    "clamp": lambda x: x.clamp(-0.5, 3.0),
    "unrepresentable": lambda x: x.clamp(max=0.3),
    "maximum": lambda x: torch.maximum(x, x.flip(0)),
    "where": lambda x: torch.where(x > 1, x, x.roll(1)),
    "pool": lambda x: torch.nn.functional.max_pool2d(x.view(1, 1, 256, 256), 3, 2, 1),
}


@pytest.mark.parametrize("name", CHOICES)
def test_every_number_is_chosen_as_eager_chooses_it(name: str) -> None:
    x = torch.arange(-(1 << 15), 1 << 15).to(torch.int16).view(torch.bfloat16)
    torch._dynamo.reset()
    compiled = torch.compile(CHOICES[name], backend="inductile")(x)
    expected = CHOICES[name](x)
    is_nan = expected.isnan()
    assert torch.equal(compiled.isnan(), is_nan)
    same = compiled.view(torch.int16) == expected.view(torch.int16)
    both_zero = (compiled == 0) & (expected == 0)  # which zero a maximum of both takes is open
    assert (same | is_nan | both_zero).all()
