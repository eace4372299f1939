"""Masks, dynamic indices, combining stores, atomics, rows, checks, and several nests in one launch."""

from __future__ import annotations

import math

import pytest
import torch

from .support import check, interpreted, kernel_of, reference

INF, NAN = math.inf, math.nan


@pytest.mark.parametrize("tile", ["", "tile 4", "tile 16"])
@pytest.mark.parametrize("other", ["%k", "%w"])
def test_masked_load(tile: str, other: str) -> None:
    """Padding: outside of the mask nothing is read, not even at addresses that are far off."""
    text = f"""kernel.func @pad(%x: !kernel.buffer<f32, 9>, %z: !kernel.buffer<f32, 13>, %y: !kernel.buffer<f32, 13>)
      target "cuda:90" {{
  kernel.for i0 in 0 to 13 map grid {tile} {{
    %k = arith.constant -1.5 : f32
    %w = kernel.load %z[i0]
    %i = kernel.index i0
    %two = arith.constant 2 : i64
    %end = arith.constant 11 : i64
    %a = arith.cmpi sge, %i, %two : i64
    %b = arith.cmpi slt, %i, %end : i64
    %m = arith.andi %a, %b : i1
    %v = kernel.load %x[i0 - 2] if %m else {other}
    kernel.store %v, %y[i0]
    kernel.yield
  }}
  kernel.yield
}}"""
    check(text, [torch.randn(9), torch.randn(13), torch.zeros(13)])


@pytest.mark.parametrize("tile", ["", "tile 4"])
def test_mask_wider_than_the_place(tile: str) -> None:
    """A load of one place under a mask of every element, and a masked store."""
    text = f"""kernel.func @gate(%x: !kernel.buffer<f32, 1>, %m: !kernel.buffer<i1, 13>, %y: !kernel.buffer<f32, 13>,
      %z: !kernel.buffer<f32, 13>) target "cuda:90" {{
  kernel.for i0 in 0 to 13 map grid {tile} {{
    %k = arith.constant 7.0 : f32
    %b = kernel.load %m[i0]
    %v = kernel.load %x[0] if %b else %k
    kernel.store %v, %y[i0]
    kernel.store %v, %z[12 - i0] if %b
    kernel.yield
  }}
  kernel.yield
}}"""
    check(text, [torch.randn(1), torch.rand(13) < 0.5, torch.zeros(13), torch.full((13,), 5.0)])


def _scatter(kind: str, element: str, tile: str = "tile 8", flags: str = "atomic ") -> str:
    return f"""kernel.func @scatter(%x: !kernel.buffer<{element}, 40>, %i: !kernel.buffer<i64, 40>,
      %y: !kernel.buffer<{element}, 7>) target "cuda:90" {{
  kernel.for i0 in 0 to 40 map grid {tile} {{
    %v = kernel.load %x[i0]
    %j = kernel.load %i[i0]
    kernel.store {kind} {flags}%v, %y[d0] (d0 = %j)
    kernel.yield
  }}
  kernel.yield
}}"""


@pytest.mark.parametrize("tile", ["", "tile 8", "tile 64"])
@pytest.mark.parametrize("element", ["f32", "f64", "i32", "i64"])
@pytest.mark.parametrize("kind", ["add", "amax", "amin"])
def test_atomics(kind: str, element: str, tile: str) -> None:
    dtype = {"f32": torch.float32, "f64": torch.float64, "i32": torch.int32, "i64": torch.int64}[element]
    generator = torch.Generator().manual_seed(0)
    x = (torch.randn(40, generator=generator) * 10).round().to(dtype)
    i = torch.randint(0, 7, (40,), generator=generator)
    y = torch.tensor([0, 3, -3, 20, -20, 1, 2]).to(dtype)
    text = _scatter(kind, element, tile)
    check(text, [x, i, y], zeros=False)
    if dtype.is_floating_point and kind != "add":
        x[torch.arange(0, 40, 9)] = NAN
        x[5], x[6] = INF, -INF
        y[3] = NAN
        got = interpreted(text, [x, i, y], {})[-1]
        wanted = y.scatter_reduce(0, i, x, kind)
        torch.testing.assert_close(got, wanted, equal_nan=True)


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_sums_of_low_precision(element: str) -> None:
    dtype = {"f16": torch.float16, "bf16": torch.bfloat16}[element]
    x, i, y = torch.arange(40).to(dtype), torch.arange(40) % 7, torch.ones(7, dtype=dtype)
    (*_, got) = interpreted(_scatter("add", element), [x, i, y], {})
    torch.testing.assert_close(got, y.index_add(0, i, x))
    text = _scatter("mul", element, flags="").replace("map grid tile 8", "")
    (*_, got) = interpreted(text, [x[:40] / 16 + 1, i, y], {})
    torch.testing.assert_close(got, y.scatter_reduce(0, i, x / 16 + 1, "prod"))


def test_lanes_that_share_a_place_combine_first() -> None:
    text = """kernel.func @sums(%x: !kernel.buffer<f32, 66>, %y: !kernel.buffer<f32, 6>, %z: !kernel.buffer<f32, 1>)
      target "cuda:90" {
  kernel.for i0 in 0 to 6 map grid tile 4 {
    kernel.for i1 in 0 to 11 map grid tile 8 {
      %one = arith.constant 1.0 : f32
      %v = kernel.load %x[11*i0 + i1]
      kernel.store add atomic %v, %y[i0]
      kernel.store add atomic %one, %z[0]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""
    got = check(text, [torch.randn(66), torch.zeros(6), torch.zeros(1)], atol=1e-5)
    assert got[-1].item() == 66
    assert "tl.sum" in kernel_of(text).source


@pytest.mark.parametrize("kind", ["add", "mul", "amax", "amin"])
def test_combining_stores_of_single_places(kind: str) -> None:
    text = f"""kernel.func @update(%x: !kernel.buffer<f32, 13>, %y: !kernel.buffer<f32, 13>) target "cuda:90" {{
  kernel.for i0 in 0 to 13 map grid tile 4 {{
    %v = kernel.load %x[i0]
    kernel.store {kind} %v, %y[12 - i0]
    kernel.yield
  }}
  kernel.yield
}}"""
    check(text, [torch.randn(13), torch.randn(13)])


@pytest.mark.parametrize("kind", ["add", "mul"])
def test_ordered_stores_run_in_one_program(kind: str) -> None:
    text = _scatter(kind, "f32", flags="ordered ").replace("map grid tile 8", "")
    x, i = torch.randn(40), torch.randint(0, 7, (40,))
    check(text, [x, i, torch.ones(7)])


def test_a_row_stays_in_registers() -> None:
    text = """kernel.func @rows(%x: !kernel.buffer<f32, 60>, %y: !kernel.buffer<f32, 60>) target "cuda:90" {
  kernel.for i0 in 0 to 6 map grid tile 4 {
    %k = arith.constant 0.5 : f32
    %row = kernel.local tile : !kernel.buffer<f32, 10, local>
    %s = kernel.reduce sum r0 in 0 to 10 map vector tile 16 {
      %v = kernel.load %x[10*i0 + r0]
      %w = math.exp %v : f32
      kernel.store %w, %row[r0]
      kernel.yield %w
    }
    kernel.for r1 in 0 to 10 map vector tile 16 {
      %w = kernel.load %row[r1]
      %q = arith.divf %w, %s : f32
      kernel.store %q, %y[10*i0 + r1]
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""
    check(text, [torch.randn(60), torch.zeros(60)])
    assert kernel_of(text).source.count("tl.load") == 1


def test_what_was_stored_is_read_behind_a_barrier() -> None:
    text = """kernel.func @reverse(%x: !kernel.buffer<f32, 40>, %t: !kernel.buffer<f32, 40>,
      %y: !kernel.buffer<f32, 40>) target "cuda:90" {
  kernel.for r0 in 0 to 40 map vector tile 16 {
    %v = kernel.load %x[r0]
    kernel.store %v, %t[39 - r0]
    kernel.yield
  }
  kernel.barrier
  kernel.for r1 in 0 to 40 map vector tile 16 {
    %v = kernel.load %t[r1]
    kernel.store %v, %y[r1]
    kernel.yield
  }
  kernel.yield
}"""
    check(text, [torch.randn(40), torch.zeros(40), torch.zeros(40)])
    assert kernel_of(text).source.count("tl.debug_barrier()") == 1


def test_nests_side_by_side_have_programs_of_their_own() -> None:
    text = """kernel.func @several(%x: !kernel.buffer<f32, s0>, %y: !kernel.buffer<f32, s0>,
      %z: !kernel.buffer<f32, 15>, %s: !kernel.buffer<f32, 1>) symbols (s0) target "cuda:90" {
  %k = arith.constant 2.0 : f32
  kernel.for i0 in 0 to s0 map grid tile 8 {
    %v = kernel.load %x[i0]
    %w = arith.mulf %v, %k : f32
    kernel.store %w, %y[i0]
    kernel.yield
  }
  kernel.for i0 in 0 to 3 map grid {
    kernel.for i1 in 0 to 5 map grid tile 4 {
      kernel.store %k, %z[5*i0 + i1]
      kernel.yield
    }
    kernel.yield
  }
  %t = kernel.reduce sum r0 in 0 to s0 map vector tile 4 {
    %v = kernel.load %x[r0]
    kernel.yield %v
  }
  kernel.store %t, %s[0]
  kernel.yield
}"""
    for size in (0, 1, 19):
        check(text, [torch.randn(size), torch.zeros(size), torch.zeros(15), torch.zeros(1)], {"s0": size}, atol=1e-5)


def test_checks_report_the_error_of_their_code() -> None:
    text = """kernel.func @check(%x: !kernel.buffer<i64, 20>, %y: !kernel.buffer<i64, 20>) errors ["IndexError: first",
      "RuntimeError: second"] target "cuda:90" {
  kernel.for i0 in 0 to 20 map grid tile 8 {
    %k = arith.constant 5 : i64
    %n = arith.constant -1 : i64
    %v = kernel.load %x[i0]
    %a = arith.cmpi ne, %v, %k : i64
    %b = arith.cmpi ne, %v, %n : i64
    kernel.assert %a, 1
    kernel.assert %b, 2
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}"""
    x = torch.arange(100, 120)
    check(text, [x, torch.zeros_like(x)])
    for value, message in ((5, "first"), (-1, "second")):
        x[17] = value
        with pytest.raises(RuntimeError, match=message):
            interpreted(text, [x, torch.zeros_like(x)], {})


def test_negative_offsets_divide_towards_minus_infinity() -> None:
    text = """kernel.func @wrap(%x: !kernel.buffer<f32, 10>, %y: !kernel.buffer<f32, 10>) target "cuda:90" {
  kernel.for i0 in 0 to 10 map grid tile 4 {
    %v = kernel.load %x[(i0 - 3) mod 10]
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}"""
    x = torch.randn(10)
    got = check(text, [x, torch.zeros(10)])
    assert torch.equal(got[-1], x.roll(3))


def test_index_of_dynamic_values() -> None:
    text = """kernel.func @take(%x: !kernel.buffer<f32, 60>, %i: !kernel.buffer<i64, 10>, %y: !kernel.buffer<f32, 10>,
      %z: !kernel.buffer<i64, 10>) target "cuda:90" {
  kernel.for i0 in 0 to 10 map grid tile 4 {
    %j = kernel.load %i[i0]
    %v = kernel.load %x[6*i0 + (d0 floordiv 2) mod 6] (d0 = %j)
    %n = kernel.index 2*d0 + i0 (d0 = %j)
    kernel.store %v, %y[i0]
    kernel.store %n, %z[i0]
    kernel.yield
  }
  kernel.yield
}"""
    buffers = [torch.randn(60), torch.arange(-5, 5), torch.zeros(10), torch.zeros(10, dtype=torch.int64)]
    check(text, buffers)
    expected = reference(text, buffers, {})
    assert torch.equal(expected[-1], 2 * buffers[1] + torch.arange(10))


def test_three_dimensions_and_an_outer_axis() -> None:
    text = """kernel.func @permute(%x: !kernel.buffer<f32, 840>, %b: !kernel.buffer<f32, 7>,
      %y: !kernel.buffer<f32, 840>) target "cuda:90" {
  kernel.for i0 in 0 to 4 map grid {
    kernel.for i1 in 0 to 5 map grid tile 2 {
      kernel.for i2 in 0 to 6 map grid tile 4 {
        kernel.for i3 in 0 to 7 map grid tile 8 {
          %v = kernel.load %x[i0 + 4*i1 + 20*i2 + 120*i3]
          %w = kernel.load %b[i3]
          %s = arith.addf %v, %w : f32
          kernel.store %s, %y[210*i0 + 42*i1 + 7*i2 + i3]
          kernel.yield
        }
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  kernel.yield
}"""
    x, b = torch.randn(7, 6, 5, 4), torch.randn(7)
    got = check(text, [x, b, torch.zeros(840)])
    assert torch.equal(got[-1].view(4, 5, 6, 7), x.permute(3, 2, 1, 0) + b)


def test_programs_that_wait_for_launches_in_front() -> None:
    """The await stands in a loop, behind the loads of a weight and in front of what another launch wrote."""
    text = """kernel.func @sum(%x: !kernel.buffer<f32, 96>, %w: !kernel.buffer<i8, 768>, %y: !kernel.buffer<f32, 8>)
    target "cuda:90" num_warps 4 {
  kernel.for i0 in 0 to 8 map grid tile 2 {
    %s = kernel.reduce sum i1 in 0 to 96 map vector tile 64 {
      %b = kernel.load %w[96*i0 + i1]
      kernel.release
      kernel.await
      %a = kernel.load %x[i1]
      %f = scalar.cast %b : i8 to f32
      %p = arith.mulf %a, %f : f32
      kernel.yield %p
    }
    kernel.store %s, %y[i0]
    kernel.yield
  }
  kernel.yield
}"""
    kernel = kernel_of(text)
    assert kernel.overlaps and "nvidia.let_next_begin()" in kernel.source
    assert not kernel_of(text.replace("kernel.await", "")).overlaps
    other = kernel_of(text.replace("cuda:90", "hip:gfx942"))
    assert not other.overlaps and "nvidia." not in other.source
    weight = torch.randint(-128, 128, (768,), dtype=torch.int8)
    check(text, [torch.randn(96), weight, torch.zeros(8)], rtol=1e-4, atol=1e-3)
