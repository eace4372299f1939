"""Floating-point functions that torch lacks, each on tensors of one dtype (float32 or float64)."""

from __future__ import annotations

import torch


def round_half_away(x: torch.Tensor) -> torch.Tensor:
    """The nearest integer, halves away from zero; keeps the sign of zero."""
    whole = torch.trunc(x)
    return torch.where((x - whole).abs() >= 0.5, whole + torch.sgn(x), whole)


def cube_root(x: torch.Tensor) -> torch.Tensor:
    """The real cube root, with one Newton step for the last bits."""
    magnitude = x.abs().to(torch.float64)
    root = magnitude ** (1.0 / 3.0)
    better = root - (root * root * root - magnitude) / (3.0 * root * root)
    return torch.copysign(torch.where(better.isfinite(), better, root), x).to(x.dtype)


def fused_multiply_add(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """x * y + z with (nearly always) one rounding: products of float32 are exact in float64; float64 is compensated."""
    if x.dtype != torch.float64:
        return (x.double() * y.double() + z.double()).to(x.dtype)
    product = x * y
    total = product + z
    error = _product_error(x, y, product) + _sum_error(product, z, total)
    return torch.where(error.isfinite(), total + error, total)


def _product_error(x: torch.Tensor, y: torch.Tensor, product: torch.Tensor) -> torch.Tensor:
    """x * y - product exactly (Dekker 1971), unless a step overflows."""
    (x1, x0), (y1, y0) = _halves(x), _halves(y)
    return x0 * y0 - (product - x1 * y1 - x0 * y1 - x1 * y0)


def _halves(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    scaled = 134217729.0 * x  # 2**27 + 1
    high = scaled - (scaled - x)
    return high, x - high


def _sum_error(x: torch.Tensor, y: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """x + y - total exactly (Knuth)."""
    part = total - x
    return (x - (total - part)) + (y - part)


def floor_divide(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Python's x // y; inf, -inf or NaN for y == 0."""
    return torch.div(x.double(), y.double(), rounding_mode="floor").to(x.dtype)


def remainder(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Python's x % y. In float64, because torch's vectorised fmod of float32 is NaN for a subnormal divisor."""
    return torch.remainder(x.double(), y.double()).to(x.dtype)


def fmod(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """C's fmod, which is exact, so that float64 gives float32's result; see `remainder`."""
    return torch.fmod(x.double(), y.double()).to(x.dtype)
