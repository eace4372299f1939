"""What reports say of a product that a library computes. Light to import, as graphs from the cache are."""

from __future__ import annotations

from ...records import dataclass


@dataclass(frozen=True)
class LibraryCall:
    """A product or an attention.

    call:         what is computed, with sizes: rows, depth and columns, or queries, keys and width of heads
    kernel:       the library's kernel, and why it is that one
    microseconds: an estimate from measured rates of the target, None where there are none
    location:     the user's `file:line`
    """

    call: str
    kernel: str
    microseconds: float | None
    location: str
