"""Signless integer arithmetic on torch tensors: signed dtypes hold the bits, unsigned ops reinterpret them.

Every function takes and gives tensors of one signed dtype. torch has no unsigned arithmetic worth the name, so the
unsigned ops are derived from the signed ones by the usual identities (Warren, Hacker's Delight, chapters 2 and 9).
"""

from __future__ import annotations

import torch


def bits(x: torch.Tensor) -> int:
    """Width of the dtype."""
    return torch.iinfo(x.dtype).bits


def flip(x: torch.Tensor) -> torch.Tensor:
    """x with its sign bit inverted: signed order of the result is unsigned order of x."""
    return x ^ torch.iinfo(x.dtype).min


def shift_left(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """x << n; 0 where n is not in [0, width), which has no meaning."""
    inside = (n >= 0) & (n < bits(x))
    return torch.where(inside, x << torch.where(inside, n, 0), 0)


def shift_right(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """x >> n keeping the sign; all sign bits where n is not in [0, width)."""
    inside = (n >= 0) & (n < bits(x))
    return x >> torch.where(inside, n, bits(x) - 1)


def shift_right_unsigned(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """x >> n filling with zeros; 0 where n is not in [0, width)."""
    signs = shift_left(torch.full_like(x, -1), bits(x) - n)  # the n highest bits
    return torch.where((n >= 0) & (n < bits(x)), shift_right(x, n) & ~signs, 0)


def divide(x: torch.Tensor, y: torch.Tensor, rounding: str) -> torch.Tensor:
    """Signed x / y rounded by "trunc" or "floor", y != 0. Dividing by -1 negates, so the smallest integer wraps."""
    minus_one = y == -1
    return torch.where(minus_one, -x, torch.div(x, torch.where(minus_one, 1, y), rounding_mode=rounding))


def remainder(x: torch.Tensor, y: torch.Tensor, rounding: str) -> torch.Tensor:
    """x - y * (x / y) with the rounding of `divide`."""
    return x - y * divide(x, y, rounding)


def divide_up(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Signed ceil(x / y)."""
    return divide(x, y, "floor") + (remainder(x, y, "floor") != 0).to(x.dtype)


def divide_unsigned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Unsigned x / y, y != 0."""
    one = torch.ones_like(x)
    large = y < 0  # then the quotient is 0 or 1
    half = torch.where(large, one, y)
    quotient = divide(shift_right_unsigned(x, one), half, "trunc") << 1
    quotient = quotient + (flip(x - quotient * half) >= flip(half)).to(x.dtype)
    return torch.where(large, (flip(x) >= flip(y)).to(x.dtype), quotient)


def remainder_unsigned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Unsigned x % y, y != 0."""
    return x - y * divide_unsigned(x, y)


def divide_up_unsigned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Unsigned ceil(x / y)."""
    return divide_unsigned(x, y) + (remainder_unsigned(x, y) != 0).to(x.dtype)


def population_count(x: torch.Tensor) -> torch.Tensor:
    """Number of ones."""
    return sum(((x >> k) & 1 for k in range(bits(x))), torch.zeros_like(x))


def leading_zeros(x: torch.Tensor) -> torch.Tensor:
    """Number of zeros above the highest one; the width for 0."""
    count = torch.full_like(x, bits(x))
    for k in range(bits(x)):
        count = torch.where((x >> k) & 1 != 0, bits(x) - 1 - k, count)
    return count


def trailing_zeros(x: torch.Tensor) -> torch.Tensor:
    """Number of zeros below the lowest one; the width for 0."""
    count = torch.full_like(x, bits(x))
    for k in reversed(range(bits(x))):
        count = torch.where((x >> k) & 1 != 0, k, count)
    return count


def multiply_high(x: torch.Tensor, y: torch.Tensor, signed: bool) -> torch.Tensor:
    """The upper half of the product of double width."""
    width = bits(x)
    if width < 64:
        wide = [as_unsigned(v) if not signed else v.to(torch.int64) for v in (x, y)]
        return (wide[0] * wide[1] >> width).to(x.dtype)
    x0, y0 = x & 0xFFFFFFFF, y & 0xFFFFFFFF
    x1, y1 = x >> 32 & 0xFFFFFFFF, y >> 32 & 0xFFFFFFFF
    carry = _upper(x0 * y0) + (x1 * y0 & 0xFFFFFFFF) + (x0 * y1 & 0xFFFFFFFF)
    high = x1 * y1 + _upper(x1 * y0) + _upper(x0 * y1) + _upper(carry)
    if signed:  # a negative operand stands for operand - 2**64
        high = high - torch.where(x < 0, y, 0) - torch.where(y < 0, x, 0)
    return high


def _upper(x: torch.Tensor) -> torch.Tensor:
    return x >> 32 & 0xFFFFFFFF


def as_unsigned(x: torch.Tensor) -> torch.Tensor:
    """The unsigned value of a dtype narrower than 64 bits, as int64."""
    return x.to(torch.int64) & ((1 << bits(x)) - 1)


def philox(seed: torch.Tensor, offset: torch.Tensor) -> torch.Tensor:
    """Word `offset mod 4` of block `offset floordiv 4` of Philox 4x32-10 with key `seed`, as int32.

    Salmon et al., Parallel random numbers: as easy as 1, 2, 3 (2011). The block number is the low half of the
    counter, the high half is 0.
    """
    block = offset >> 2
    zero = torch.zeros_like(block + seed)
    c0, c1, c2, c3 = block & 0xFFFFFFFF, _upper(block), zero, zero
    k0, k1 = seed & 0xFFFFFFFF, _upper(seed)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = _upper(p1) ^ c1 ^ k0, p1 & 0xFFFFFFFF, _upper(p0) ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    word = offset & 3
    chosen = torch.where(word == 0, c0, torch.where(word == 1, c1, torch.where(word == 2, c2, c3)))
    return chosen.to(torch.int32)
