"""Layers of quantised numbers whose results are quantised again by the library: eager's steps, or those beside them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductile.backends.compiled import REPORTS
from inductile.lowering.fx_quantised_ops import has_packed_products

pytestmark = pytest.mark.skipif(not has_packed_products(), reason="this torch has no oneDNN")

MOST = 127


def _quantise(x: torch.Tensor, scale: float, zero: int, most: int = MOST) -> torch.Tensor:
    return torch.clamp(torch.round(x * (1 / scale)) + zero, 0, most).to(torch.uint8)


def _dequantise(x: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
    return (x.to(torch.float32) - zero) * scale


class _Block(torch.nn.Module):
    """A convolution or a linear layer, what it adds, an activation, and its result in steps."""

    weight: torch.Tensor
    scales: torch.Tensor
    zeros: torch.Tensor
    bias: torch.Tensor | None

    def __init__(
        self, activation: Any, is_image: bool = True, zeros: int = 0, most: int = MOST, has_bias: bool = True
    ) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.activation, self.is_image, self.most = activation, is_image, most
        shape = (16, 16, 3, 3) if is_image else (16, 16)
        self.register_buffer("weight", torch.randint(-127, 128, shape, dtype=torch.int8, generator=generator))
        self.register_buffer("scales", torch.rand(16, generator=generator) * 0.003 + 0.001)
        self.register_buffer("zeros", torch.full((16,), zeros))
        self.register_buffer("bias", torch.randn(16, generator=generator) if has_bias else None)

    def forward(self, x: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
        by_channel = (-1, 1, 1, 1) if self.is_image else (-1, 1)
        wide = (self.weight - self.zeros.view(by_channel)) * self.scales.view(by_channel)
        numbers = _dequantise(_quantise(x, 0.05, 57), 0.05, 57)
        made = F.conv2d(numbers, wide, self.bias, padding=1) if self.is_image else F.linear(numbers, wide, self.bias)
        if other is not None:
            made = made + _dequantise(_quantise(other, 0.04, 60), 0.04, 60)
        return _quantise(self.activation(made), 0.05, 11, self.most)


def _check(model: torch.nn.Module, *inputs: torch.Tensor) -> dict[str, int]:
    torch._dynamo.reset()
    REPORTS.clear()
    with torch.no_grad():
        expected = model(*inputs)
        got = torch.compile(model, backend="inductile", options={"integer_products": "floats"})(*inputs)
    assert (got.dtype, got.shape, got.stride()) == (expected.dtype, expected.shape, expected.stride())
    steps = (got.to(torch.int32) - expected.to(torch.int32)).abs()
    assert int(steps.max()) <= 1 and float(steps.float().mean()) < 0.01, steps
    assert len(expected.unique()) > 20
    return dict(REPORTS[-1].aten_calls)


def _images(seed: int, *, last: bool = False) -> torch.Tensor:
    x = torch.randn((2, 16, 9, 7), generator=torch.Generator().manual_seed(seed))
    return x.contiguous(memory_format=torch.channels_last) if last else x


@pytest.mark.parametrize("activation", [lambda x: x, torch.relu, F.hardswish, F.silu])
@pytest.mark.parametrize("last", [False, True])
def test_activations_of_images(activation: Any, last: bool) -> None:
    assert _check(_Block(activation), _images(1, last=last)) == {"inductile::requantised_convolution": 1}


@pytest.mark.parametrize("most", [127, 255])
@pytest.mark.parametrize("activation", [lambda x: x, torch.relu])
def test_a_residual_is_added_in_front_and_stays_as_it_was(activation: Any, most: int) -> None:
    class Both(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = _Block(activation, most=most)

        def forward(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
            return torch.cat((self.block(x, other), _quantise(other, 0.04, 60)))

    assert _check(Both(), _images(1), _images(2)) == {"inductile::requantised_convolution.sum_": 1}


@pytest.mark.parametrize("shape", [(40, 16), (2, 20, 16)])
@pytest.mark.parametrize("activation", [lambda x: x, torch.relu, F.gelu])
def test_linear_layers(activation: Any, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(3))
    assert _check(_Block(activation, is_image=False), x) == {"inductile::requantised_linear": 1}


@pytest.mark.parametrize("is_image", [False, True])
def test_a_weight_with_zero_points_is_dequantised(is_image: bool) -> None:
    x = _images(1) if is_image else torch.randn((40, 16), generator=torch.Generator().manual_seed(3))
    _check(_Block(torch.relu, is_image, zeros=3), x)


def test_another_gelu_is_a_kernel() -> None:
    x = torch.randn((40, 16), generator=torch.Generator().manual_seed(3))
    block = _Block(lambda y: F.gelu(y, approximate="tanh"), is_image=False)
    assert _check(block, x) == {"inductile::quantised_linear": 1}


def test_an_activation_that_the_library_does_not_know_is_a_kernel() -> None:
    assert _check(_Block(F.gelu), _images(1)) == {"inductile::quantised_convolution": 1}


@pytest.mark.parametrize(("scale", "kernels"), [(0.05, "integers"), (0.06, "floats")])
def test_maxima_of_steps_are_steps(scale: float, kernels: str) -> None:
    def pooled(x: torch.Tensor) -> torch.Tensor:
        numbers = _dequantise(_quantise(x, 0.05, 57, 255), 0.05, 57)
        return _quantise(F.max_pool2d(numbers, 3, 2, 1), scale, 57, 255)

    x = _images(1)
    torch._dynamo.reset()
    REPORTS.clear()
    got = torch.compile(pooled, backend="inductile")(x)
    assert torch.equal(got, pooled(x)) and got.stride() == pooled(x).stride()
    names = " ".join(REPORTS[-1].kernels)
    assert ("max_roundeven" in names) == (kernels == "floats"), names


def test_floats_that_are_read_otherwise_come_from_one_product() -> None:
    """What squeezes and excites reads the floats, and its mean the steps."""
    block = _Block(torch.relu)

    class Scaled(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = block

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            wide = (self.block.weight - self.block.zeros.view(-1, 1, 1, 1)) * self.block.scales.view(-1, 1, 1, 1)
            numbers = _dequantise(_quantise(x, 0.05, 57), 0.05, 57)
            made = torch.relu(F.conv2d(numbers, wide, self.block.bias, padding=1))
            mean = _dequantise(_quantise(made, 0.05, 11, 255), 0.05, 11).mean((-1, -2), keepdim=True)
            return _quantise(F.hardsigmoid(mean) * made, 0.04, 3, 255)

    assert _check(Scaled(), _images(1)) == {"inductile::activated_convolution": 1}


@pytest.mark.parametrize("activation", [torch.relu, F.hardswish, F.silu])
@pytest.mark.parametrize("zeros", [0, 2])
@pytest.mark.parametrize("last", [False, True])
def test_floats_behind_an_activation_are_the_librarys(activation: Any, zeros: int, last: bool) -> None:
    """Of a weight with zero points, too, which is dequantised."""
    block = _Block(activation, zeros=zeros)

    def run(x: torch.Tensor) -> torch.Tensor:
        wide = (block.weight - block.zeros.view(-1, 1, 1, 1)) * block.scales.view(-1, 1, 1, 1)
        numbers = _dequantise(_quantise(x, 0.05, 57), 0.05, 57)
        return activation(F.conv2d(numbers, wide, block.bias, padding=1))

    torch._dynamo.reset()
    REPORTS.clear()
    x = _images(1, last=last)
    with torch.no_grad():
        expected = run(x)
        got = torch.compile(run, backend="inductile", options={"integer_products": "floats"})(x)
    assert (got.shape, got.stride()) == (expected.shape, expected.stride())
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    assert dict(REPORTS[-1].aten_calls) == {"inductile::activated_convolution": 1}


def test_a_packed_weight_follows_its_weight_and_the_sizes() -> None:
    block = _Block(torch.relu, most=127)
    torch._dynamo.reset()
    compiled = torch.compile(block, backend="inductile", dynamic=False)
    with torch.no_grad():
        for x in (_images(1), _images(2)[:1], _images(3)):
            assert int((compiled(x).int() - block(x).int()).abs().max()) <= 1
            block.weight.neg_()
            assert int((compiled(x).int() - block(x).int()).abs().max()) <= 1
            block.weight = torch.roll(block.weight, 1)
            assert int((compiled(x).int() - block(x).int()).abs().max()) <= 1


@pytest.mark.parametrize("activation", [lambda x: x, torch.relu, F.gelu])
@pytest.mark.parametrize("shape", [(6, 16), (2, 5, 16)])
def test_linear_layers_without_a_bias(activation: Any, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape, generator=torch.Generator().manual_seed(2))
    assert _check(_Block(activation, is_image=False, has_bias=False), x) == {"inductile::requantised_linear": 1}
