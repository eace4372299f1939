"""Memory that programs keep between calls, so that large intermediates do not fault in their pages at every call."""

from __future__ import annotations

import weakref
from functools import cache

import torch

from ...machines import HOST

_LARGEST = 32 << 20
"""Bytes of the largest block that glibc takes as a hint of what a program frees again and again."""
_HEAD = 64 << 10
"""Enough for what stands around a block, its alignment included."""


@cache
def keep_freed_memory() -> None:
    """Let the C library keep what results of library calls free, once a process.

    glibc gives large blocks back when they are freed, until it has seen one so large freed, and what is free at the end
    of its heap beyond twice that. A program that runs again then faults in its pages again: 5 products of 1500 x 1536
    floats 6,718 pages a call in one process, none behind this. A block that nobody writes costs no memory. Thresholds
    that a user sets (`MALLOC_TRIM_THRESHOLD_`) stay as they are.
    """
    torch.UntypedStorage(_LARGEST - _HEAD)


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
