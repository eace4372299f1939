"""Dead memory for new allocations, where holding it in between does not raise the peak."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import accumulate

from xdsl.ir import Block, SSAValue

from ...dialects import host
from ...dialects.aten.types import type_of
from ...dialects.sym import Expr, SymAttr
from ..analysis.lifetimes import Lifetimes
from ..analysis.sizes import Sizes
from ..analysis.tensor_bytes import ALIGNMENT, bytes_of
from ..counters import counter
from ..remarks import remark


class LiveBytes:
    """Bytes that the tensors which a function makes take at each of its ops; estimates where sizes are symbols.

    Arguments do not count, for whoever calls may hold them; neither do views, `left_out`, nor what ATen needs while it
    runs. Sizes are rounded up to what allocators align to. `until[k]` is the most bytes up to the op at `k`.
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
        try:
            return -(-self.sizes.of(bytes_of(type_of(value))) // ALIGNMENT) * ALIGNMENT
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


def take_over(function: host.FuncOp, reusable: Callable[[SSAValue], bool]) -> None:
    """Let allocations of a function take over dead memory of equal size, the one that died last."""
    block = function.body.block
    lifetimes = Lifetimes(block)
    last = {value: lifetimes.last[value] for value in lifetimes.values if reusable(value)}
    ending: dict[int, list[SSAValue]] = {}
    for value, position in last.items():
        if position < lifetimes.end:
            ending.setdefault(position, []).append(value)
    live = LiveBytes(lifetimes, Sizes.of_function(function))
    dead: dict[tuple[Expr, str], list[tuple[SSAValue, int]]] = {}
    for op in list(block.ops):
        position = lifetimes.position[op]
        if isinstance(op, host.EmptyOp) and op.out in last:
            old = _pick(dead, op.out, position, lifetimes.escapes(op.out), live)
            if old is not None and counter("host-reuse"):
                remark("passed", "host-reuse", op, "takes over dead memory", bytes=str(bytes_of(type_of(op.out))))
                ends = last[op.out]
                _give(block, op, old)
                if ends < lifetimes.end:
                    ending[ends] = [old if value is op.out else value for value in ending[ends]]
        for value in ending.get(position, ()):
            dead.setdefault((bytes_of(type_of(value)), type_of(value).device), []).append((value, position))


def _pick(
    dead: dict[tuple[Expr, str], list[tuple[SSAValue, int]]],
    new: SSAValue,
    wanted: int,
    escapes: bool,
    live: LiveBytes,
) -> SSAValue | None:
    """The dead memory that a new value takes over; what is returned must not be a view."""
    kind = type_of(new)
    candidates = dead.get((bytes_of(kind), kind.device), [])
    for number in range(len(candidates) - 1, -1, -1):
        old, died = candidates[number]
        if old.type == kind or not escapes:
            if not live.hold(old, died, wanted):
                return None  # what died earlier would be held even longer
            del candidates[number]
            return old
    return None


def _give(block: Block, empty: host.EmptyOp, old: SSAValue) -> None:
    new: SSAValue = old
    if old.type != empty.out.type:
        view = host.ViewOp.of(old, SymAttr.of(0), empty.out.type, empty.location)
        block.insert_op_before(view, empty)
        new = view.out
    empty.out.replace_all_uses_with(new)
    block.erase_op(empty)
