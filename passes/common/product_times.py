"""How long matrix products and attention take on a GPU's library, by the rates of its description."""

from __future__ import annotations

from ...machines import GpuTarget
from ...machines.products import LAUNCH


def product_nanoseconds(target: GpuTarget, bits: int, alignment: int, sizes: tuple[int, int, int, int]) -> float | None:
    """An estimate for `sizes`: batch, rows, depth and columns; None where no rate is known for the alignment."""
    rates = target.products.get(bits)
    rate = rates.by_alignment.get(alignment) if rates is not None else None
    if rate is None:
        return None
    batch, rows, depth, columns = sizes
    moved = bits // 8 * batch * (rows * depth + depth * columns + rows * columns)
    return LAUNCH + max(2.0 * batch * rows * depth * columns / rate, moved / target.bandwidth)


def attention_nanoseconds(target: GpuTarget, bits: int, sizes: tuple[int, int, int, int]) -> float | None:
    """An estimate for `sizes`: heads of all batches, queries, keys and width, everything being visible."""
    rate = target.attention.get(bits)
    heads, queries, keys, width = sizes
    return None if rate is None else LAUNCH + 4.0 * heads * queries * keys * width / rate
