"""Products of integers and of dequantised weights: exact sums of integers, no weight dequantised into memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch._higher_order_ops.out_dtype import out_dtype

from inductile.backends.compiled import REPORTS
from inductile.backends.host.products import int_mm_by_floats
from inductile.lowering.fx_quantised_ops import has_packed_products


def _run(function: Callable[..., Any], *args: torch.Tensor, **options: Any) -> tuple[Any, Any]:
    """The result, and the report of the one graph."""
    torch._dynamo.reset()
    REPORTS.clear()
    with torch.no_grad():
        result = torch.compile(function, backend="inductile", options=options)(*args)
    (report,) = REPORTS
    return result, report


def _integers(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8, generator=torch.Generator().manual_seed(len(shape)))


@pytest.mark.parametrize("fill", [None, -128, 127])
@pytest.mark.parametrize("depth", [0, 1, 2500])
def test_floats_multiply_integers_exactly(depth: int, fill: int | None) -> None:
    left, right = (_integers(19, depth), _integers(1030, depth)) if fill is None else (
        torch.full((19, depth), fill, dtype=torch.int8), torch.full((1030, depth), -128, dtype=torch.int8)
    )  # fmt: skip
    exact = left.double() @ right.t().double()
    got = int_mm_by_floats(left, right.t())
    assert got.dtype == torch.int32 and got.is_contiguous()
    assert torch.equal(got.double(), exact)


@pytest.mark.parametrize(("way", "rows", "call"), [
    ("floats", 4, None), ("floats", 40, "aten._int_mm by floats"), ("library", 40, "aten._int_mm"),
])  # fmt: skip
def test_sums_of_integers_are_exact_and_scaled_in_one_kernel(way: str, rows: int, call: str | None) -> None:
    def scaled(x: torch.Tensor, w: torch.Tensor, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.relu(torch.ops.aten._int_mm(x, w.t()).to(torch.float32) * a * b + bias)

    generator = torch.Generator().manual_seed(0)
    floats = torch.rand(rows, 1, generator=generator), torch.rand(64, generator=generator), torch.randn(64)
    args = _integers(rows, 1500), _integers(64, 1500)[:, :1500], *floats
    got, report = _run(scaled, *args, integer_products=way)
    assert torch.equal(got, scaled(*args))
    assert dict(report.aten_calls) == ({} if call is None else {call: 1})
    assert sum(report.kernels.values()) == 1


def test_a_product_into_int32_is_one_of_integers() -> None:
    """What torchao writes for `_int_mm` in a graph."""

    def scaled(x: torch.Tensor, w: torch.Tensor, a: torch.Tensor) -> torch.Tensor:
        return out_dtype(torch.ops.aten.mm.default, torch.int32, x, w.t()).to(torch.float32) * a

    args = _integers(40, 64), _integers(48, 64), torch.rand(48)
    got, report = _run(scaled, *args)
    assert torch.equal(got, torch.mm(args[0].double(), args[1].double().t()).float() * args[2])
    assert not any("out_dtype" in name for name in report.aten_calls)
    floats = (args[0].float(), args[1].float(), args[2])  # multiplied as other numbers: it stays the call
    got, report = _run(scaled, *floats)
    assert torch.equal(got, scaled(*floats)) and dict(report.aten_calls) == {"higher_order::out_dtype": 1}


def _by_channel(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    return torch.mm(x, w.t().to(x.dtype)) * scale


def _in_groups(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor, zero: torch.Tensor) -> torch.Tensor:
    groups = w.view(w.shape[0], -1, 32).to(x.dtype) - zero.to(x.dtype)[..., None]
    return torch.addmm(torch.ones_like(zero[:, 0], dtype=x.dtype), x, (groups * scale[..., None]).view(w.shape).t())


def _of_halves(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    numbers = torch.cat([w & 15, w >> 4], -1).view(w.shape[0], -1, 32).to(x.dtype) - 8
    return torch.nn.functional.linear(x, (numbers * scale[..., None]).view(w.shape[0], -1))


def _of_neighbours(x: torch.Tensor, w: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    numbers = torch.stack([w & 15, w >> 4], -1).view(w.shape[0], -1, 32).to(x.dtype) - 8
    return torch.nn.functional.linear(x, (numbers * scale[..., None]).view(w.shape[0], -1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("unpacked", [_of_halves, _of_neighbours])
def test_numbers_of_4_bits_are_read_as_they_are_packed(unpacked: Callable[..., Any], dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x, scale = torch.randn(1, 256, generator=generator).to(dtype), torch.rand(96, 8, generator=generator).to(dtype)
    packed = _integers(96, 128).view(torch.uint8)
    got, report = _run(unpacked, x, packed, scale)
    exact = unpacked(x.double(), packed, scale.double())
    error, of_eager = ((each.double() - exact).norm() for each in (got, unpacked(x, packed, scale)))
    assert error <= 2 * of_eager + 1e-6 * exact.norm()
    assert not report.aten_calls
    assert sum(report.kernels.values()) == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("in_groups", [False, True])
def test_a_weight_is_dequantised_where_one_row_reads_it(in_groups: bool, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(1, 256, generator=generator).to(dtype), _integers(96, 256)
    shape = (96, 8) if in_groups else (96,)
    scale = torch.rand(shape, generator=generator).to(dtype)
    function, args = (_in_groups, (x, w, scale, _integers(96, 8))) if in_groups else (_by_channel, (x, w, scale))
    got, report = _run(function, *args)
    exact = function(*(a.double() if a.is_floating_point() else a for a in args))
    error, of_eager = ((each.double() - exact).abs().max() for each in (got, function(*args)))
    assert error <= 2 * of_eager + 1e-6 * exact.abs().max()
    is_packed = not in_groups and dtype != torch.float32
    assert dict(report.aten_calls) == ({"aten._weight_int8pack_mm": 1} if is_packed else {})
    assert sum(report.kernels.values()) == (0 if is_packed else 1)


def test_rows_that_atens_kernel_would_read_beyond_are_a_nest() -> None:
    x, w, scale = torch.randn(1, 33).bfloat16(), _integers(70, 33), torch.rand(70).bfloat16()
    got, report = _run(_by_channel, x, w, scale)
    torch.testing.assert_close(got, _by_channel(x, w, scale))
    assert not report.aten_calls


def test_a_dynamic_number_of_rows_is_the_librarys() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(_by_channel, backend="inductile", dynamic=True)
    w, scale = _integers(96, 256), torch.rand(96)
    for rows in (2, 5, 40):
        x = torch.randn(rows, 256)
        torch.testing.assert_close(compiled(x, w, scale), _by_channel(x, w, scale), rtol=1e-4, atol=1e-3)


def _dequantise(x: torch.Tensor, scale: Any, zero: Any) -> torch.Tensor:
    return (x.to(torch.float32) - zero) * scale


def _quantise(x: torch.Tensor, scale: float, zero: int, most: int) -> torch.Tensor:
    return torch.clamp(torch.round(x * (1 / scale)) + zero, 0, most).to(torch.uint8)


def _weight(w: torch.Tensor, scales: torch.Tensor, zeros: torch.Tensor) -> torch.Tensor:
    shape = (-1, *(1,) * (w.dim() - 1))
    return (w - zeros.view(shape)) * scales.view(shape)


class _Layers(torch.nn.Module):
    """Two layers as PT2E writes them, quantised between, of linear layers or of convolutions."""

    def __init__(self, most: int, is_image: bool, is_dynamic: bool = False, has_bias: bool = True) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.most, self.is_image, self.is_dynamic = most, is_image, is_dynamic
        window = (3, 3) if is_image else ()
        for name, outputs, inputs in (("a", 24, 48), ("b", 10, 24)):
            weight = torch.randint(-127, 128, (outputs, inputs, *window), dtype=torch.int8, generator=generator)
            self.register_buffer(f"{name}_weight", weight)
            self.register_buffer(f"{name}_scales", torch.rand(outputs, generator=generator) * 0.01)
            self.register_buffer(f"{name}_zeros", torch.zeros(outputs, dtype=torch.int64))
            bias = torch.randn(outputs, generator=generator) if has_bias else None
            self.register_buffer(f"{name}_bias", bias)

    def layer(self, x: torch.Tensor, name: str) -> torch.Tensor:
        weight, scales, zeros, bias = (
            getattr(self, f"{name}_{part}") for part in ("weight", "scales", "zeros", "bias")
        )
        wide = _weight(weight, scales, zeros)
        return (
            torch.nn.functional.conv2d(x, wide, bias, 2, 1)
            if self.is_image
            else torch.nn.functional.linear(x, wide, bias)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.is_dynamic:
            scale = torch.clamp(x.amax() - x.amin(), min=1e-6) / self.most
            zero = torch.round(-x.amin() / scale)
            quantised = torch.clamp(torch.round(x / scale) + zero, 0, self.most).to(torch.uint8)
            return self.layer(_dequantise(quantised, scale, zero), "a")
        inner = torch.relu(self.layer(_dequantise(_quantise(x, 0.05, 57, self.most), 0.05, 57), "a"))
        return self.layer(_dequantise(_quantise(inner, 0.5, 3, self.most), 0.5, 3), "b")


def _input(is_image: bool) -> torch.Tensor:
    shape = (2, 48, 9, 7) if is_image else (2, 5, 48)
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.skipif(not has_packed_products(), reason="this torch has no oneDNN")
@pytest.mark.parametrize(("freezing", "has_bias"), [(False, True), (True, False)])
@pytest.mark.parametrize("is_image", [False, True])
def test_static_layers_of_seven_bits_multiply_integers(is_image: bool, has_bias: bool, freezing: bool) -> None:
    model, x = _Layers(127, is_image, has_bias=has_bias), _input(is_image)
    got, report = _run(model, x, integer_products="floats", freezing=freezing)
    torch.testing.assert_close(got, model(x), rtol=1e-5, atol=1e-5)
    images = {"inductile::requantised_convolution": 1, "inductile::quantised_convolution": 1}
    rows = {"inductile::requantised_linear": 1, "inductile::quantised_linear": 1}
    assert dict(report.aten_calls) == (images if is_image else rows)


@pytest.mark.skipif(not has_packed_products(), reason="this torch has no oneDNN")
def test_a_dynamic_scale_is_a_tensor() -> None:
    model, x = _Layers(127, is_image=False, is_dynamic=True), _input(False)
    got, report = _run(model, x, integer_products="floats")
    torch.testing.assert_close(got, model(x), rtol=1e-5, atol=1e-5)
    assert dict(report.aten_calls) == {"inductile::quantised_linear.tensor": 1}


@pytest.mark.parametrize("is_image", [False, True])
def test_eight_bits_stay_floats_without_instructions_for_them(is_image: bool) -> None:
    """The library's sums would saturate."""
    model, x = _Layers(255, is_image), _input(is_image)
    got, report = _run(model, x, integer_products="floats")
    torch.testing.assert_close(got, model(x), rtol=1e-5, atol=1e-5)
    assert not any(name.startswith("inductile::") for name in report.aten_calls)


@pytest.mark.skipif(not has_packed_products(), reason="this torch has no oneDNN")
@pytest.mark.parametrize("is_image", [False, True])
def test_what_is_packed_follows_the_weight_and_its_zero_points(is_image: bool) -> None:
    model, x = _Layers(127, is_image), _input(is_image)
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="inductile", options={"integer_products": "floats"})
    with torch.no_grad():
        weight, zeros = model.get_buffer("a_weight"), model.get_buffer("a_zeros")
        for change in (lambda: None, weight.neg_, lambda: zeros.add_(2), zeros.zero_):
            change()
            torch.testing.assert_close(compiled(x), model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(not has_packed_products(), reason="this torch has no oneDNN")
@pytest.mark.parametrize(("is_image", "is_dynamic"), [(True, False), (False, False), (False, True)])
def test_dynamic_sizes_multiply_integers(is_image: bool, is_dynamic: bool) -> None:
    """Numbers of images and of rows come and go; a weight is packed for the first ones and for all others."""
    model, x = _Layers(127, is_image, is_dynamic), _input(is_image)
    torch._dynamo.reset()
    REPORTS.clear()
    compiled = torch.compile(model, backend="inductile", dynamic=True, options={"integer_products": "floats"})
    for count in (2, 5, 3, 2):
        given = torch.cat([x] * 3)[:count]
        got, expected = compiled(given), model(given)
        assert got.stride() == expected.stride()
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    (report,) = REPORTS
    assert report.aten_calls and all(name.startswith("inductile::") for name in report.aten_calls)


def test_images_in_channels_last_and_empty_ones() -> None:
    model, x = _Layers(127, is_image=True), _input(True)
    for each in (x.contiguous(memory_format=torch.channels_last), x[:0]):
        got, _ = _run(model, each, integer_products="floats")
        expected = model(each)
        assert got.stride() == expected.stride()
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
