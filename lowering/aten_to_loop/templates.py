"""What an ATen op becomes, recorded so that an equal one is lowered by making the same ops again.

A model repeats its layers: of a thousand ATen ops some fifty are different. What a rule makes depends on the types and
arguments of its op and on which of its tensors are the same, so it is recorded under these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias

from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects.aten.ops import AtenOp
from ...dialects.fast_create import create
from ...dialects.raw import operands_of, ops_of, set_hint
from ...passes.common.numbering import AttributeTokens
from ...records import dataclass

Key: TypeAlias = "tuple[Any, ...]"


class _Step(NamedTuple):
    """An op to make. Operands are numbers of values: the ATen op's operands come first, then each value as it is made;
    inside of regions the arguments and results of ops, in order."""

    cls: type[Operation]
    operands: tuple[int, ...]
    types: tuple[Attribute, ...]
    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]
    regions: tuple[_Body, ...]
    hints: tuple[str | None, ...] | None


class _Body(NamedTuple):
    """A region of one block to make."""

    arguments: tuple[Attribute, ...]
    steps: tuple[_Step, ...]


def template_key(op: AtenOp, values: dict[SSAValue, SSAValue], tokens: AttributeTokens) -> tuple[Key, list[SSAValue]]:
    """(key, tensors): ops with equal keys become the same, from these tensors."""
    tensors = [values.get(v, v) for v in operands_of(op)]
    first: dict[int, int] = {}
    same = [first.setdefault(id(v), position) for position, v in enumerate(tensors)]
    given = [tokens.of(v.type) for v in operands_of(op)]
    types = [tokens.of(v.type) for v in tensors]
    made = [tokens.of(result.type) for result in op.results]
    if len(made) > 1:  # what nobody reads need not be computed
        made += [result.first_use is None for result in op.results]
    return (type(op), tokens.of_all(op.properties), tokens.of_all(op.attributes), *same, *given, *types, *made), tensors


@dataclass(frozen=True)
class Template:
    """Steps that make what an ATen op becomes; `results` are the numbers of the values that replace its results."""

    steps: tuple[_Step, ...]
    results: tuple[int, ...]

    @staticmethod
    def record(tensors: Sequence[SSAValue], made: Sequence[Operation], results: Sequence[SSAValue]) -> Template | None:
        """Record ops made from tensors; None where they use something else, or end in it."""
        numbers: dict[SSAValue, int] = {}
        for position, tensor in enumerate(tensors):
            numbers.setdefault(tensor, position)
        recorder = _Recorder(numbers, len(tensors))
        try:
            return Template(recorder.steps(made), tuple(numbers[value] for value in results))
        except KeyError:
            return None

    def append(self, block: Block, tensors: Sequence[SSAValue], location: LocationAttr) -> list[SSAValue]:
        """Make the ops at the end of a block from other tensors; gives what replaces the results."""
        values = list(tensors)
        _make(self.steps, block, values, location)
        return [values[number] for number in self.results]


class _Recorder:
    def __init__(self, numbers: dict[SSAValue, int], count: int) -> None:
        self.numbers = numbers
        self.count = count

    def steps(self, ops: Sequence[Operation]) -> tuple[_Step, ...]:
        return tuple(self._step(op) for op in ops)

    def _step(self, op: Operation) -> _Step:
        operands = tuple(self.numbers[value] for value in operands_of(op))
        regions = tuple(self._body(region) for region in op.regions)
        self._number(op.results)
        hints = tuple(result.name_hint for result in op.results)
        types = tuple(result.type for result in op.results)
        properties, attributes = dict(op.properties), dict(op.attributes)
        return _Step(type(op), operands, types, properties, attributes, regions, hints if any(hints) else None)

    def _body(self, region: Region) -> _Body:
        block = region.block
        self._number(block.args)
        return _Body(tuple(a.type for a in block.args), self.steps(ops_of(block)))

    def _number(self, values: Sequence[SSAValue]) -> None:
        for value in values:
            self.numbers[value] = self.count
            self.count += 1


def _make(steps: tuple[_Step, ...], block: Block, values: list[SSAValue], location: LocationAttr) -> None:
    for cls, operands, types, properties, attributes, bodies, hints in steps:
        regions = tuple([_make_region(body, values, location) for body in bodies]) if bodies else ()
        op = create(cls, tuple([values[number] for number in operands]), types, properties, regions, location)
        if attributes:
            op.attributes.update(attributes)
        if hints is not None:
            for result, hint in zip(op.results, hints, strict=True):
                set_hint(result, hint)
        values += op.results
        block.add_op(op)


def _make_region(body: _Body, values: list[SSAValue], location: LocationAttr) -> Region:
    block = Block(arg_types=body.arguments)
    values += block.args
    _make(body.steps, block, values, location)
    return Region(block)
