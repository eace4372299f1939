"""Random tensors of given layouts, for timings and examples. Packages load this: it imports torch alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def random_tensor(
    shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, device: torch.device, generator: torch.Generator
) -> torch.Tensor:
    """A tensor of normally distributed numbers, or of 0 and 1 where it holds no floats.

    They are drawn on the device of the generator: a CPU's gives the same numbers for every device.
    """
    count = 0 if 0 in shape else 1 + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    if dtype.is_floating_point or dtype.is_complex:
        flat = torch.randn(count, generator=generator, device=generator.device)
    else:
        flat = torch.randint(0, 2, (count,), generator=generator, device=generator.device)
    return flat.to(device, dtype).as_strided(tuple(shape), tuple(strides))
