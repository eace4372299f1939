"""The aten level: ops run through ATen, with layouts, symbols and float64 as the IR says."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.reference import InterpretationError, differences

from .helpers import run


def test_softmax_and_layer_norm() -> None:
    x = torch.randn(3, 8)
    text = """func.func @f(%x: !aten.tensor<(s0)x8xf32>) -> (!aten.tensor<(s0)x8xf32>, !aten.tensor<(s0)x8xf32>)
        attributes {symbols = [#sym.symbol<s0, arg = 0, dim = 0>]} {
      %0 = aten._softmax(%x, dim = -1, half_to_float = false) : !aten.tensor<(s0)x8xf32>
      %1, %2, %3 = aten.native_layer_norm(%x, none, none, normalized_shape = [8], eps = 1.0e-5)
        : !aten.tensor<(s0)x8xf32>, !aten.tensor<(s0)x1xf32>, !aten.tensor<(s0)x1xf32>
      func.return %0, %1 : !aten.tensor<(s0)x8xf32>, !aten.tensor<(s0)x8xf32>
    }"""
    for wide in (False, True):
        soft, norm = run(text, x, wide=wide)
        assert not differences(x.softmax(-1), soft)
        assert not differences(torch.nn.functional.layer_norm(x, (8,)), norm)


def test_wide_rounds_only_where_the_program_casts() -> None:
    x = torch.full((4,), 1.0 + 2**-20)
    text = """func.func @f(%x: !aten.tensor<4xf32>) -> (!aten.tensor<4xf32>, !aten.tensor<4xf16>) {
      %h = aten._to_copy(%x, dtype = torch.float16) : !aten.tensor<4xf16>
      %w = aten._to_copy(%h, dtype = torch.float32) : !aten.tensor<4xf32>
      %d = aten.sub.Tensor(%x, %w) : !aten.tensor<4xf32>
      %s = aten.add.Tensor(%h, %h) : !aten.tensor<4xf16>
      func.return %d, %s : !aten.tensor<4xf32>, !aten.tensor<4xf16>
    }"""
    for wide in (False, True):
        difference, total = run(text, x, wide=wide)
        assert difference.tolist() == [2**-20] * 4 and difference.dtype == torch.float32
        assert total.tolist() == [2.0] * 4 and total.dtype == torch.float16


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_infinities_become_the_limits_of_the_type_of_the_program(dtype: torch.dtype) -> None:
    x = torch.tensor([float("inf"), -float("inf"), float("nan"), 1.5], dtype=dtype)
    kind = f"!aten.tensor<4x{'f32' if dtype == torch.float32 else 'bf16'}>"
    text = f"""func.func @f(%x: {kind}) -> ({kind}, {kind}) {{
      %y = aten.nan_to_num(%x) : {kind}
      %z = aten.nan_to_num(%x, nan = 2.0, neginf = -3.0) : {kind}
      func.return %y, %z : {kind}, {kind}
    }}"""
    for wide in (False, True):
        y, z = run(text, x, wide=wide)
        assert torch.equal(y, x.nan_to_num()) and torch.equal(z, x.nan_to_num(2.0, neginf=-3.0))


@pytest.mark.parametrize("packet", ["add", "sub", "mul", "div", "fmod", "remainder"])
def test_wide_takes_numbers_as_the_program_does(packet: str) -> None:
    x = torch.linspace(-3, 3, 201).bfloat16()
    kind = "!aten.tensor<201xbf16>"
    text = f"""func.func @f(%x: {kind}) -> {kind} {{
      %y = aten.{packet}.Scalar(%x, other = 0.3) : {kind}
      func.return %y : {kind}
    }}"""
    assert torch.equal(run(text, x, wide=True)[0], run(text, x)[0])


def test_wide_sums_in_float64() -> None:
    x = torch.tensor([1e8, 1.0, -1e8])
    text = """func.func @f(%x: !aten.tensor<3xf32>) -> !aten.tensor<f32> {
      %c = aten.cumsum(%x, dim = 0) : !aten.tensor<3xf32>
      %l = aten.select.int(%c, dim = 0, index = 2) : !aten.tensor<f32>
      func.return %l : !aten.tensor<f32>
    }"""
    assert run(text, x, wide=True)[0].item() == 1.0


def test_factories_make_float64_when_wide() -> None:
    text = """func.func @f() -> (!aten.tensor<3xf32>, !aten.tensor<2xf32>) {
      %a = aten.full(size = [3], fill_value = 0.1, dtype = torch.float32, device = "cpu") : !aten.tensor<3xf32>
      %n = aten.full(size = [2], fill_value = 3, dtype = torch.int64) : !aten.tensor<2xi64>
      %b = aten.div.Tensor(%n, %n) : !aten.tensor<2xf32>
      func.return %a, %b : !aten.tensor<3xf32>, !aten.tensor<2xf32>
    }"""
    for wide in (False, True):
        a, b = run(text, wide=wide)
        assert a.dtype == b.dtype == torch.float32 and b.tolist() == [1.0, 1.0]


def test_mutation_happens_at_its_place() -> None:
    text = """func.func @f(%x: !aten.tensor<2xf32>) -> (!aten.tensor<2xf32>, !aten.tensor<2xf32>) {
      %a = aten.add.Scalar(%x, other = 1) : !aten.tensor<2xf32>
      %c = aten.copy_(%x, %a) : !aten.tensor<2xf32>
      %b = aten.mul.Scalar(%x, other = 10) : !aten.tensor<2xf32>
      func.return %a, %b : !aten.tensor<2xf32>, !aten.tensor<2xf32>
    }"""
    for wide in (False, True):
        x = torch.tensor([1.0, 2.0])
        a, b = run(text, x, wide=wide)
        assert a.tolist() == [2, 3] and b.tolist() == [20, 30] and x.tolist() == [2, 3]


def test_lists_optional_tensors_and_several_results() -> None:
    x, i = torch.arange(12.0).reshape(3, 4), torch.tensor([2, 0])
    text = """func.func @f(%x: !aten.tensor<3x4xf32>, %i: !aten.tensor<2xi64>)
        -> (!aten.tensor<3x2xf32>, !aten.tensor<5x4xf32>, !aten.tensor<3x2xf32, strides = [4, 1]>) {
      %g = aten.index.Tensor(%x, [none, %i]) : !aten.tensor<3x2xf32, strides = [1, 3]>
      %k = aten.clone(%g, memory_format = torch.contiguous_format) : !aten.tensor<3x2xf32>
      %r = aten.index_select(%x, %i, dim = 0) : !aten.tensor<2x4xf32>
      %c = aten.cat([%x, %r]) : !aten.tensor<5x4xf32>
      %l, %h = aten.split.Tensor(%x, split_size = 2, dim = 1)
        : !aten.tensor<3x2xf32, strides = [4, 1]>, !aten.tensor<3x2xf32, strides = [4, 1]>
      func.return %k, %c, %h : !aten.tensor<3x2xf32>, !aten.tensor<5x4xf32>, !aten.tensor<3x2xf32, strides = [4, 1]>
    }"""
    gathered, joined, half = run(text, x, i)
    assert torch.equal(gathered, x[:, i]) and torch.equal(joined, torch.cat([x, x[i]]))
    assert torch.equal(half, x[:, 2:]) and half.stride() == (4, 1)


def test_numbers_made_by_ops() -> None:
    text = """func.func @f(%x: !aten.tensor<i64>, %y: !aten.tensor<4xf32>) -> (index, !aten.tensor<(u0)xf32>)
        attributes {symbols = [#sym.symbol<u0>]} {
      %n = aten.item(%x) binds [u0] : index
      %s = aten.slice.Tensor(%y, dim = 0, start = 0, end = u0) : !aten.tensor<(u0)xf32>
      func.return %n, %s : index, !aten.tensor<(u0)xf32>
    }"""
    n, s = run(text, torch.tensor(3), torch.arange(4.0))
    assert n == 3 and s.tolist() == [0, 1, 2]


def test_layouts_follow_the_types_but_views_must_have_them() -> None:
    text = """func.func @f(%x: !aten.tensor<2x3xf32>) -> !aten.tensor<TYPE> {
      %y = aten.OP : !aten.tensor<TYPE>
      func.return %y : !aten.tensor<TYPE>
    }"""
    x = torch.randn(2, 3)
    strided = "2x3xf32, strides = [1, 2]"
    (got,) = run(text.replace("TYPE", strided).replace("OP", "relu(%x)"), x)
    assert got.stride() == (1, 2) and torch.equal(got, x.relu())
    with pytest.raises(InterpretationError, match=r"the view has strides \(1, 3\) instead of \(2, 1\)"):
        run(text.replace("TYPE", "3x2xf32").replace("OP", "t(%x)"), x)
    with pytest.raises(InterpretationError, match=r"the result has shape \(2, 3\) instead of \(3, 2\)"):
        run(text.replace("TYPE", "3x2xf32").replace("OP", "relu(%x)"), x)


def test_calls_of_other_namespaces() -> None:
    x = torch.tensor([1.0 + 2**-20, 2.0])
    text = """func.func @f(%x: !aten.tensor<2xf32>) -> (!aten.tensor<2xf32>, i1) {
      %h = aten.call pure "prims::convert_element_type"(%x, torch.bfloat16) : !aten.tensor<2xbf16>
      %w = aten.call pure "prims::convert_element_type"(%h, torch.float32) : !aten.tensor<2xf32>
      %b = aten.call pure "operator::ge"(3, 4) : i1
      func.return %w, %b : !aten.tensor<2xf32>, i1
    }"""
    for wide in (False, True):
        w, b = run(text, x, wide=wide)
        assert w.tolist() == [1.0, 2.0] and b is False


def test_bits_are_those_of_the_format_also_when_wide() -> None:
    text = """func.func @f(%x: !aten.tensor<2xf32>) -> !aten.tensor<2xi32> {
      %y = aten.view.dtype(%x, dtype = torch.int32) : !aten.tensor<2xi32>
      func.return %y : !aten.tensor<2xi32>
    }"""
    x = torch.tensor([1.5, -2.0])
    for wide in (False, True):
        assert torch.equal(run(text, x, wide=wide)[0], x.view(torch.int32))


def test_references_are_handed_in() -> None:
    text = """func.func @f(%x: !aten.tensor<2xf32>, %p: !aten.tensor<i1>) -> !aten.tensor<2xf32> {
      %y = aten.call "higher_order::cond"(%p, @then, @else, [%x]) : !aten.tensor<2xf32>
      func.return %y : !aten.tensor<2xf32>
    }"""
    branches = {"then": lambda x: (x + 1,), "else": lambda x: (x - 1,)}
    with pytest.raises(InterpretationError, match="nothing is given for the reference @then"):
        run(text, torch.zeros(2), torch.tensor(True))
    (got,) = run(text, torch.zeros(2), torch.tensor(True), references=branches)
    assert got.tolist() == [1, 1]


def test_errors_of_the_program_are_its_own() -> None:
    text = """func.func @f(%x: !aten.tensor<2xf32>, %i: !aten.tensor<1xi64>) -> !aten.tensor<1xf32> {
      %y = aten.index.Tensor(%x, [%i]) : !aten.tensor<1xf32>
      func.return %y : !aten.tensor<1xf32>
    }"""
    with pytest.raises(IndexError, match="out of bounds"):
        run(text, torch.zeros(2), torch.tensor([2]))
