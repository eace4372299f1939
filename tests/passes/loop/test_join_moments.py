"""`loop-join-moments` keeps the mean that a program has: with infinities, sums that overflow, and large offsets."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.reference import run_module

from .conftest import parse, transform

COLUMN = '!aten.tensor<4xf32, device = "cuda:0">'
PROGRAM = f"""
func.func @columns(%x: !aten.tensor<4096x4xf32, device = "cuda:0">) -> ({COLUMN}, {COLUMN}) {{
  %m = loop.generate (i0 in 4) {{
    %s = loop.reduce sum (r0 in 4096) {{
      %v = loop.load %x[r0, i0]
      loop.yield %v
    }}
    %n = arith.constant 4096.0 : f32
    %d = arith.divf %s, %n : f32
    loop.yield %d
  }} : {COLUMN}
  %q = loop.generate (i0 in 4) {{
    %s = loop.reduce sum (r0 in 4096) {{
      %v = loop.load %x[r0, i0]
      %a = loop.load %m[i0]
      %d = arith.subf %v, %a : f32
      %p = arith.mulf %d, %d : f32
      loop.yield %p
    }}
    loop.yield %s
  }} : {COLUMN}
  func.return %m, %q : {COLUMN}, {COLUMN}
}}
"""


@pytest.mark.parametrize("value", [float("inf"), -float("inf"), float("nan"), 3e38, 1e4])
def test_the_mean_is_the_programs_own(value: float) -> None:
    x = torch.randn(4096, 4)
    x[:, 0] = value
    x[7, 1] = value
    before, after = parse(PROGRAM), parse(PROGRAM)
    transform(after, "loop-join-moments,loop-split-reductions")
    assert "welford" in str(after)
    expected, got = (run_module(module, [x.clone()], "columns") for module in (before, after))
    torch.testing.assert_close(got[0], expected[0], equal_nan=True)
    torch.testing.assert_close(got[1], expected[1], equal_nan=True, rtol=1e-3, atol=1e-3)
