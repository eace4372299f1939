"""Where the ops of a block repeat: stretches in which each op is like the one a period behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import eq

from xdsl.ir import Operation

from ...dialects.aten import AtenOp
from ...dialects.effects import is_pure
from ...dialects.raw import operands_of
from ...records import dataclass
from ..common.numbering import AttributeTokens

_CANDIDATES = 16
"""Periods that are looked at: those that separate most ops from the next one like it."""


@dataclass(frozen=True)
class Repeat:
    """Ops `start` to `end` (excluded) of which each is like the one `period` behind it, as long as that is inside."""

    start: int
    end: int
    period: int

    @property
    def count(self) -> int:
        """Whole periods that fit in."""
        return (self.end - self.start) // self.period


def tokens_of(ops: Sequence[Operation]) -> list[int]:
    """A number for each op, equal for ops that are alike but for what they read.

    An op that must not be moved into a function is like no other: it gets a number below 0.
    """
    numbers = AttributeTokens()
    known: dict[tuple[object, ...], int] = {}
    tokens: list[int] = []
    for position, op in enumerate(ops):
        if not _is_movable(op):
            tokens.append(-1 - position)
            continue
        attributes = numbers.of_all(op.attributes) if op.attributes else -1
        types = numbers.of_types(op.results)
        key = (type(op), numbers.of_all(op.properties), attributes, len(operands_of(op)), *types)
        tokens.append(known.setdefault(key, len(known)))
    return tokens


def _is_movable(op: Operation) -> bool:
    """Whether a function that is called in place of an op may hold it: it has no body, writes nothing, binds no
    symbol. It may draw random numbers: a call runs its ops in the order in which they stood."""
    if op.regions or not op.results:
        return False
    if isinstance(op, AtenOp) and op.schema.is_random:
        return not op.schema.is_mutable and not op.binds
    return is_pure(op)


def longest_repeat(tokens: Sequence[int], least_count: int) -> Repeat | None:
    """The repeat in which most ops are like earlier ones, of at least `least_count` whole periods.

    Linear in the number of ops: gaps between like ops vote for periods, and each of the best is tried once.
    """
    last: dict[int, int] = {}
    gaps: Counter[int] = Counter()
    for position, token in enumerate(tokens):
        before = last.get(token)
        if before is not None:
            gaps[position - before] += 1
        last[token] = position
    best: Repeat | None = None
    # Votes count for as many ops as the period is long: short patterns repeat often inside of long ones.
    for period, _ in sorted(gaps.items(), key=lambda gap: (-gap[0] * gap[1], gap[0]))[:_CANDIDATES]:
        found = _stretch(tokens, period)
        if found.count >= least_count and (best is None or _saved(found) > _saved(best)):
            best = found
    return best


def _saved(repeat: Repeat) -> int:
    return (repeat.count - 1) * repeat.period


def _stretch(tokens: Sequence[int], period: int) -> Repeat:
    """The longest stretch in which each op is like the one `period` behind it."""
    alike = bytes(map(eq, tokens, tokens[period:]))
    best = max(alike.split(b"\0"), key=len)
    start = alike.index(best)
    return Repeat(start, start + len(best) + period if best else start, period)
