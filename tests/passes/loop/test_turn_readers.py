"""`loop-turn-readers`: nests that read scans backwards give the same elements, and join the scans."""

from __future__ import annotations

import pytest
import torch

import inductile.backends.torch_compile as backend
from inductile.backends.reference import run_module
from inductile.dialects.loop import FusionOp, ScatterOp

from .conftest import parse, transform

PROGRAM = """
func.func @forward(%x: !aten.tensor<3x7xf32>, %y: !aten.tensor<3x7xf32>) -> !aten.tensor<3x7xf32> {
  %s = loop.scan sum (i0 in 3, i1 in 7) along i1 {
    %0 = loop.load %x[i0, -i1 + 6]
    loop.yield %0
  } : !aten.tensor<3x7xf32>
  %r = loop.generate (i0 in 3, i1 in 7) {
    %1 = loop.load %s[i0, -i1 + 6]
    %2 = loop.load %y[i0, i1]
    %3 = loop.index 2*i1
    %4 = scalar.cast %3 : i64 to f32
    %5 = arith.mulf %1, %2 : f32
    %6 = arith.addf %5, %4 : f32
    loop.yield %6
  } : !aten.tensor<3x7xf32>
  func.return %r : !aten.tensor<3x7xf32>
}
"""


def test_the_same_elements_in_one_fusion() -> None:
    x, y = torch.randn(3, 7), torch.randn(3, 7)
    module = parse(PROGRAM)
    transform(module, "loop-turn-readers,loop-fuse")
    assert sum(isinstance(op, ScatterOp) for op in module.walk()) == 1
    assert sum(isinstance(op, FusionOp) for op in module.walk()) == 1
    (got,) = run_module(module, [x, y])
    exact = x.double().flip(-1).cumsum(-1).flip(-1) * y.double() + 2 * torch.arange(7)
    torch.testing.assert_close(got, exact.float())


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_gradients_of_cumulative_sums(dim: int, dynamic: bool) -> None:
    torch._dynamo.reset()

    def function(x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(dim).sin()

    compiled = torch.compile(function, backend=backend.inductile, dynamic=dynamic)
    for rows in (5, 9):
        x, y = (torch.linspace(-1, 1, rows * 33).reshape(rows, 33).requires_grad_() for _ in range(2))
        compiled(x).sum().backward()
        function(y).sum().backward()
        torch.testing.assert_close(x.grad, y.grad)
