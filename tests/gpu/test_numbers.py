"""Functions over every value of a 16-bit type: approximate in float32, as exact as eager where it shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

pytestmark = pytest.mark.gpu

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "exp": torch.exp,
    "sigmoid": torch.sigmoid,
    "silu": F.silu,
    "ratio": lambda x: x / (1 + torch.exp(-x)),
}


def every_value(dtype: torch.dtype) -> torch.Tensor:
    return torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype).cuda()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_value(name: str, dtype: torch.dtype) -> None:
    """The nearest 16-bit value nearly always; else a neighbour of it, or what eager has in float32."""
    function, x = FUNCTIONS[name], every_value(dtype)
    got, eager = torch.compile(function, backend="inductile")(x), function(x.float()).to(dtype)
    want = function(x.double()).to(dtype)
    assert torch.equal(got.isnan(), want.isnan())
    got, eager, want = (y.nan_to_num(7.0, torch.inf, -torch.inf) for y in (got, eager, want))
    differ = got != want
    assert differ.float().mean() < 2e-3
    near = [torch.nextafter(want, torch.full_like(want, end)) for end in (torch.inf, -torch.inf)]
    assert bool((~differ | (got == eager) | (got == near[0]) | (got == near[1])).all())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_rounding_like_eager(dtype: torch.dtype) -> None:
    """`emulate_precision_casts` promises the bits of eager."""
    x = every_value(dtype)
    got = torch.compile(lambda x: torch.exp(x) * 2, backend="inductile", options={"emulate_precision_casts": True})(x)
    assert torch.equal(got.nan_to_num(7.0), (torch.exp(x) * 2).nan_to_num(7.0))


@pytest.mark.parametrize("source", [torch.int8, torch.uint8])
@pytest.mark.parametrize("target", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("count", [256, 3])
def test_every_byte(source: torch.dtype, target: torch.dtype, count: int) -> None:
    """Bytes become floats by their bits, four at once, also where a thread has fewer."""
    x = torch.arange(256, device="cuda").to(torch.uint8).view(source)[:count]
    assert torch.equal(torch.compile(lambda x: x.to(target) * 2, backend="inductile")(x), x.to(target) * 2)


@pytest.mark.parametrize("count", [256, 3])
def test_every_half_of_a_byte(count: int) -> None:
    """Numbers of 4 bits become floats where they lie."""

    def run(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return ((x & 15).float() - 8) * 3, (x >> 4).float() * 3

    x = torch.arange(256, device="cuda").to(torch.uint8)[:count]
    for got, want in zip(torch.compile(run, backend="inductile")(x), run(x), strict=True):
        assert torch.equal(got, want)


@pytest.mark.parametrize("dynamic", [False, True])
def test_numbers_of_the_cpu_that_several_kernels_read(dynamic: bool) -> None:
    """They are computed on the CPU: what a kernel of the GPU wrote there would be a copy's, which nobody reads."""

    def run(x: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, ...]:
        t = (s * 3).exp()
        y = (x * t).sort()[0]
        return y * t + t.trunc(), t, x * (s * 2)

    compiled = torch.compile(run, backend="inductile", dynamic=dynamic)
    for size, number in ((70, 0.5), (33, 0.25)):
        x, s = torch.randn(size, device="cuda"), torch.tensor(number)
        torch.testing.assert_close(compiled(x, s), run(x, s))


def test_sizes_from_a_square_root() -> None:
    """A scale made of `int(n ** 0.5)` is arithmetic of numbers on the CPU."""
    weight = torch.randn(3, 3, 3, 3, device="cuda")

    def run(x: torch.Tensor) -> torch.Tensor:
        side = int((x.shape[1] - 1) ** 0.5)
        y = x[:, 1:].reshape(x.shape[0], side, -1, 3).permute(0, 3, 1, 2)
        for _ in range(2):
            y = F.interpolate(F.conv2d(y, weight, padding=1), scale_factor=2, mode="bilinear", align_corners=True)
        return y

    compiled = torch.compile(run, backend="inductile", dynamic=True)
    for tokens in (17, 26, 65):
        x = torch.randn(2, tokens, 3, device="cuda")
        torch.testing.assert_close(compiled(x), run(x), rtol=1e-4, atol=1e-4)
