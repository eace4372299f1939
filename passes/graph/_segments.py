"""Segments of a block that compute the same, and what each needs from outside and gives to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects.aten import AtenOp
from ...dialects.effects import is_pure
from ...dialects.raw import maker_of, operands_of, users_of
from ...records import dataclass
from ..analysis.kept import is_kept_value
from ..analysis.memory import may_return_alias
from ..common.numbering import AttributeTokens

_PRODUCTS = frozenset(("mm", "addmm", "bmm", "baddbmm", "linear", "_addmm_activation"))
_ATTENTION = ("_scaled_dot_product", "_flash_attention", "_efficient_attention")

Place: TypeAlias = tuple[int, int]
"""(position of an op in its segment, number of its result)."""


def is_anchor(op: Operation) -> bool:
    """Whether an op is a call of a library, whatever is around it."""
    return isinstance(op, AtenOp) and (op.packet in _PRODUCTS or op.packet.startswith(_ATTENTION))


def is_view(op: Operation) -> bool:
    """Whether results of an op may lie in the memory of an operand."""
    return may_return_alias(op)


def is_recomputed(op: Operation) -> bool:
    """Whether a function should rather have an op again than get its value: views, and constants that never lie in
    memory because nests alone read them, element by element."""
    operands = operands_of(op)
    if op.regions or not is_pure(op):
        return False
    return (len(operands) == 1 and is_view(op)) or (not operands and all(map(is_pointwise, _readers_of(op))))


def is_pointwise(op: Operation) -> bool:
    """Whether an op computes each element of elements at the same place."""
    return isinstance(op, AtenOp) and (op.schema.is_pointwise or op.packet == "_to_copy")


def _readers_of(op: Operation) -> Iterable[Operation]:
    return (reader for result in op.results for reader in readers(result))


def readers(value: SSAValue) -> Iterable[Operation]:
    """Ops that read a value or a view of it."""
    for user in users_of(value):
        if is_view(user) and len(operands_of(user)) == 1 and is_pure(user):
            yield from _readers_of(user)
        else:
            yield user


def base_of(value: SSAValue) -> SSAValue:
    """What a value is computed from by views and constants; a constant is its own base."""
    maker = maker_of(value)
    while maker is not None and operands_of(maker) and is_recomputed(maker):
        value = operands_of(maker)[0]
        maker = maker_of(value)
    return value


def is_constant(value: SSAValue) -> bool:
    """Whether a value is made of nothing, and is computed again wherever it is needed."""
    maker = maker_of(value)
    return maker is not None and not operands_of(maker) and is_recomputed(maker)


class Positions:
    """Where the values of a block are made."""

    def __init__(self, ops: Sequence[Operation], tokens: Sequence[int]) -> None:
        self.ops = ops
        self.tokens = tokens
        self.of: dict[int, int] = {id(result): k for k, op in enumerate(ops) for result in op.results}
        self.op: dict[int, int] = {id(op): k for k, op in enumerate(ops)}
        self.types = AttributeTokens()

    def last_use(self, value: SSAValue) -> int:
        """Position of the last op that reads a value or a view of it, returns left out; -1 when there is none."""
        last = -1
        for user in users_of(value):
            position = self.op.get(id(user))
            if position is None:
                continue
            last = max(last, position)
            if is_recomputed(user):
                last = max(last, *(self.last_use(result) for result in user.results))
        return last


@dataclass
class Segment:
    """Ops of one period.

    inputs: the values from outside, in the order of their first use
    key:    equal for segments that compute the same of their inputs, whose results are needed outside in the same
            places, and beside which the same values are in memory
    origin: where the inputs come from, equal for segments that stand to the one in front of them as others do
    """

    start: int
    inputs: list[SSAValue]
    escaping: tuple[Place, ...]
    key: tuple[Any, ...]
    origin: tuple[Any, ...]


def segment_at(positions: Positions, start: int, period: int) -> Segment:
    """The segment of the ops from `start` on."""
    ops, end = positions.ops[start : start + period], start + period
    numbers: dict[int, int] = {}
    inputs: list[SSAValue] = []
    code: list[int] = []
    for op in ops:
        for operand in operands_of(op):
            made = positions.of.get(id(operand), -1)
            if start <= made < end:
                code += (made - start, operand.index)  # pyright: ignore[reportAttributeAccessIssue]
                continue
            number = numbers.get(id(operand))
            if number is None:
                number = numbers[id(operand)] = len(inputs)
                inputs.append(operand)
            code += (-1, number)
    escaping = tuple(
        (k, n) for k, op in enumerate(ops) for n, result in enumerate(op.results) if _leaves(positions, result, end)
    )
    signatures = tuple((*_signature(positions, value), is_kept(base_of(value))) for value in inputs)
    kept = tuple(is_kept(ops[k].results[n]) for k, n in escaping)
    origin = tuple(_origin(positions, value, start, period) for value in inputs)
    key = (tuple(positions.tokens[start:end]), tuple(code), escaping, kept, signatures)
    return Segment(start, inputs, escaping, key, origin)


def is_kept(value: SSAValue) -> bool:
    """Whether a value is in memory whatever becomes of the nests around it: `loop-inline` asks for that."""
    maker = maker_of(value)
    if maker is None or is_anchor(maker) or is_kept_value(value):
        return True
    return any(is_anchor(op) or op.has_trait(IsTerminator) for op in readers(value))


def _leaves(positions: Positions, value: SSAValue, end: int) -> bool:
    place_of = positions.op.get
    return any(place_of(id(user), end) >= end for user in users_of(value))


def _signature(positions: Positions, value: SSAValue) -> tuple[Any, ...]:
    """What a function needs to know of an input: its type, and how it is computed again from its base."""
    chain: list[object] = []
    maker = maker_of(value)
    while maker is not None and is_recomputed(maker):
        chain += (positions.tokens[positions.op[id(maker)]], value.index)  # pyright: ignore[reportAttributeAccessIssue]
        operands = operands_of(maker)
        if not operands:
            return (*chain, "constant")
        value = operands[0]
        maker = maker_of(value)
    return (*chain, positions.types.of(value.type))


def _origin(positions: Positions, value: SSAValue, start: int, period: int) -> object:
    """Where an input comes from: the segment in front, a fixed value, or an argument of the function."""
    base = base_of(value)
    made = positions.of.get(id(base))
    if made is None or is_kept_value(base):
        return "argument"
    if start - period <= made < start:
        return made - start, base.index  # pyright: ignore[reportAttributeAccessIssue]
    return id(base)


def longest_stretch(segments: Sequence[Segment]) -> Sequence[Segment]:
    """The longest run of segments that are equal; the first of them may get its inputs from elsewhere."""
    best: Sequence[Segment] = segments[:1]
    begin = 0
    for k in range(1, len(segments) + 1):
        joins = k < len(segments) and segments[k].key == segments[begin].key
        if joins and (k == begin + 1 or segments[k].origin == segments[begin + 1].origin):
            continue
        if k - begin > len(best):
            best = segments[begin:k]
        begin = k - 1 if joins else k
    return best
