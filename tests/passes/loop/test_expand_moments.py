"""A mean and squared deviations are the same as one reduction and as two: with infinities, overflow, large offsets."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.reference import run_module

from .conftest import parse, transform

COLUMN = '!aten.tensor<4xf32, device = "cuda:0">'
PROGRAM = f"""
func.func @columns(%x: !aten.tensor<4096x4xf32, device = "cuda:0">) -> ({COLUMN}, {COLUMN}) {{
  %m, %q = loop.generate (i0 in 4) {{
    %s, %a, %b, %c = loop.reduce [sum, welford] (r0 in 4096) {{
      %v = loop.load %x[r0, i0]
      %zero = arith.constant 0.0 : f32
      %one = arith.constant 1.0 : f32
      loop.yield %v, %v, %zero, %one
    }}
    %n = arith.constant 4096.0 : f32
    %mean = arith.divf %s, %n : f32
    %d = arith.subf %mean, %a : f32
    %p = arith.mulf %d, %d : f32
    %t = arith.mulf %p, %c : f32
    %squares = arith.addf %b, %t : f32
    loop.yield %mean, %squares
  }} : {COLUMN}, {COLUMN}
  func.return %m, %q : {COLUMN}, {COLUMN}
}}
"""


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan"), 3e38, 1e4])
def test_the_mean_is_the_programs_own(value: float) -> None:
    x = torch.randn(4096, 4)
    x[:, 0] = value
    x[7, 1] = value
    apart, cut = parse(PROGRAM), parse(PROGRAM)
    transform(apart, "loop-expand-moments{programs=4}")
    transform(cut, "loop-expand-moments,loop-split-reductions")
    assert "welford" in str(cut) and "welford" not in str(apart)
    expected, got = (run_module(module, [x.clone()], "columns") for module in (apart, cut))
    torch.testing.assert_close(got[0], expected[0], equal_nan=True)
    torch.testing.assert_close(got[1], expected[1], equal_nan=True, rtol=1e-3, atol=1e-3)
