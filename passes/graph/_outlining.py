"""Making a function of equal segments, and calls of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FunctionType, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten import TensorType
from ...dialects.raw import erase_unused, operands_of, users_of
from ...dialects.sym import SymbolAttr
from ..analysis.mentions import mentioned_symbols
from ..common.copies import copy_op
from ._segments import Place, Segment, base_of, is_constant, is_view


class OutliningError(Exception):
    """Why segments cannot become a function; nothing has changed then."""


class Outliner:
    """Makes functions for the repeats of one function."""

    def __init__(self, function: FuncOp, block: Block) -> None:
        self.function = function
        self.block = block
        self.made = 0

    def outline(self, ops: Sequence[Operation], segments: Sequence[Segment], period: int) -> list[Operation]:
        """Replace segments by calls; the ops that stand in their place. Raises OutliningError."""
        bodies = [ops[s.start : s.start + period] for s in segments]
        results = _results(bodies[0], segments[0])
        arguments = [list(_bases(segment.inputs)) for segment in segments]
        symbols = _symbols(self.function, bodies[0], arguments[0])
        _check_uses(bodies, segments, arguments, results)
        calls = [self._call(body, given, results) for body, given in zip(bodies, arguments, strict=True)]
        kept: list[Operation] = []
        for call, body, segment in zip(calls, bodies, segments, strict=True):
            kept += [call, *self._redirect(call, body, segment, results)]
        self._define(bodies[0], segments[0], arguments[0], results, symbols)
        for body in reversed(bodies[1:]):  # a layer may read constants that stand in the one before it
            for op in reversed(body):
                erase_unused(op)
        self.made += 1
        return kept

    @property
    def _name(self) -> str:
        return f"{self.function.sym_name.data}_repeat{self.made}"

    def _call(self, body: Sequence[Operation], given: Sequence[SSAValue], results: Sequence[Place]) -> CallOp:
        outputs = [body[k].results[n] for k, n in results]
        call = CallOp.create(
            operands=given,
            result_types=[value.type for value in outputs],
            properties={"callee": SymbolRefAttr(self._name)},
            location=body[0].location,
        )
        for result, value in zip(call.results, outputs, strict=True):
            result.name_hint = value.name_hint
        return call

    def _redirect(
        self, call: CallOp, body: Sequence[Operation], segment: Segment, results: Sequence[Place]
    ) -> Iterator[Operation]:
        """Put a call behind a segment and let what is outside use its results; the views that are made again."""
        inside = set(map(id, body))
        values: dict[SSAValue, SSAValue] = {
            body[k].results[n]: result for (k, n), result in zip(results, call.results, strict=True)
        }
        self.block.insert_op_after(call, body[-1])
        place: Operation = call
        for k in _views(body, segment):
            op = body[k]
            view = copy_op(op, values)
            self.block.insert_op_after(view, place)
            place = view
            yield view
        # what a view that escapes is a view of may be read by the next call, which makes the view itself
        for k, n in dict.fromkeys((*segment.escaping, *results)):
            old = body[k].results[n]
            old.replace_uses_with_if(values[old], lambda use: id(use.operation) not in inside)

    def _define(
        self,
        body: Sequence[Operation],
        segment: Segment,
        given: Sequence[SSAValue],
        results: Sequence[Place],
        symbols: list[SymbolAttr],
    ) -> None:
        """Move a segment into a new function."""
        block = Block(arg_types=[value.type for value in given])
        values: dict[SSAValue, SSAValue] = dict(zip(given, block.args, strict=True))
        for argument, value in zip(block.args, given, strict=True):
            argument.name_hint = value.name_hint
        for value in segment.inputs:
            _compute_again(value, values, block)
        for op in body:
            op.detach()
            block.add_op(op)
            if any(operand in values for operand in operands_of(op)):
                op.operands = [values.get(operand, operand) for operand in operands_of(op)]
        outputs = [body[k].results[n] for k, n in results]
        block.add_op(ReturnOp.create(operands=outputs))
        types = FunctionType.from_lists([a.type for a in block.args], [value.type for value in outputs])
        function = FuncOp(self._name, types, Region(block), visibility="private")
        function.location = body[0].location
        function.attributes["symbols"] = ArrayAttr(symbols)
        module = self.function.parent
        assert module is not None and module.last_op is not None
        module.insert_op_after(function, module.last_op)


def _check_uses(
    bodies: Sequence[Sequence[Operation]],
    segments: Sequence[Segment],
    arguments: Sequence[Sequence[SSAValue]],
    results: Sequence[Place],
) -> None:
    """Raise OutliningError where something that stays, or a call, reads a value that no call would give."""
    removed = {id(op) for body in bodies for op in body}
    passed = {id(value) for values in arguments for value in values}
    for body, segment in zip(bodies, segments, strict=True):
        given = {id(body[k].results[n]) for k, n in (*segment.escaping, *results)}
        for result in (result for op in body for result in op.results if id(result) not in given):
            if id(result) in passed or not removed.issuperset(map(id, users_of(result))):
                raise OutliningError(f"a value of {result.op.name} is read behind it and is no result of the layer")


def _bases(values: Sequence[SSAValue]) -> dict[SSAValue, None]:
    """What has to be passed for the values to be there, in order."""
    found: dict[SSAValue, None] = {}
    for value in values:
        base = base_of(value)
        if not is_constant(base):
            found[base] = None
    return found


def _compute_again(value: SSAValue, values: dict[SSAValue, SSAValue], block: Block) -> None:
    """Append copies of the views and constants that give `value` from what `values` has."""
    if value in values:
        return
    owner = cast(Operation, value.owner)
    for operand in operands_of(owner):
        _compute_again(operand, values, block)
    block.add_op(copy_op(owner, values))


def _views(body: Sequence[Operation], segment: Segment) -> list[int]:
    """Ops of a segment whose results are views that are needed outside, and the views in front of them, in order."""
    position = {id(op): k for k, op in enumerate(body)}
    found: set[int] = set()
    waiting = [k for k, _ in segment.escaping if is_view(body[k])]
    while waiting:
        k = waiting.pop()
        found.add(k)
        above = [position[id(o.owner)] for o in operands_of(body[k]) if id(o.owner) in position]
        waiting += [a for a in above if is_view(body[a]) and a not in found]
    return sorted(found)


def _results(body: Sequence[Operation], segment: Segment) -> list[Place]:
    """What the function returns: what is needed outside, of views what they are views of."""
    places = {place: None for place in segment.escaping if not is_view(body[place[0]])}
    made = {id(result): (k, n) for k, op in enumerate(body) for n, result in enumerate(op.results)}
    for k in _views(body, segment):
        for operand in operands_of(body[k]):
            place = made.get(id(operand))
            if place is not None and not is_view(body[place[0]]):
                places[place] = None
    return list(places)


def _symbols(function: FuncOp, body: Sequence[Operation], given: Sequence[SSAValue]) -> list[SymbolAttr]:
    """Declarations of the symbols that a segment mentions, each from a size of an argument.

    Raises OutliningError for one that is not a size of any.
    """
    types = [value.type for value in given]
    names = {n for op in body for n in mentioned_symbols(op)}
    names |= {n for t in types if isinstance(t, TensorType) for e in (*t.shape, *t.strides) for n in e.free_symbols}
    if not names:
        return []
    declared = cast("ArrayAttr[SymbolAttr]", function.attributes.get("symbols", ArrayAttr([])))
    found: list[SymbolAttr] = []
    for symbol in declared.data:
        if symbol.data.name not in names:
            continue
        where = next(
            ((k, d) for k, t in enumerate(types) if isinstance(t, TensorType) for d, e in enumerate(t.shape)
             if e is symbol.symbol),
            None,
        )  # fmt: skip
        if where is None:
            raise OutliningError(f"{symbol.data.name} is no size of what it reads")
        found.append(SymbolAttr(dataclasses.replace(symbol.data, arg=where[0], dim=where[1], stride=None)))
    return found
