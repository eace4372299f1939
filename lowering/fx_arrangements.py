"""Layouts that compiled graphs restore in their arguments. Light to import: graphs from the cache load nothing else."""

from __future__ import annotations

from functools import cached_property

import torch

from ..records import dataclass


@dataclass(frozen=True)
class Arrangement:
    """The layout in which a graph reads an argument.

    strides: of every call, None where they depend on sizes
    order:   its dimensions, from the outermost in memory to the innermost, None where it has gaps or overlaps
    """

    position: int
    strides: tuple[int, ...] | None
    order: tuple[int, ...] | None

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor in this layout. Hooks on saved tensors may have given back one that has lost it.

        A tensor that overlaps itself cannot be restored: torch says so.
        """
        if self.strides is not None and tensor.stride() == self.strides:
            return tensor
        if self._is_contiguous and tensor.is_contiguous():
            return tensor
        if self.order is None:
            assert self.strides is not None
            made = torch.empty_strided(tensor.shape, self.strides, dtype=tensor.dtype, device=tensor.device)
            return made.copy_(tensor)
        permuted = tensor.permute(self.order)
        if permuted.is_contiguous():
            return tensor
        inverse = sorted(range(len(self.order)), key=self.order.__getitem__)
        return permuted.contiguous().permute(inverse)

    @cached_property
    def _is_contiguous(self) -> bool:
        return self.order is not None and self.order == tuple(range(len(self.order)))
