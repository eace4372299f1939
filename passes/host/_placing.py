"""Tensors that are to lie in a pool, and where those of known sizes go."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects import host
from ...dialects.sym import ZERO, Expr, const
from ...records import dataclass


@dataclass
class Request:
    """A tensor to place: its size in bytes, the same rounded up, an estimate of that, and the ops between which it
    lives, both included."""

    op: host.EmptyOp
    size: Expr
    bytes: Expr
    estimate: int
    start: int
    last: int
    offset: Expr = ZERO

    def overlaps(self, other: Request) -> bool:
        """Whether both live at once."""
        return self.start <= other.last and other.start <= self.last


def place_known(requests: Sequence[Request]) -> int:
    """Give each request the lowest offset at which nothing that lives with it lies; the bytes needed."""
    placed: list[tuple[int, int, Request]] = []
    end = 0
    for request in requests:
        size, offset = request.estimate, 0
        for start, stop in sorted((start, stop) for start, stop, other in placed if other.overlaps(request)):
            if offset + size <= start:
                break
            offset = max(offset, stop)
        request.offset = const(offset)
        placed.append((offset, offset + size, request))
        end = max(end, offset + size)
    return end
