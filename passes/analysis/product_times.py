"""How long matrix products and attention take on a GPU's library, by the rates of its description."""

from __future__ import annotations

from ...machines import GpuTarget
from ...machines.products import LAUNCH, TF32


def product_nanoseconds(target: GpuTarget, bits: int, alignment: int, sizes: tuple[int, int, int, int]) -> float | None:
    """An estimate for `sizes`: batch, rows, depth and columns; None where no rate is known for the alignment.

    bits: of an element, or `TF32` for those of float32 in products that read less of them
    """
    rates = target.products.get(bits)
    rate = rates.by_alignment.get(alignment) if rates is not None else None
    if rate is None:
        return None
    batch, rows, depth, columns = sizes
    moved = factor_bytes(bits) * batch * (rows * depth + depth * columns + rows * columns)
    return LAUNCH + max(2.0 * batch * rows * depth * columns / rate, moved / target.bandwidth)


def factor_bytes(bits: int) -> int:
    """Bytes of an element whose products have rates under `bits`."""
    return 4 if bits == TF32 else bits // 8


def attention_nanoseconds(target: GpuTarget, bits: int, sizes: tuple[int, int, int, int]) -> float | None:
    """An estimate for `sizes`: heads of all batches, queries, keys and width, everything being visible."""
    rate = target.attention.get(bits)
    heads, queries, keys, width = sizes
    return None if rate is None else LAUNCH + 4.0 * heads * queries * keys * width / rate
