"""Where a period may begin: cuts at which a call leaves every kernel as it is without one.

A cut must separate what no kernel joins and nothing computes again on the other side. An *anchor* is an op that is
always a call of a library; no kernel reaches over one that depends on what the kernel makes.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects.aten import AtenOp, TensorType
from ...dialects.aten.types import ITEM_SIZES, torch_name
from ...dialects.raw import operands_of
from ..common.estimates import Estimates
from ._repeats import Repeat
from ._segments import Positions, base_of, is_anchor, is_pointwise, is_recomputed, readers

_WITH_BIAS = frozenset(("addmm", "baddbmm", "linear"))
"""Anchors that may leave the bias to the kernel that reads them, if that is in the same function."""

_DEAR = frozenset(("exp", "log", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "gelu", "silu"))
"""Pointwise functions that nothing computes twice."""


class Boundary:
    """Looks for cuts of one repeat."""

    def __init__(self, positions: Positions, repeat: Repeat, estimates: Estimates) -> None:
        self.positions = positions
        self.repeat = repeat
        self.estimates = estimates

    def cuts(self) -> list[int]:
        """Positions of the first period at which it may be cut, those where fewest bytes cross first."""
        repeat = self.repeat
        crossing = self._crossing()
        starts = [s for s in range(repeat.start, repeat.start + repeat.period) if self._is_beside_anchor(s)]
        starts.sort(key=lambda s: (crossing[s - repeat.start], s))
        return starts

    def _crossing(self) -> list[int]:
        """For each cut of the period, the bytes that cross it from one period to the next ones."""
        repeat, ops = self.repeat, self.positions.ops
        period = repeat.period
        middle = repeat.start + (repeat.count // 2 - 1) * period
        change = [0] * (2 * period + 1)
        always = 0
        for k in range(period):
            if is_recomputed(ops[middle + k]):
                continue
            for result in ops[middle + k].results:
                span = max(self.positions.last_use(result) - middle - k, 0)
                size = self._bytes(result)
                always += span // period * size
                change[k + 1] += size
                change[k + 1 + span % period] -= size
        for k in range(1, 2 * period + 1):
            change[k] += change[k - 1]
        return [always + change[k] + change[k + period] for k in range(period)]

    def _bytes(self, value: SSAValue) -> int:
        kind = value.type
        if not isinstance(kind, TensorType) or value.first_use is None:
            return 0
        return self.estimates.product(kind.shape) * ITEM_SIZES.get(torch_name(kind.element), 8)

    def _is_beside_anchor(self, start: int) -> bool:
        """Whether a library call ends right in front of a cut or begins right behind it. Views stay with readers.

        Nests on both sides that read the same could be one kernel otherwise.
        """
        ops = self.positions.ops
        if start and is_recomputed(ops[start - 1]):
            return False
        behind = start
        while behind < len(ops) and is_recomputed(ops[behind]):
            behind += 1
        return (start > 0 and is_anchor(ops[start - 1])) or (behind < len(ops) and is_anchor(ops[behind]))

    def objection(self, start: int) -> str | None:
        """Why the repeat must not be cut at `start`; None when it may."""
        ends = (start, start + self.repeat.period)
        crossing = {id(base): base for begin in ends for base in self._inputs(begin)}
        made = {key: base for key, base in crossing.items() if isinstance(base.owner, Operation)}
        for base in made.values():
            if not is_in_memory(base):
                return "a value that crosses from one to the next need not be in memory"
        return self._joined(list(made.values()), start)

    def _inputs(self, begin: int) -> Iterable[SSAValue]:
        """Bases of what a period reads from outside; constants are computed again, and left out."""
        for op in self.positions.ops[begin : begin + self.repeat.period]:
            for operand in operands_of(op):
                base = base_of(operand)
                if self.positions.of.get(id(base), -1) < begin and not _is_constant(base):
                    yield base

    def _joined(self, made: list[SSAValue], start: int) -> str | None:
        """Whether a kernel of a period could be one with that which makes an input of it: no library call that waits
        for the one and feeds the other stands in between."""
        if not made:
            return None
        period, positions = self.repeat.period, self.positions
        bits = {id(base): 1 << k for k, base in enumerate(made)}
        near: dict[int, int] = dict(bits)
        far: dict[int, int] = {}
        for k in range(min(positions.of[id(base)] for base in made), start + 2 * period):
            op = positions.ops[k]
            operands = operands_of(op)
            reached = through = 0
            for operand in operands:
                reached |= near.get(id(operand), 0)
                through |= far.get(id(operand), 0)
            begin = start if k < start + period else start + period
            if is_anchor(op):
                through |= reached
            elif k >= start and not is_recomputed(op):
                for base in map(base_of, operands):
                    outside = positions.of.get(id(base), begin) < begin
                    if outside and bits.get(id(base), 0) & ~through:
                        return "a kernel could reach from one into the next"
            for result in op.results:
                near[id(result)] = near.get(id(result), 0) | reached
                far[id(result)] = through
        return None


def _is_constant(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, Operation) and not operands_of(owner) and is_recomputed(owner)


def is_in_memory(value: SSAValue) -> bool:
    """Whether a value lies in memory in any case: a library call makes or reads it, or it is dearer to compute again.

    `loop-inline` computes one again that n sites read and that reads r elements for one if n*r < r + 1 + n. A reader
    that is no pointwise op goes over its input more than once.
    """
    owner = value.owner
    if isinstance(owner, Block):
        return True
    reading = list(readers(value))
    if is_anchor(owner):
        on_gpu = isinstance(value.type, TensorType) and value.type.device != "cpu"
        keeps_bias = isinstance(owner, AtenOp) and owner.packet not in _WITH_BIAS
        return keeps_bias or not on_gpu or any(map(is_anchor, reading))
    if not operands_of(owner):
        return not any(map(is_pointwise, reading))  # those have the constant in themselves
    if any(is_anchor(op) or op.has_trait(IsTerminator) for op in reading):
        return True
    sites = sum(1 if is_pointwise(op) else 2 for op in reading)
    if _is_dear(owner):
        return sites > 1
    # A source that is itself computed in a nest either keeps its readers out of others or has what it reads read there.
    sources = _read_along(value)
    computed = next((source for source in sources.values() if _is_computed(source)), None)
    if computed is not None:
        sources = {key: source for key, source in sources.items() if source is not computed} | _read_along(computed)
    return (sites - 1) * (len(sources) - 1) >= 2


def _is_computed(value: SSAValue) -> bool:
    """Whether a nest makes a value, and nests alone read it."""
    owner = value.owner
    if isinstance(owner, Block) or not is_pointwise(owner):
        return False
    return all(map(is_pointwise, readers(value)))


def _read_along(value: SSAValue) -> dict[int, SSAValue]:
    """Operands of what makes `value` of which another element is read for each of its elements."""
    owner = value.owner
    assert isinstance(owner, Operation)
    return {id(operand): base_of(operand) for operand in operands_of(owner) if _is_read_along(operand, value)}


def _is_dear(op: Operation) -> bool:
    """Whether an element costs too much to compute twice, with what no other op needs and is computed with it."""
    if not isinstance(op, AtenOp) or not is_pointwise(op):
        return False
    if op.packet in _DEAR:
        return True
    alone = [value.owner for value in operands_of(op) if value.has_one_use()]
    return any(isinstance(owner, Operation) and _is_dear(owner) for owner in alone)


def _is_read_along(operand: SSAValue, value: SSAValue) -> bool:
    """Whether each element of `value` is computed of another element of an operand."""
    kind, made = operand.type, value.type
    assert isinstance(kind, TensorType) and isinstance(made, TensorType)
    return kind.shape == made.shape and not _is_constant(base_of(operand))
