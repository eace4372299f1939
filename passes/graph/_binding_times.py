"""What of a function is known before a call, binding-time analysis: the values that frozen arguments alone decide.

A value is *early* if frozen arguments, and nothing else, decide it; another op is *late*. Of the early values that late
ops read, those are kept that take no more memory than what they are made of, and whose making costs more than reading
them. Views of early values are made late, where they are read: they cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects.aten import AtenOp, TensorType
from ...dialects.effects import is_pure
from ...dialects.raw import operands_of, ops_of
from ...records import dataclass
from ..analysis.kept import PACKING, frozen_arguments
from ..analysis.memory import Mutations, escaping, may_return_alias, possibly_written
from ..analysis.mentions import mentioned_symbols
from ..analysis.sizes import Sizes
from ..analysis.slices import backward_slice
from ._recompute import RecomputeClass, recompute_class

_FUSES = (RecomputeClass.FREE, RecomputeClass.CHEAP)


@dataclass
class Limits:
    """What is worth keeping.

    growth: bytes kept for each byte of the arguments that they are made of
    small:  bytes that are kept whatever they are made of
    least:  bytes of traffic that keeping a value has to save where it is computed inside of what reads it
    """

    growth: float = 1.25
    small: int = 65536
    least: int = 4096


@dataclass
class BindingTimes:
    """The early values of one function, and which of them to keep.

    sources:  for each early value the frozen arguments that it depends on; none for a constant
    rejected: early ops whose results are not kept, with the reason where a user may care
    """

    function: FuncOp
    block: Block
    limits: Limits
    sources: dict[SSAValue, frozenset[BlockArgument]] = field(default_factory=dict)
    rejected: dict[Operation, str] = field(default_factory=dict)
    late: set[Operation] = field(default_factory=set)
    """Early ops that are, or are also, done in each call."""

    def kept(self) -> list[SSAValue]:
        """The values to keep, in the order in which they are made; `late` says then which ops stay."""
        early = self.early_ops()
        if not early:
            return []
        foreign = escaping(self.block) | possibly_written(self.block)
        self.rejected = {op: "" for op in early if any(result in foreign for result in op.results)}
        while True:
            border = self._border(early)
            objections = dict(self._objections(border))
            if not objections:
                return border
            self.rejected.update(objections)

    def early_ops(self) -> list[Operation]:
        """The ops whose results are early; `sources` has these results then, and the arguments."""
        mutations = Mutations(self.block)
        for argument in frozen_arguments(self.function):
            if argument.first_use is not None and not mutations.writes_to(argument):
                self.sources[argument] = frozenset((argument,))
        return [op for op in ops_of(self.block) if self._is_early(op)] if self.sources else []

    def _is_early(self, op: Operation) -> bool:
        """Whether frozen arguments alone decide the results of an op, which it may give at any time."""
        operands = operands_of(op)
        if not isinstance(op, AtenOp) or op.regions or not op.results or not all(v in self.sources for v in operands):
            return False
        if not is_pure(op) or mentioned_symbols(op) or not all(_is_static(result) for result in op.results):
            return False
        found = frozenset[BlockArgument]().union(*(self.sources[value] for value in operands))
        self.sources.update(dict.fromkeys(op.results, found))
        return True

    def _border(self, early: Sequence[Operation]) -> list[SSAValue]:
        """The values that would be kept: late ops read them, and they are no views, no constants, not rejected."""
        members = set(early)
        self.late = set()
        border: list[SSAValue] = []
        for op in reversed(early):
            read = [r for r in op.results if any(self._is_late(use.operation, members) for use in r.uses)]
            if not read:
                continue
            if op in self.rejected or may_return_alias(op) or not self.sources[op.results[0]]:
                self.late.add(op)
            else:
                border += reversed(read)
        return border[::-1]

    def _is_late(self, op: Operation, early: set[Operation]) -> bool:
        return op not in early or op in self.late

    def _objections(self, border: Sequence[SSAValue]) -> Iterator[tuple[Operation, str]]:
        """Ops of the border whose results should not be kept, and why; a reason is empty where nobody misses it."""
        found = False
        for value in border:
            op = cast(Operation, value.owner)
            if not self._saves(value):
                found = True
                yield op, ""
            elif (reason := self.growth(value)) is not None:
                found = True
                yield op, reason
        if not found:
            yield from self._objections_to_all(border)

    def growth(self, value: SSAValue) -> str | None:
        """Why an early value takes too much memory to be kept, or None."""
        made, read = self.counted(value), self.bytes_read(value)
        if made <= self.limits.growth * read or known_bytes(value) <= self.limits.small:
            return None
        return f"{size_text(made)} would be kept of {size_text(read)} of weights"

    def _objections_to_all(self, border: Sequence[SSAValue]) -> Iterator[tuple[Operation, str]]:
        """Of values that share arguments, the smallest that makes the whole too large."""
        for values in self._related(border):
            read = sum(map(known_bytes, {a for value in values for a in self.sources[value]}))
            made = sum(map(self.counted, values))
            excess = made - self.limits.growth * read
            large = sorted((v for v in values if known_bytes(v) > self.limits.small), key=self.counted)
            if excess > 0 and large:
                value = next((v for v in large if self.counted(v) >= excess), large[-1])
                yield cast(Operation, value.owner), f"{size_text(made)} would be kept of {size_text(read)} of weights"

    def _related(self, border: Sequence[SSAValue]) -> list[list[SSAValue]]:
        """The values in groups that depend on no common argument."""
        groups: list[tuple[set[BlockArgument], list[SSAValue]]] = []
        for value in border:
            arguments, values = set(self.sources[value]), [value]
            apart: list[tuple[set[BlockArgument], list[SSAValue]]] = []
            for group in groups:
                if arguments.isdisjoint(group[0]):
                    apart.append(group)
                else:
                    arguments, values = arguments | group[0], group[1] + values
            groups = [*apart, (arguments, values)]
        return [values for _, values in groups]

    def _saves(self, value: SSAValue) -> bool:
        """Whether a call is spared something: a value that an op of its own makes anyway, or traffic, or much work."""
        if not all(map(_is_fused, self._readers(value))):
            return True
        ops = list(backward_slice([value]))
        devices = {cast(TensorType, v.type).device for op in ops for v in (*operands_of(op), *op.results)}
        if len(devices) > 1 or not all(recompute_class(op) in _FUSES for op in ops):
            return True
        return self.bytes_read(value) - known_bytes(value) >= self.limits.least

    def _readers(self, value: SSAValue) -> Iterator[Operation]:
        """Late ops that read a value, through views."""
        for use in value.uses:
            user = use.operation
            if user in self.late or not all(result in self.sources for result in user.results):
                if may_return_alias(user):
                    for result in user.results:
                        yield from self._readers(result)
                else:
                    yield user

    def bytes_read(self, value: SSAValue) -> int:
        """Bytes of the arguments that a value is made of."""
        return sum(map(known_bytes, self.sources[value]))

    def counted(self, value: SSAValue) -> int:
        """Bytes of a value; of one that a pass lays out anew those of what it lays out, for that is its own choice."""
        op = value.owner
        if isinstance(op, Block) or PACKING not in op.attributes:
            return known_bytes(value)
        return sum(self.counted(v) for v in map(self._viewed, operands_of(op)) if self.sources[v])

    def _viewed(self, value: SSAValue) -> SSAValue:
        while isinstance(op := value.owner, Operation) and may_return_alias(op):
            value = operands_of(op)[0]
        return value


def _is_static(value: SSAValue) -> bool:
    type_ = value.type
    return isinstance(type_, TensorType) and all(n.as_int() is not None for n in (*type_.shape, *type_.strides))


def _is_fused(op: Operation) -> bool:
    return recompute_class(op) not in (RecomputeClass.HEAVY, RecomputeClass.NEVER)


def known_bytes(value: SSAValue) -> int:
    """Bytes of a tensor of known sizes."""
    return Sizes().bytes(cast(TensorType, value.type))


def size_text(count: int) -> str:
    """Bytes for people."""
    return f"{count / 2**20:.1f} MiB" if count >= 2**20 else f"{count / 2**10:.1f} KiB"


def move_before(values: Iterable[SSAValue], place: Operation) -> None:
    """Put the ops that make early values in front of an op that stands before some of them."""
    block = place.parent
    assert block is not None
    for op in backward_slice(values):
        if not op.is_before_in_block(place):
            op.detach()
            block.insert_op_before(op, place)
