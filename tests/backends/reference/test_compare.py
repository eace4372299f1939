"""Comparison of modules, and inputs for them."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.reference import InterpretationError, compare_modules, differences, random_inputs

from .helpers import parse


def unary(body: str, result: str = "!aten.tensor<6xf32>") -> str:
    return f"func.func @f(%x: !aten.tensor<6xf32>) -> {result} {{\n{body}\nfunc.return %y : {result}\n}}"


RELU = unary("%y = aten.relu(%x) : !aten.tensor<6xf32>")
X = torch.tensor([1.0, -2.0, 3.0, -0.0, float("nan"), float("inf")])


@pytest.mark.parametrize("wide", [False, True])
def test_equal_modules(wide: bool) -> None:
    assert compare_modules(parse(RELU), parse(RELU), [X], wide=wide) == []


@pytest.mark.parametrize(
    "body,expected",
    [
        ("%y = aten.abs(%x) : !aten.tensor<6xf32>", "result 0: values at [1]: 0.0 -> 2.0 (1 of 6 elements)"),
        (
            "%n = aten.nan_to_num(%x) : !aten.tensor<6xf32>\n%y = aten.relu(%n) : !aten.tensor<6xf32>",
            "result 0: values at [4]: nan -> 0.0 (2 of 6 elements)",
        ),
        (
            "%c = aten.relu(%x) : !aten.tensor<6xf32>\n%w = aten.copy_(%x, %c) : !aten.tensor<6xf32>\n"
            "%y = aten.clone(%c) : !aten.tensor<6xf32>",
            "input 0 afterwards: values at [1]: -2.0 -> 0.0 (1 of 6 elements)",
        ),
    ],
)
def test_values_that_differ(body: str, expected: str) -> None:
    assert compare_modules(parse(RELU), parse(unary(body)), [X])[0] == expected


def test_types_that_differ() -> None:
    double = unary("%y = aten._to_copy(%x, dtype = torch.float64) : !aten.tensor<6xf64>", "!aten.tensor<6xf64>")
    assert compare_modules(parse(RELU), parse(double), [X]) == ["result 0: dtype torch.float32 -> torch.float64"]
    shape = unary("%y = aten.unsqueeze(%x, dim = 0) : !aten.tensor<1x6xf32>", "!aten.tensor<1x6xf32>")
    assert "result 0: shape (6,) -> (1, 6)" in compare_modules(parse(RELU), parse(shape), [X])


def test_aliases_that_differ() -> None:
    copy = unary("%y = aten.clone(%x) : !aten.tensor<6xf32>")
    alias = unary("%y = aten.alias(%x) : !aten.tensor<6xf32>")
    for wide in (False, True):
        assert compare_modules(parse(copy), parse(alias), [X], wide=wide) == ["input 0 and result 0 share memory now"]
        assert compare_modules(parse(alias), parse(copy), [X], wide=wide) == [
            "input 0 and result 0 no longer share memory"
        ]


def test_errors_are_compared() -> None:
    raising = unary("%y = aten.reshape(%x, shape = [2, 4]) : !aten.tensor<6xf32>")
    (difference,) = compare_modules(parse(RELU), parse(raising), [X])
    assert difference.startswith("no error -> RuntimeError: shape")
    assert compare_modules(parse(raising), parse(raising), [X]) == []
    broken = unary("""%y = loop.generate (i0 in 6) {
        %v = loop.load %x[i0 + 1]
        loop.yield %v
      } : !aten.tensor<6xf32>""")
    (difference,) = compare_modules(parse(RELU), parse(broken), [X])
    assert difference.startswith("no error -> OutOfBoundsError")
    with pytest.raises(InterpretationError):
        compare_modules(parse(broken), parse(RELU), [X])


def test_inputs_are_left_alone_and_keep_their_aliases() -> None:
    text = """func.func @f(%x: !aten.tensor<4xf32>, %y: !aten.tensor<4xf32>) -> !aten.tensor<4xf32> {
      %o = aten.add.Scalar(%x, other = 1) : !aten.tensor<4xf32>
      %w = aten.copy_(%x, %o) : !aten.tensor<4xf32>
      %r = aten.clone(%y) : !aten.tensor<4xf32>
      func.return %r : !aten.tensor<4xf32>
    }"""
    early = text.replace("%r = aten.clone(%y) : !aten.tensor<4xf32>\n", "").replace(
        "%o = aten.add", "%r = aten.clone(%y) : !aten.tensor<4xf32>\n%o = aten.add"
    )
    x = torch.zeros(4)
    assert compare_modules(parse(text), parse(early), [x, torch.zeros(4)]) == []
    assert compare_modules(parse(text), parse(early), [x, x]) == [
        "result 0: values at [0]: 1.0 -> 0.0 (4 of 4 elements)"
    ]
    assert not x.any()


def test_differences_of_values() -> None:
    assert differences(torch.tensor([0.0]), torch.tensor([-0.0])) == [
        "signs of zero at [0]: 0.0 -> -0.0 (1 of 1 elements)"
    ]
    assert differences(torch.tensor([float("inf")]), torch.tensor([3e38])) != []
    assert differences(torch.tensor([1.0]), torch.tensor([1.0 + 1e-7])) == []
    assert differences(3, 3) == [] and differences(3, 4) == ["3 -> 4"] and differences(1, True) != []
    x = torch.zeros(2, 3)
    assert differences(x, x.t().contiguous().t()) == ["strides (3, 1) -> (1, 2)"]
    assert differences(x[:1, :1], x.t().contiguous().t()[:1, :1]) == []  # of one element no stride matters


INPUTS = """
func.func @f(%x: !aten.tensor<(s0)x(2*s1)xf32, strides = [s2, 1]>, %n: index, %i: !aten.tensor<50xi64>,
             %b: !aten.tensor<3xi1>, %h: !aten.tensor<70xbf16>) -> !aten.tensor<50x(2*s1)xf32>
    attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0, min = 7, max = 7>, #sym.symbol<s1, arg = 1, hint = 5>,
        #sym.symbol<s2, arg = 0, stride = 0, divisor = 8>]} {
  %y = aten.embedding(%x, %i) : !aten.tensor<50x(2*s1)xf32>
  func.return %y : !aten.tensor<50x(2*s1)xf32>
}"""


def test_random_inputs_fit() -> None:
    module = parse(INPUTS)
    x, n, i, b, h = random_inputs(module, 3)
    assert n == 5 and isinstance(x, torch.Tensor) and isinstance(i, torch.Tensor)
    assert x.shape == (7, 10) and x.stride() == (16, 1)
    assert int(i.min()) >= 0 and 4 <= int(i.max()) < 7
    assert isinstance(b, torch.Tensor) and b.dtype == torch.bool
    assert isinstance(h, torch.Tensor) and h.dtype == torch.bfloat16 and len(h.unique()) > 60
    assert compare_modules(module, module, [x, n, i, b, h]) == []
    again = random_inputs(module, 3)
    assert all(not differences(a, c) for a, c in zip([x, n, i, b, h], again, strict=True))
    assert differences(x, random_inputs(module, 4)[0])
    plain = random_inputs(module, 3, special=False)[0]
    assert isinstance(plain, torch.Tensor) and bool(plain.isfinite().all())


CHECKED_ADDRESS = """
builtin.module {
  kernel.func @k(%i: !kernel.buffer<i16, 4*s0>, %y: !kernel.buffer<f32, 9*s0>) symbols (s0)
      errors ["IndexError: index out of range"] target "cpp" {
    kernel.for i0 in 0 to s0 {
      kernel.for i1 in 0 to 4 {
        %0 = kernel.load %i[4*i0 + i1]
        %1 = scalar.cast %0 : i16 to i64
        %2 = kernel.index BOUND
        %3 = arith.cmpi slt, %1, %2 : i64
        kernel.assert %3, 1
        %4 = arith.constant 1.0 : f32
        kernel.store %4, %y[9*i0 + d0] (d0 = %1) if %3
        kernel.yield
      }
      kernel.yield
    }
    kernel.yield
  }
  host.func @f(%i: !aten.tensor<(s1)x4xi16>, %y: !aten.tensor<(s1)x9xf32>) -> (!aten.tensor<(s1)x9xf32>)
      symbols [#sym.symbol<s1, arg = 0, dim = 0, hint = 50>] {
    host.launch @k(%i, %y) [s1]
    host.return %y
  }
}"""


@pytest.mark.parametrize(("bound", "largest"), [("9", 8), ("s0 - 30", 19)])
def test_what_a_program_checks_bounds_random_inputs(bound: str, largest: int) -> None:
    indices = random_inputs(parse(CHECKED_ADDRESS.replace("BOUND", bound)), 0)[0]
    assert isinstance(indices, torch.Tensor) and indices.shape == (50, 4) and int(indices.max()) == largest


LOOP_GATHER = """
func.func @f(%x: !aten.tensor<3x9xf32>, %i: !aten.tensor<60xi32>) -> !aten.tensor<60xf32> {
  %y = loop.generate (i0 in 60) {
    %j = loop.load %i[i0]
    %k = arith.extsi %j : i32 to i64
    %v = loop.load %x[2, d0] (d0 = %k)
    loop.yield %v
  } : !aten.tensor<60xf32>
  func.return %y : !aten.tensor<60xf32>
}"""
KERNEL_GATHER = """
kernel.func @k(%x: !kernel.buffer<f32, 9*s0>, %i: !kernel.buffer<i64, 60>, %y: !kernel.buffer<f32, 60>) symbols (s0) {
  kernel.for i0 in 0 to 60 map parallel {
    %j = kernel.load %i[i0]
    %v = kernel.load %x[9*d0 + 1] (d0 = %j)
    kernel.store %v, %y[i0]
    kernel.yield
  }
  kernel.yield
}
host.func @f(%x: !aten.tensor<3x9xf32>, %i: !aten.tensor<60xi64>) -> (!aten.tensor<60xf32>) {
  %y = host.empty : !aten.tensor<60xf32>
  host.launch @k(%x, %i, %y) [3]
  host.return %y
}"""


@pytest.mark.parametrize("text,below", [(LOOP_GATHER, 9), (KERNEL_GATHER, 3)])
def test_indices_are_followed_through_loops_and_kernels(text: str, below: int) -> None:
    module = parse(text)
    inputs = random_inputs(module, 0, special=False)
    assert isinstance(inputs[1], torch.Tensor) and int(inputs[1].max()) == below - 1
    assert compare_modules(module, module, inputs) == []
