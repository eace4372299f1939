"""The five patterns of hand-written kernels against eager. Runs with TRITON_INTERPRET=1; see test_interpreter.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from inductile.backends.triton import TritonKernel, emit
from inductile.backends.triton.interpreter import run_interpreted

from .support import parse

PATTERNS = Path(__file__).parent / "Inputs" / "patterns.mlir"


@pytest.fixture(scope="module")
def kernels() -> dict[str, TritonKernel]:
    return {k.name: k for k in emit(parse(PATTERNS.read_text()))}


def test_softmax_in_registers(kernels: dict[str, TritonKernel]) -> None:
    x = torch.randn(5, 300)
    x[1, 3], x[2] = float("nan"), -float("inf")
    y = torch.empty_like(x)
    run_interpreted(kernels["softmax"], [x, y], {"s0": 5})
    torch.testing.assert_close(y, x.softmax(-1), equal_nan=True)


def test_softmax_in_loops(kernels: dict[str, TritonKernel]) -> None:
    x = torch.randn(5, 300).bfloat16()
    y = torch.empty_like(x)
    run_interpreted(kernels["softmax_looped"], [x, y], {"s0": 5})
    torch.testing.assert_close(y, x.softmax(-1))


def test_layer_norm(kernels: dict[str, TritonKernel]) -> None:
    x, g = torch.randn(7, 768), torch.randn(768)
    y = torch.empty_like(x)
    run_interpreted(kernels["layer_norm"], [x, g, y], {"s0": 7})
    torch.testing.assert_close(y, F.layer_norm(x, [768], g))


def test_add_transposed(kernels: dict[str, TritonKernel]) -> None:
    x, y, z = torch.randn(70, 100), torch.randn(100, 70), torch.empty(70, 100)
    run_interpreted(kernels["add_transposed"], [x, y, z], {})
    torch.testing.assert_close(z, x + y.t())


def test_column_sum(kernels: dict[str, TritonKernel]) -> None:
    x, y = torch.randn(37, 100), torch.empty(100)
    run_interpreted(kernels["column_sum"], [x, y], {"s0": 37})
    torch.testing.assert_close(y, x.tanh().sum(0))


def test_gather_reports_an_index_and_does_not_follow_it(kernels: dict[str, TritonKernel]) -> None:
    w, i, y = torch.randn(800, 64).bfloat16(), torch.randint(0, 800, (19,)), torch.zeros(19, 64)
    assert run_interpreted(kernels["gather"], [w, i, y], {"s0": 19}) == []
    torch.testing.assert_close(y, w[i].float())
    i[3] = 1 << 40  # reading there would crash
    assert run_interpreted(kernels["gather"], [w, i, y], {"s0": 19}) == ["IndexError: index out of range"]


def test_an_empty_grid_launches_nothing(kernels: dict[str, TritonKernel]) -> None:
    x = torch.empty(0, 300)
    assert run_interpreted(kernels["softmax"], [x, x.clone()], {"s0": 0}) == []
