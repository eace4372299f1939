"""Random numbers of our own: from a seed that is drawn for each call, by a function of seed and position.

With the option `fallback_random` random ops stay as they are, eager's kernels draw, and the values are eager's. Without
it the common ones become `inductile::random(seed, size)`, which is a pure function and therefore fuses, and may be
computed a second time for the backward graph instead of being saved. The seed is one int64 drawn by `aten.randint` on
the device, so `torch.manual_seed` decides it, and each call of a compiled function has another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from .fx_stride_families import are_alike

NAMESPACE = "inductile"
_LIBRARY = torch.library.Library(NAMESPACE, "DEF")
_LIBRARY.define("random(Tensor seed, SymInt[] size, *, ScalarType dtype, bool normal=False) -> Tensor")
_MASK = 0xFFFFFFFF


def philox(seed: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """Word `offset mod 4` of block `offset floordiv 4` of Philox 4x32-10 with key `seed`: int64 in [0, 2**32).

    Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011).
    """
    block = offset >> 2
    zero = torch.zeros_like(block)
    counter = [block & _MASK, block >> 32 & _MASK, zero, zero]
    key0, key1 = seed & _MASK, seed >> 32 & _MASK
    for _ in range(10):
        high0, low0 = _product(0xD2511F53, counter[0])
        high1, low1 = _product(0xCD9E8D57, counter[2])
        counter = [high1 ^ counter[1] ^ key0, low1, high0 ^ counter[3] ^ key1, low0]
        key0, key1 = key0 + 0x9E3779B9 & _MASK, key1 + 0xBB67AE85 & _MASK
    return torch.stack(counter).gather(0, (offset & 3).unsqueeze(0)).squeeze(0)


def _product(factor: int, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """High and low half of a product of two numbers of 32 bits, which as a whole wraps in int64."""
    product = factor * value
    return product >> 32 & _MASK, product & _MASK


def _uniform(seed: torch.Tensor, position: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Multiples of 2**-24, or 2**-53, in [0, 1)."""
    if dtype == torch.float64:
        high, low = philox(seed, 2 * position), philox(seed, 2 * position + 1)
        return ((high >> 5) * 2**26 + (low >> 6)).to(dtype) * 2.0**-53
    return (philox(seed, position) >> 8).to(dtype) * 2.0**-24


def _random(seed: torch.Tensor, size: list[int], *, dtype: torch.dtype, normal: bool = False) -> torch.Tensor:
    position = torch.arange(math.prod(size), device=seed.device)
    if not normal:
        return _uniform(seed, position, dtype).reshape(size)
    # Box and Muller; 1 - u is in (0, 1]
    radius = (-2 * (1 - _uniform(seed, 2 * position, dtype)).log()).sqrt()
    angle = 2 * math.pi * _uniform(seed, 2 * position + 1, dtype)
    return (radius * angle.cos()).reshape(size)


def _meta(seed: torch.Tensor, size: list[int], *, dtype: torch.dtype, normal: bool = False) -> torch.Tensor:
    return seed.new_empty(size, dtype=dtype)


_LIBRARY.impl("random", _random, "CompositeExplicitAutograd")
torch.library.register_fake(f"{NAMESPACE}::random", _meta, lib=_LIBRARY)


def _draw(like: torch.Tensor | None, size: Any, device: Any, dtype: torch.dtype, normal: bool = False) -> torch.Tensor:
    """New numbers in float64 for float64, else in float32; with the strides of `like`."""
    seed = torch.randint(0, 2**63 - 1, (1,), dtype=torch.int64, device=device)
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    drawn = torch.ops.inductile.random(seed, size, dtype=wide, normal=normal)
    if like is not None and not are_alike(like.stride(), drawn.stride()):
        drawn = torch.ops.aten.copy(torch.empty_like(like, dtype=wide), drawn)
    return drawn


#: bits of the numbers in [0, 1) that a type of low precision holds without rounding up to 1
_DIGITS = {torch.float16: 11, torch.bfloat16: 8}


def _narrowed(drawn: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    digits = _DIGITS.get(dtype)
    return drawn if digits is None else ((drawn * 2**digits).floor() * 2.0**-digits).to(dtype)


def _can_draw(dtype: torch.dtype, **given: Any) -> bool:
    is_plain = given.get("layout") in (None, torch.strided) and not given.get("pin_memory")
    return is_plain and dtype.is_floating_point and dtype.itemsize > 1 and given.get("generator") is None


def native_dropout(input: torch.Tensor, p: float, train: bool | None) -> Any:
    """Keeps an element where the number drawn for it is at least p."""
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    if p == 1:
        return torch.zeros_like(input), torch.zeros_like(input, dtype=torch.bool)
    keep = _draw(input, input.shape, input.device, torch.float32) >= p
    return input * keep * (1 / (1 - p)), keep


def _sized(normal: bool) -> Callable[..., Any]:
    def draw(size: Any, *, dtype: Any = None, device: Any = None, **given: Any) -> Any:
        dtype = dtype or torch.get_default_dtype()
        if not _can_draw(dtype, **given):
            return NotImplemented
        drawn = _draw(None, size, device or torch.get_default_device(), dtype, normal)
        return drawn.to(dtype) if normal else _narrowed(drawn, dtype)

    return draw


def _like(normal: bool) -> Callable[..., Any]:
    def draw(self: torch.Tensor, *, dtype: Any = None, device: Any = None, **given: Any) -> Any:
        dtype = dtype or self.dtype
        if not _can_draw(dtype, **given) or given.get("memory_format") not in (None, torch.preserve_format):
            return NotImplemented
        drawn = _draw(self, self.shape, device or self.device, dtype, normal)
        return drawn.to(dtype) if normal else _narrowed(drawn, dtype)

    return draw


def bernoulli(self: torch.Tensor, p: float | torch.Tensor | None = None, *, generator: Any = None) -> Any:
    """1 where the number drawn is below p, or below the element itself."""
    if not _can_draw(torch.float32, generator=generator):
        return NotImplemented
    limit = self if p is None else p
    return (_draw(self, self.shape, self.device, torch.float32) < limit).to(self.dtype)


def uniform(self: torch.Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Any:
    """Numbers in [from, to)."""
    if not _can_draw(self.dtype, generator=generator):
        return NotImplemented
    drawn = _draw(self, self.shape, self.device, self.dtype)
    return _narrowed(drawn, self.dtype) * (to - from_) + from_


def normal_functional(self: torch.Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Any:
    """Normally distributed numbers."""
    if not _can_draw(self.dtype, generator=generator):
        return NotImplemented
    drawn = _draw(self, self.shape, self.device, self.dtype, normal=True)
    return (drawn * std + mean).to(self.dtype)


def random_decompositions() -> dict[Any, Callable[..., Any]]:
    """Random ops as functions of drawn seeds. Ops with a generator of their own are not among them."""
    aten = torch.ops.aten
    return {
        aten.native_dropout.default: native_dropout,
        aten.rand.default: _sized(normal=False),
        aten.randn.default: _sized(normal=True),
        aten.rand_like.default: _like(normal=False),
        aten.randn_like.default: _like(normal=True),
        aten.bernoulli.default: bernoulli,
        aten.bernoulli.p: bernoulli,
        aten.bernoulli.Tensor: bernoulli,
        aten.uniform.default: uniform,
        aten.normal_functional.default: normal_functional,
    }
