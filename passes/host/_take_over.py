"""Dead memory for new allocations, where holding it in between does not raise the peak."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Block, SSAValue

from ...dialects import host
from ...dialects.aten.types import type_of
from ...dialects.raw import ops_of
from ...dialects.sym import Expr, SymAttr
from ..analysis.lifetimes import Lifetimes
from ..analysis.live_bytes import LiveBytes
from ..analysis.sizes import Sizes
from ..analysis.tensor_bytes import bytes_of
from ..counters import counter
from ..remarks import remark


def take_over(function: host.FuncOp, reusable: Callable[[SSAValue], bool], small: int = 0) -> None:
    """Let allocations of a function take over dead memory of equal size, the one that died last.

    small: bytes up to which memory that the launch in front used last is left alone. The launch behind would have to
    wait for it, and could not become a part of it; a pool saves these bytes as well.
    """
    block = function.body.block
    lifetimes = Lifetimes(block)
    last = {value: lifetimes.last[value] for value in lifetimes.values if reusable(value)}
    ending: dict[int, list[SSAValue]] = {}
    for value, position in last.items():
        if position < lifetimes.end:
            ending.setdefault(position, []).append(value)
    live = LiveBytes(lifetimes, Sizes.of_function(function))
    dead: dict[tuple[Expr, str], list[tuple[SSAValue, int]]] = {}
    launched = lifetimes.end
    for op in ops_of(block):
        position = lifetimes.position[op]
        if isinstance(op, host.LaunchOp):
            launched = position
        if isinstance(op, host.EmptyOp) and op.out in last:
            is_small = (bytes_of(type_of(op.out)).as_int() or small + 1) <= small
            used = launched if is_small else lifetimes.end
            old = _pick(dead, op.out, position, lifetimes.escapes(op.out), live, used)
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
    used: int,
) -> SSAValue | None:
    """The dead memory that a new value takes over, if it died not at `used`; what is returned must not be a view."""
    kind = type_of(new)
    candidates = dead.get((bytes_of(kind), kind.device), [])
    for number in range(len(candidates) - 1, -1, -1):
        old, died = candidates[number]
        if died != used and (old.type == kind or not escapes):
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
