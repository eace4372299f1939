"""Columns summed beside the rows on a GPU, in Triton's interpreter, against eager."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from inductile.backends.host import build
from inductile.machines import TARGETS
from inductile.passes.loop import split_reductions

from .joined import FUNCTIONS, captured, joint, lowered

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}


@pytest.fixture(autouse=True)
def _fewest_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU of few processors, which few rows keep busy: the interpreter takes 10 ms for a row."""
    monkeypatch.setitem(TARGETS, "cuda:90", replace(TARGETS["cuda:90"], processors=8))
    monkeypatch.setattr(split_reductions, "JOINED_PARTS", 8)


def _check(name: str, shape: tuple[int, ...], dtype: torch.dtype, dynamic: bool = False) -> None:
    backend, exact = captured(name, shape, dtype, dynamic)
    assert backend.module is not None
    module = lowered(backend.module)
    assert joint(module)
    got = [g for g in build(module)(list(backend.arguments)) if g is not None]
    # eager's own order of the gradients
    for one, other in zip(got, exact, strict=True):
        error = (one.double() - other).norm() / other.norm()
        assert one.shape == other.shape and error < TOLERANCE[dtype]


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_dtypes(dtype: torch.dtype) -> None:
    _check("layer_norm", (96, 520), dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_rows_that_do_not_fill_the_parts(name: str) -> None:
    _check(name, (97, 512), torch.bfloat16)


def test_dynamic_rows() -> None:
    _check("layer_norm", (97, 512), torch.float32, True)
