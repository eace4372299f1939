"""Memory that programs keep between calls, so that large intermediates do not fault in their pages at every call."""

from __future__ import annotations

import weakref

import torch

from ...machines import HOST


class Arena:
    """At most one stretch of CPU memory, lent to one call at a time.

    A call that finds it lent, from another thread or from a call that is still running, gets fresh memory. So does one
    that needs more; the larger of what is kept and what is given back stays. A call that ends in an error gives
    nothing back, and its memory is freed. Lists change by single operations, which threads cannot interrupt.
    """

    def __init__(self) -> None:
        self._kept: list[torch.Tensor] = []

    @property
    def bytes(self) -> int:
        """Bytes that are kept now."""
        return sum(kept.numel() for kept in tuple(self._kept))

    def take(self, size: int) -> torch.Tensor:
        """At least `size` bytes of undefined content."""
        try:
            kept = self._kept.pop()
        except IndexError:
            return torch.empty(size, dtype=torch.uint8)
        return kept if kept.numel() >= size else torch.empty(size, dtype=torch.uint8)

    def give(self, memory: torch.Tensor) -> None:
        """Give memory back that `take` lent and that nothing uses any more."""
        if self.bytes < memory.numel():
            self._kept[:] = (memory,)

    def clear(self) -> None:
        """Free what is kept now; what is lent is not touched."""
        self._kept.clear()


_living: weakref.WeakValueDictionary[str, Arena] = weakref.WeakValueDictionary()


def shared_arena() -> Arena:
    """The arena of all programs; it lives as long as one of them, and holds as much as the largest pool."""
    arena = _living.get(HOST)
    if arena is None:
        arena = _living[HOST] = Arena()
    return arena
