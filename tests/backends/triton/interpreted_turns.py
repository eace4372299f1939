"""Programs that take the iterations of the grid in turns."""

from __future__ import annotations

import pytest
import torch

from .support import check, interpreted, kernel_of


def _rows(programs: int, rows: str, symbols: str = "") -> str:
    return f"""kernel.func @rows(%x: !kernel.buffer<f32, 48*{rows}>, %y: !kernel.buffer<f32, 48*{rows}>) {symbols}
      target "cuda:90" num_warps 4 programs {programs} {{
  kernel.for i0 in 0 to {rows} map grid {{
    kernel.for i1 in 0 to 3 map grid {{
      %s = kernel.reduce sum r0 in 0 to 16 map vector tile 8 {{
        %v = kernel.load %x[48*i0 + 16*i1 + r0]
        kernel.yield %v
      }}
      kernel.for i2 in 0 to 16 map vector tile 8 {{
        %v = kernel.load %x[48*i0 + 16*i1 + i2]
        %d = arith.subf %v, %s : f32
        kernel.store %d, %y[48*i0 + 16*i1 + i2]
        kernel.yield
      }}
      kernel.yield
    }}
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.mark.parametrize("programs", [1, 2, 15, 64])
def test_fewer_programs_than_rows_and_more(programs: int) -> None:
    text = _rows(programs, "5")
    check(text, [torch.randn(240), torch.zeros(240)])
    assert kernel_of(text).programs({}) == min(programs, 15)


@pytest.mark.parametrize("rows", [1, 4])
def test_how_many_rows_there_are_shows_at_the_launch(rows: int) -> None:
    text = _rows(7, "s0", "symbols (s0)")
    check(text, [torch.randn(48 * rows), torch.zeros(48 * rows)], {"s0": rows})
    assert kernel_of(text).programs({"s0": rows}) == min(7, 3 * rows)


def test_more_than_one_nest_has_programs_of_its_own() -> None:
    text = """kernel.func @two(%x: !kernel.buffer<f32, 8>, %y: !kernel.buffer<f32, 8>) target "cuda:90" programs 2 {
  kernel.for i0 in 0 to 4 map grid {
    %v = kernel.load %x[i0]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.for i1 in 4 to 8 map grid {
    %v = kernel.load %x[i1]
    kernel.store %v, %y[i1]
    kernel.yield
  }
  kernel.yield
}"""
    with pytest.raises(Exception, match="one nest"):
        interpreted(text, [torch.randn(8), torch.zeros(8)], {})
