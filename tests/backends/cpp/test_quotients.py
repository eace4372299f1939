"""Divisions of indices by symbols stand in front of the loops that they do not change in."""

from __future__ import annotations

import pytest
import torch

from .programs import emit, run_kernel

pytestmark = pytest.mark.usefixtures("target")

SPLIT = """
kernel.func @split(%x: !kernel.buffer<f32, s0*s1>, %y: !kernel.buffer<f32, s0*s1>) symbols (s0, s1) {
  kernel.for i0 in 0 to s0*s1 map parallel {
    kernel.for i1 in 0 to s1 map vector {
      %v = kernel.load %x[s1*(i0 floordiv s1) + i1]
      kernel.store %v, %y[s1*(i0 floordiv s1) + i1] ordered
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""


def test_a_quotient_is_computed_once_in_front_of_the_lanes() -> None:
    text = emit(SPLIT.replace(" ordered", "")).text
    assert text.count("div_floor") + text.count("/ s1") == 1
    assert text.index("quotient =") < text.index("omp simd") if "omp simd" in text else "quotient =" in text


@pytest.mark.parametrize("rows", [0, 3])
@pytest.mark.parametrize("width", [0, 5])
def test_no_size_is_too_small(rows: int, width: int) -> None:
    x = torch.randn(rows * width)
    y = run_kernel(SPLIT.replace(" ordered", ""), x, torch.full_like(x, 7.0), rows, width)
    assert torch.equal(y, x)


NEVER = """
kernel.func @never(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) symbols (s0) {
  kernel.for i0 in 0 to 8 map parallel {
    kernel.for i1 in 0 to s0 {
      %v = kernel.load %x[i0 mod s0]
      kernel.store %v, %y[i0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_loop_that_does_not_run_divides_by_nothing(size: int) -> None:
    x = torch.randn(8)
    y = run_kernel(NEVER, x, torch.full_like(x, 7.0), size)
    expected = x[torch.arange(8) % size] if size else torch.full_like(x, 7.0)
    assert torch.equal(y, expected)
