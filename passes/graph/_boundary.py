"""Where repeated layers may be cut into functions, so that calls of these functions make the same kernels.

Outlining moves each layer into a function, and no kernel reaches from one function into another. So a place is a legal
cut only if no kernel would contain ops of both sides, and no op of one side would be computed again on the other. An
*anchor* is an op that is always a call of a library. A kernel that an anchor depends on ends in front of the anchor.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects.aten import AtenOp, TensorType
from ...dialects.machine import target_at
from ...dialects.raw import operands_of
from ...machines import Library
from ..analysis.kept import is_kept_value
from ..analysis.recomputing import reads_less_again
from ..analysis.sizes import Sizes
from ._repeats import Repeat
from ._segments import Positions, Segment, base_of, is_anchor, is_constant, is_pointwise, is_recomputed, readers

_WITH_BIAS = frozenset(("addmm", "baddbmm", "linear"))
"""Anchors that may leave the bias to the kernel that reads them, if that is in the same function."""

_NOT_IN_MEMORY = "a value that crosses from one to the next need not be in memory"

_DEAR = frozenset(("exp", "log", "sin", "cos", "tan", "tanh", "sigmoid", "erf", "gelu", "silu"))
"""Pointwise functions that nothing computes twice."""


class Boundary:
    """Looks for cuts of one repeat."""

    def __init__(self, positions: Positions, repeat: Repeat, estimates: Sizes) -> None:
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
        return self.estimates.bytes(kind)

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

    def objection(self, begin: int) -> str | None:
        """Why there must be no cut in front of the op at `begin`; None when there may."""
        period, positions = self.repeat.period, self.positions
        end = min(begin + period, len(positions.ops))
        crossing: dict[int, SSAValue] = {}
        for op in positions.ops[begin:end]:
            for base in map(base_of, operands_of(op)):
                if positions.of.get(id(base), -1) < begin and not is_constant(base):
                    crossing[id(base)] = base
        if not all(map(is_in_memory, crossing.values())):
            return _NOT_IN_MEMORY
        if self._joined(crossing, begin, end):
            return "a kernel could reach from one into the next"
        return None

    def loss(self, segment: Segment) -> str | None:
        """Whether a result of a segment, wherever it is read, need not be in memory."""
        values = (self.positions.ops[segment.start + k].results[n] for k, n in segment.escaping)
        return None if all(is_in_memory(base_of(value)) for value in values) else _NOT_IN_MEMORY

    def _joined(self, crossing: dict[int, SSAValue], begin: int, end: int) -> bool:
        """Whether a nest behind `begin` could be in one kernel with one in front of it, which makes or reads what it
        reads: no library call waits for the one and feeds the other.

        Nests that read it through others count, for these may be computed in them. A period is looked at on each side.
        """
        positions = self.positions
        sources = {key: 1 << k for k, key in enumerate(crossing)}
        front = range(max(begin - self.repeat.period, 0), begin)
        members: dict[int, int] = {}
        """for a source, bits of the nests in front that make or read it"""
        read: dict[int, int] = {}
        """for a value, bits of the sources that reach it without a library call"""
        near: dict[int, int] = {}
        """for a value, bits of the nests in front that reach it without a library call; `far`: through one"""
        far: dict[int, int] = {}
        for k in (*front, *range(begin, end)):
            op = positions.ops[k]
            reads = nears = fars = 0
            for operand in operands_of(op):
                key = id(operand)
                reads |= read.get(key, 0) | sources.get(key, 0)
                nears |= near.get(key, 0)
                fars |= far.get(key, 0)
            if is_anchor(op):
                reads, nears, fars = 0, 0, nears | fars
            elif not is_recomputed(op):
                made = 0
                for result in op.results:
                    made |= sources.get(id(result), 0)
                if k < begin and reads | made:
                    nears |= 1 << k
                    for bit in _bits(reads | made):
                        members[bit] = members.get(bit, 0) | 1 << k
                elif k >= begin and any(members.get(bit, 0) & ~fars for bit in _bits(reads)):
                    return True
            for result in op.results:
                read[id(result)], near[id(result)], far[id(result)] = reads, nears, fars
        return False


def _bits(number: int) -> Iterator[int]:
    while number:
        bit = number & -number
        yield bit
        number ^= bit


def _library(op: Operation, device: str) -> Library:
    return target_at(op, device).family.library


def is_in_memory(value: SSAValue) -> bool:
    """Whether a value lies in memory in any case: a library call makes or reads it, or it is dearer to compute again.

    `loop-inline` computes one again if that reads less. A reader that is no pointwise op goes over its input more than
    once.
    """
    owner = value.owner
    if isinstance(owner, Block) or is_kept_value(value):
        return True
    reading = list(readers(value))
    if is_anchor(owner):
        if isinstance(owner, AtenOp) and owner.packet not in _WITH_BIAS:
            return True
        loses_bias = isinstance(value.type, TensorType) and _library(owner, value.type.device).adds_bias_apart
        return not loses_bias or any(map(is_anchor, reading))
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
    return not reads_less_again(sites, len(sources))


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
    return kind.shape == made.shape and not is_constant(base_of(operand))
