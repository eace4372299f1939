"""Launches that are one on a GPU, in Triton's interpreter."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.host import build
from inductile.backends.reference import run_module

from .merged import PROGRAMS, inputs_of, merged, plain


@pytest.mark.parametrize("size", [0, 1, 12])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, size: int) -> None:
    before = plain(name)
    inputs = inputs_of(before, size)
    expected = run_module(before, inputs)
    for one, other in zip(build(merged(name))(list(inputs)), expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-4)
