"""How long matrix products take on a GPU's library, by how their rows lie in memory: measured rates as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..kernel.targets import GpuTarget

LAUNCH = 4000.0
"""Nanoseconds between two kernels of a library, with the call that starts them."""


@dataclass(frozen=True)
class ProductRates:
    """Operations a nanosecond of products of one element type, two for each multiplication.

    by_alignment: bytes that all rows of the three matrices begin at multiples of -> the rate
    source:       where the numbers come from
    """

    by_alignment: Mapping[int, float]
    source: str


#: (target, bits of an element) -> rates; what is not here is not known, and nothing is decided by it
RATES: dict[tuple[str, int], ProductRates] = {
    # the slowest of what `benchmarks/products.py` gave for unaligned results, operands and depths
    ("cuda:90", 16): ProductRates(
        {16: 690_000, 8: 235_000, 4: 240_000, 2: 120_000},
        "H200, torch 2.11, CUDA 13.0, bfloat16 and float16: 8192x768x30528 in 0.55 ms, some elements fewer in 1.6 and "
        "4.1; in turns 0.65 to 0.70",
    ),
    ("cuda:90", 32): ProductRates(
        {16: 51_000, 8: 51_000, 4: 51_000},
        "H200, torch 2.11, CUDA 13.0, float32 without TF32: 8192x768x30528 in 7.5 ms, aligned or not",
    ),
}


def product_nanoseconds(target: GpuTarget, bits: int, alignment: int, sizes: tuple[int, int, int, int]) -> float | None:
    """An estimate for `sizes`: batch, rows, depth and columns; None where no rate is known for the alignment."""
    rates = RATES.get((target.name, bits))
    rate = rates.by_alignment.get(alignment) if rates is not None else None
    if rate is None:
        return None
    batch, rows, depth, columns = sizes
    moved = bits // 8 * batch * (rows * depth + depth * columns + rows * columns)
    return LAUNCH + max(2.0 * batch * rows * depth * columns / rate, moved / target.bandwidth)


#: (target, bits of an element) -> operations a nanosecond of fused attention, two for each multiplication
ATTENTION_RATES: dict[tuple[str, int], float] = {
    ("cuda:90", 16): 437_000,  # H200, torch 2.11, bfloat16: 4 x 16 heads of 2048 x 64, without a mask, in 0.157 ms
}


def attention_nanoseconds(target: GpuTarget, bits: int, sizes: tuple[int, int, int, int]) -> float | None:
    """An estimate for `sizes`: heads of all batches, queries, keys and width, everything being visible."""
    rate = ATTENTION_RATES.get((target.name, bits))
    heads, queries, keys, width = sizes
    return None if rate is None else LAUNCH + 4.0 * heads * queries * keys * width / rate
