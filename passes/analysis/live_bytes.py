"""How many bytes of what a host function makes are alive at each of its ops."""

from __future__ import annotations

from collections.abc import Collection
from itertools import accumulate

from xdsl.ir import SSAValue

from ...dialects.aten.types import type_of
from ...machines import ON_HOST
from .lifetimes import Lifetimes
from .sizes import Sizes
from .tensor_bytes import bytes_of


class LiveBytes:
    """Bytes that the tensors which a function makes take at each of its ops; estimates where sizes are symbols.

    Arguments do not count, for whoever calls may hold them; neither do views, `left_out`, nor what ATen needs while it
    runs. Sizes are rounded up to what any allocator aligns to. `until[k]` is the most bytes up to the op at `k`.
    """

    def __init__(self, lifetimes: Lifetimes, sizes: Sizes, left_out: Collection[SSAValue] = ()) -> None:
        self.sizes = sizes
        changes = [0] * (lifetimes.end + 2)
        for value in lifetimes.values:
            start = lifetimes.start(value)
            if start >= 0 and lifetimes.roots(value) == {value} and value not in left_out:
                size = self.of(value)
                changes[start] += size
                changes[lifetimes.last[value] + 1] -= size
        self.at = list(accumulate(changes[:-1]))
        self.until = list(accumulate(self.at, max))
        self.peak = max(self.at, default=0)

    def of(self, value: SSAValue) -> int:
        """Bytes of a tensor; 0 for one of a type that only ATen knows."""
        least = ON_HOST.aligned_bytes
        try:
            return -(-self.sizes.of(bytes_of(type_of(value))) // least) * least
        except KeyError:
            return 0

    def _add(self, size: int, first: int, last: int) -> None:
        for position in range(first, last + 1):
            self.at[position] += size

    def hold(self, value: SSAValue, died: int, wanted: int) -> bool:
        """Hold memory between the op where it died and the one that wants it, unless that might raise the peak.

        It does not where as much was live at an earlier op: the arguments that the caller gave up, of which nobody
        here knows, were then no less than now. What a backward function is given dies all along, so that a later peak
        of its own memory may lie far below an earlier one of all.
        """
        size = self.of(value)
        if any(self.at[position] + size > self.until[position] for position in range(died + 1, wanted)):
            return False
        self._add(size, died + 1, wanted - 1)
        return True
