"""Samples of the loop level against torch, and programs that have no meaning."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.reference import (
    InputError,
    InterpretationError,
    LifetimeError,
    OutOfBoundsError,
    RaceError,
    differences,
    run_module,
)

from .helpers import parse, run

SOFTMAX = """
func.func @f(%x: !aten.tensor<(s0)x(s1)xf32>) -> !aten.tensor<(s0)x(s1)xf32>
    attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 2>, #sym.symbol<s1, arg = 0, dim = 1>]} {
  %y = loop.fusion (a0 in s0 | a1 in s1) {
    %m = loop.generate (i0 in s0) on (a0) {
      %r = loop.reduce max (r0 in s1) on (a1) {
        %v = loop.load %x[i0, r0]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<(s0)xf32>
    %e = loop.generate (i0 in s0, i1 in s1) on (a0, a1) {
      %v = loop.load %x[i0, i1]
      %mm = loop.load %m[i0]
      %d = arith.subf %v, %mm : f32
      %x1 = math.exp %d : f32
      loop.yield %x1
    } : !aten.tensor<(s0)x(s1)xf32>
    %s = loop.generate (i0 in s0) on (a0) {
      %r = loop.reduce sum (r0 in s1) on (a1) {
        %v = loop.load %e[i0, r0]
        loop.yield %v
      }
      loop.yield %r
    } : !aten.tensor<(s0)xf32>
    %o = loop.generate (i0 in s0, i1 in s1) on (a0, a1) {
      %v = loop.load %e[i0, i1]
      %r = loop.load %s[i0]
      %q = arith.divf %v, %r : f32
      loop.yield %q
    } : !aten.tensor<(s0)x(s1)xf32>
    loop.yield %o
  } : !aten.tensor<(s0)x(s1)xf32>
  func.return %y : !aten.tensor<(s0)x(s1)xf32>
}"""


def unfused(text: str) -> str:
    """The members without the fusion around them."""
    for place in (" on (a0)", " on (a1)", " on (a0, a1)"):
        text = text.replace(place, "")
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if "loop.fusion" in line)
    end = next(k for k, line in enumerate(lines) if line == "    loop.yield %o")
    return "\n".join([*lines[:start], *lines[start + 1 : end], *lines[end + 2 :]]).replace("return %y", "return %o")


@pytest.mark.parametrize("shape", [(3, 7), (2, 1), (5, 0), (64, 4096)])
@pytest.mark.parametrize("wide", [False, True])
def test_softmax(shape: tuple[int, int], wide: bool) -> None:
    x = torch.randn(shape)
    (got,) = run(SOFTMAX, x, wide=wide)
    assert not differences(x.softmax(1), got)
    (again,) = run(unfused(SOFTMAX), x, wide=wide)
    assert torch.equal(got, again)


def test_layer_norm() -> None:
    x, w, b = torch.randn(6, 33), torch.randn(33), torch.randn(33)
    (got,) = run(
        """func.func @f(%x: !aten.tensor<6x33xf32>, %w: !aten.tensor<33xf32>, %b: !aten.tensor<33xf32>)
            -> !aten.tensor<6x33xf32> {
          %mean, %m2 = loop.generate (i0 in 6) {
            %zero = arith.constant 0.0 : f32
            %one = arith.constant 1.0 : f32
            %m, %q, %n = loop.reduce welford (r0 in 33) {
              %v = loop.load %x[i0, r0]
              loop.yield %v, %zero, %one
            }
            loop.yield %m, %q
          } : !aten.tensor<6xf32>, !aten.tensor<6xf32>
          %y = loop.generate (i0 in 6, i1 in 33) {
            %v = loop.load %x[i0, i1]
            %m = loop.load %mean[i0]
            %q = loop.load %m2[i0]
            %n = arith.constant 33.0 : f32
            %var = arith.divf %q, %n : f32
            %eps = arith.constant 1.0e-5 : f32
            %s = arith.addf %var, %eps : f32
            %r = math.rsqrt %s : f32
            %d = arith.subf %v, %m : f32
            %h = arith.mulf %d, %r : f32
            %ww = loop.load %w[i1]
            %bb = loop.load %b[i1]
            %g = arith.mulf %h, %ww : f32
            %o = arith.addf %g, %bb : f32
            loop.yield %o
          } : !aten.tensor<6x33xf32>
          func.return %y : !aten.tensor<6x33xf32>
        }""",
        x, w, b,
    )  # fmt: skip
    assert not differences(torch.nn.functional.layer_norm(x, (33,), w, b), got)


GATHER = """
func.func @f(%x: !aten.tensor<10x4xf32>, %i: !aten.tensor<(s0)xi64>) -> !aten.tensor<(s0)x4xf32>
    attributes {symbols = [#sym.symbol<s0, arg = 1, dim = 0>]} {
  %y = loop.generate (i0 in s0, i1 in 4) {
    %j = loop.load %i[i0]
    CHECK
    %v = loop.load %x[d0, i1] (d0 = %j)
    loop.yield %v
  } : !aten.tensor<(s0)x4xf32>
  func.return %y : !aten.tensor<(s0)x4xf32>
}"""
CHECK = """%n = loop.index 10
    %ok = arith.cmpi ult, %j, %n : i64
    loop.assert %ok, "index out of range" : IndexError"""


def test_gather() -> None:
    x, i = torch.randn(10, 4), torch.tensor([3, 0, 9, 3, 3])
    (got,) = run(GATHER.replace("CHECK", CHECK), x, i)
    assert torch.equal(got, x[i])


def test_assert_raises_the_named_error() -> None:
    with pytest.raises(IndexError, match=r"^index out of range$"):
        run(GATHER.replace("CHECK", CHECK), torch.randn(10, 4), torch.tensor([3, 10]))


def test_out_of_bounds_load_is_reported_with_op_and_index() -> None:
    with pytest.raises(OutOfBoundsError, match=r"loop\.load .*index -1 of dimension 0 with size 10 at .*i0 = 1"):
        run(GATHER.replace("CHECK", ""), torch.randn(10, 4), torch.tensor([3, -1]))


def test_masked_load_reads_nothing_outside() -> None:
    x = torch.arange(4.0)
    text = """func.func @f(%x: !aten.tensor<4xf32>) -> !aten.tensor<7xf32> {
      %y = loop.generate (i0 in 7) {
        %i = loop.index i0 - 1
        %n = loop.index 4
        %inside = arith.cmpi PREDICATE, %i, %n : i64
        %zero = arith.constant -1.0 : f32
        %v = loop.load %x[i0 - 1] if %inside else %zero
        loop.yield %v
      } : !aten.tensor<7xf32>
      func.return %y : !aten.tensor<7xf32>
    }"""
    (got,) = run(text.replace("PREDICATE", "ult"), x)
    assert got.tolist() == [-1, 0, 1, 2, 3, -1, -1]
    with pytest.raises(OutOfBoundsError, match=r"index -1 of dimension 0 with size 4 at i0 = 0"):
        run(text.replace("PREDICATE", "slt"), x)


SCATTER = """
func.func @f(%x: !aten.tensor<6xELEMENT>, %v: !aten.tensor<5xELEMENT>, %i: !aten.tensor<5xi64>)
    -> !aten.tensor<6xELEMENT> {
  %y = loop.scatter KIND (i0 in 5) into %x[d0] FLAGS {
    %a = loop.load %v[i0]
    %j = loop.load %i[i0]
    loop.yield %a, %j
  } : !aten.tensor<6xELEMENT>
  func.return %y : !aten.tensor<6xELEMENT>
}"""


def scatter(kind: str, flags: str = "", element: str = "f32") -> str:
    return SCATTER.replace("KIND", kind).replace("FLAGS", flags).replace("ELEMENT", element)


def test_scatter_set_lets_the_last_one_win() -> None:
    x, v = torch.zeros(6), torch.arange(1.0, 6)
    (got,) = run(scatter("set"), x, v, torch.tensor([2, 0, 2, 5, 0]))
    assert got.tolist() == [5, 0, 3, 0, 0, 4] and not x.any()


@pytest.mark.parametrize("kind,name", [("add", "sum"), ("mul", "prod"), ("amin", "amin"), ("amax", "amax")])
@pytest.mark.parametrize("dtype,element", [(torch.float32, "f32"), (torch.uint8, "ui8"), (torch.int32, "i32")])
def test_scatter_combines(kind: str, name: str, dtype: torch.dtype, element: str) -> None:
    x, v = torch.tensor([1, 2, 3, 4, 200, 6]).to(dtype), torch.tensor([7, 2, 9, 100, 3]).to(dtype)
    i = torch.tensor([2, 0, 2, 4, 4])
    (got,) = run(scatter(kind, element=element), x, v, i)
    assert torch.equal(got, x.scatter_reduce(0, i, v, name))


@pytest.mark.parametrize("dtype,element", [(torch.uint16, "ui16"), (torch.uint32, "ui32"), (torch.bool, "i1")])
def test_scatter_of_every_dtype(dtype: torch.dtype, element: str) -> None:
    x, v = torch.zeros(6).to(dtype), torch.tensor([1, 0, 1, 1, 1]).to(dtype)
    (got,) = run(scatter("set", element=element), x, v, torch.tensor([1, 3, 5, 0, 4]))
    assert got.tolist() == torch.tensor([1, 1, 0, 0, 1, 1]).to(dtype).tolist()


def test_captured_scalars_may_be_yielded() -> None:
    text = """func.func @f(%x: !aten.tensor<f64>) -> !aten.tensor<2xf64> {
      %v = aten.item(%x) : f64
      %y = loop.generate (i0 in 2) {
        loop.yield %v
      } : !aten.tensor<2xf64>
      func.return %y : !aten.tensor<2xf64>
    }"""
    assert run(text, torch.tensor(0.1, dtype=torch.float64))[0].tolist() == [0.1, 0.1]


def test_scatter_propagates_nan() -> None:
    x = torch.zeros(6)
    (got,) = run(scatter("amax"), x, torch.full((5,), float("nan")), torch.tensor([0, 1, 2, 2, 2]))
    assert got.isnan().tolist() == [True] * 3 + [False] * 3


def test_scatter_unique_is_a_promise() -> None:
    with pytest.raises(RaceError, match=r"loop\.scatter set .*writes element 2 twice"):
        run(scatter("set", "unique"), torch.zeros(6), torch.ones(5), torch.tensor([2, 0, 2, 5, 1]))


def test_scatter_out_of_bounds() -> None:
    with pytest.raises(OutOfBoundsError, match=r"index 6 of dimension 0 with size 6 at i0 = 3"):
        run(scatter("set"), torch.zeros(6), torch.ones(5), torch.tensor([2, 0, 2, 6, 1]))


def test_masked_scatter() -> None:
    text = """func.func @f(%x: !aten.tensor<3x4xf32>, %m: !aten.tensor<4xi1>) -> !aten.tensor<3x4xf32> {
      %y = loop.scatter set (i0 in 4) into %x[i0, i0] unique masked {
        %a = arith.constant 7.0 : f32
        %k = loop.load %m[i0]
        loop.yield %a, %k
      } : !aten.tensor<3x4xf32>
      func.return %y : !aten.tensor<3x4xf32>
    }"""
    (got,) = run(text, torch.zeros(3, 4), torch.tensor([True, False, True, False]))
    assert torch.equal(got, torch.diag(torch.tensor([7.0, 0, 7, 0]))[:3])


def test_cat_of_pieces() -> None:
    x, y = torch.randn(2, 3), torch.randn(4, 3)
    (got,) = run(
        """func.func @f(%x: !aten.tensor<2x3xf32>, %y: !aten.tensor<4x3xf32>) -> !aten.tensor<6x3xf32> {
          %e = loop.empty : !aten.tensor<6x3xf32>
          %a = loop.scatter set (i0 in 2, i1 in 3) into %e[i0, i1] unique in_place {
            %v = loop.load %x[i0, i1]
            loop.yield %v
          } : !aten.tensor<6x3xf32>
          %b = loop.scatter set (i0 in 4, i1 in 3) into %a[i0 + 2, i1] unique in_place {
            %v = loop.load %y[i0, i1]
            loop.yield %v
          } : !aten.tensor<6x3xf32>
          func.return %b : !aten.tensor<6x3xf32>
        }""",
        x, y,
    )  # fmt: skip
    assert torch.equal(got, torch.cat([x, y]))


def test_memory_taken_over_in_place_is_not_read_again() -> None:
    text = """func.func @f() -> !aten.tensor<2xf32> {
      %e = loop.empty : !aten.tensor<2xf32>
      %a = loop.scatter set (i0 in 2) into %e[i0] unique in_place {
        %v = arith.constant 1.0 : f32
        loop.yield %v
      } : !aten.tensor<2xf32>
      func.return %e : !aten.tensor<2xf32>
    }"""
    with pytest.raises(LifetimeError, match=r"taken over by %a = loop\.scatter set"):
        run(text)


def test_empty_is_full_of_canaries() -> None:
    (got,) = run(
        """func.func @f() -> !aten.tensor<3xf32> {
          %e = loop.empty : !aten.tensor<3xf32>
          func.return %e : !aten.tensor<3xf32>
        }"""
    )
    assert bool(got.isnan().all())


def test_view_shares_memory_where_strides_describe_it() -> None:
    x = torch.arange(12.0).reshape(3, 4)
    (got, flipped) = run(
        """func.func @f(%x: !aten.tensor<3x4xf32>)
            -> (!aten.tensor<2x3xf32, strides = [2, 4]>, !aten.tensor<3x4xf32>) {
          %t = loop.view %x[i1, 2*i0] (i0 in 2, i1 in 3) : !aten.tensor<2x3xf32, strides = [2, 4]>
          %u = loop.view %x[2 - i0, i1] (i0 in 3, i1 in 4) : !aten.tensor<3x4xf32>
          func.return %t, %u : !aten.tensor<2x3xf32, strides = [2, 4]>, !aten.tensor<3x4xf32>
        }""",
        x,
    )
    assert torch.equal(got, x[:, ::2].t()) and got.stride() == (2, 4)
    assert torch.equal(flipped, x.flip(0))
    x.zero_()
    assert not got.any() and flipped.any()


def test_results_have_the_strides_of_their_types() -> None:
    kind = "!aten.tensor<3x4xf32, strides = [1, 3]>"
    text = f"""func.func @f() -> {kind} {{
      %y = loop.generate (i0 in 3, i1 in 4) {{
        %v = loop.index 10*i0 + i1
        %f = arith.sitofp %v : i64 to f32
        loop.yield %f
      }} : {kind}
      func.return %y : {kind}
    }}"""
    (got,) = run(text)
    assert got.stride() == (1, 3) and got[2, 3] == 23
    overlapping = text.replace("[1, 3]", "[0, 1]")
    with pytest.raises(InterpretationError, match="put elements on one place"):
        run(overlapping)


def test_large_domains_are_evaluated_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from inductile.backends.reference import loop

    x = torch.randn(5, 40)
    whole = run(SOFTMAX, x)
    monkeypatch.setattr(loop, "LANES", 16)
    assert not differences(whole[0], run(SOFTMAX, x)[0])


def test_index_results_and_symbols() -> None:
    text = """func.func @f(%x: !aten.tensor<(s0)x(s1)xf32, strides = [s2, 1]>, %n: index) -> (index, index)
        attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>, #sym.symbol<s1, arg = 0, dim = 1, divisor = 2>,
            #sym.symbol<s2, arg = 0, stride = 0>, #sym.symbol<s3, arg = 1, max = 9>]} {
      %a = sym.int s0*s1 + s2
      %b = sym.int s3 mod 4
      func.return %a, %b : index, index
    }"""
    assert run(text, torch.zeros(3, 8)[:, :6], 7) == [26, 3]
    with pytest.raises(InputError, match="s1 = 5, from argument 0, is no multiple of 2"):
        run(text, torch.zeros(3, 5), 7)
    with pytest.raises(InputError, match="s3 = 10, from argument 1, is above its maximum 9"):
        run(text, torch.zeros(3, 8), 10)


@pytest.mark.parametrize(
    "value,message",
    [
        (torch.zeros(4, 3), r"has shape \(4, 3\) instead of \(3, 4\)"),
        (torch.zeros(3, 4, dtype=torch.float64), "has dtype torch.float64 instead of torch.float32"),
        (torch.zeros(4, 3).t(), r"has strides \(1, 3\) instead of \(4, 1\)"),
        (3, "is int"),
    ],
)
def test_inputs_must_fit(value: torch.Tensor | int, message: str) -> None:
    text = "func.func @f(%x: !aten.tensor<3x4xf32>) { func.return }"
    with pytest.raises(InputError, match=message):
        run(text, value)


def test_function_is_named_when_there_are_several() -> None:
    module = parse("func.func @f() { func.return }\nfunc.func @g() -> index { %n = sym.int 3  func.return %n : index }")
    assert run_module(module, [], "g") == [3]
    with pytest.raises(InputError, match="functions are: @f, @g"):
        run_module(module, [])
    with pytest.raises(InputError, match="does not have @h"):
        run_module(module, [], "h")
    with pytest.raises(InputError, match="takes 0 arguments, 1 are given"):
        run_module(module, [1], "g")


def test_division_by_zero_is_reported() -> None:
    text = """func.func @f(%x: !aten.tensor<3xi64>) -> !aten.tensor<3xi64> {
      %y = loop.generate (i0 in 3) {
        %v = loop.load %x[i0]
        %one = arith.constant 1 : i64
        %q = arith.divsi %one, %v : i64
        loop.yield %q
      } : !aten.tensor<3xi64>
      func.return %y : !aten.tensor<3xi64>
    }"""
    assert run(text, torch.tensor([1, -1, 2]))[0].tolist() == [1, -1, 0]
    with pytest.raises(InterpretationError, match=r"arith\.divsi .*: division by zero at i0 = 2"):
        run(text, torch.tensor([1, 1, 0]))


def test_a_scan_whose_combiner_ignores_the_elements() -> None:
    """It keeps what it began with, in each place."""
    text = """
    func.func @f(%x: !aten.tensor<4x5xf32>) -> !aten.tensor<4x5xf32> {
      %zero = arith.constant 2.5 : f32
      %c = loop.scan custom init(%zero) (i0 in 4, i1 in 5) along i1 {
        %v = loop.load %x[i0, i1]
        loop.yield %v
      } combine {
      ^bb0(%a: f32, %b: f32):
        loop.yield %a
      } : !aten.tensor<4x5xf32>
      func.return %c : !aten.tensor<4x5xf32>
    }"""
    (got,) = run(text, torch.randn(4, 5))
    assert got.shape == (4, 5) and bool((got == 2.5).all())


@pytest.mark.parametrize("combined", ["%one", "%first"])
def test_a_reduction_whose_combiner_ignores_the_elements(combined: str) -> None:
    """A number, or an element of a row of its own, is what every pair combines to."""
    text = f"""
    func.func @f(%x: !aten.tensor<4x5xf32>) -> !aten.tensor<4xf32> {{
      %y = loop.generate (i0 in 4) {{
        %one = arith.constant 1.0 : f32
        %r = loop.reduce custom init(%one) (r0 in 5) {{
          %v = loop.load %x[i0, r0]
          loop.yield %v
        }} combine {{
        ^bb0(%a: f32, %b: f32):
          %first = loop.load %x[i0, 0]
          loop.yield {combined}
        }}
        loop.yield %r
      }} : !aten.tensor<4xf32>
      func.return %y : !aten.tensor<4xf32>
    }}"""
    x = torch.randn(4, 5)
    (got,) = run(text, x)
    assert torch.equal(got, torch.ones(4) if combined == "%one" else x[:, 0])


def test_a_custom_scan_along_a_middle_axis() -> None:
    text = """
    func.func @f(%x: !aten.tensor<4x5x6xf32>) -> !aten.tensor<4x5x6xf32> {
      %zero = arith.constant 0.0 : f32
      %c = loop.fusion (a0 in 4 | a1 in 5, a2 in 6) {
        %s = loop.scan custom init(%zero) (i0 in 4, i1 in 5, i2 in 6) along i1 on (a0, a1, a2) {
          %v = loop.load %x[i0, i1, i2]
          loop.yield %v
        } combine {
        ^bb0(%a: f32, %b: f32):
          %t = arith.addf %a, %b : f32
          loop.yield %t
        } : !aten.tensor<4x5x6xf32>
        loop.yield %s
      } : !aten.tensor<4x5x6xf32>
      func.return %c : !aten.tensor<4x5x6xf32>
    }"""
    x = torch.randn(4, 5, 6)
    torch.testing.assert_close(run(text, x)[0], x.cumsum(1))
