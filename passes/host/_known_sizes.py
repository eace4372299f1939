"""Where in a host function sizes are known: what an op binds as a symbol, only behind that op."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import Block

from ...dialects.aten import AtenOp, CallOp
from ...dialects.raw import ops_of
from ...dialects.sym import Expr


def known_behind(block: Block) -> Callable[[Expr], int]:
    """A function that gives the position of the last op that binds a symbol of a size; -1 where none has to run."""
    bound = {
        name: position
        for position, op in enumerate(ops_of(block))
        if isinstance(op, AtenOp | CallOp)
        for name in op.binds
    }

    def position(size: Expr) -> int:
        return max((bound.get(name, -1) for name in size.free_symbols), default=-1) if bound else -1

    return position


def best_place(requests: Iterable[tuple[int, int, int]]) -> int:
    """The place behind which one allocation can serve most.

    Each request is (the position behind which its size is known, the position of its tensor, its bytes): an allocation
    serves those whose size is known where it stands and whose tensor comes later.
    """
    found = list(requests)

    def served(place: int) -> int:
        return sum(size for known, start, size in found if known <= place < start)

    return max(sorted({known for known, _, _ in found}), key=served, default=-1)
