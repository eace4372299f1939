"""Finds where a pattern matches, and what stood in the way where it nearly does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

from xdsl.ir import Operation, OpResult, SSAValue

from ...dialects.aten import Argument, AtenOp
from ...records import dataclass
from ._gradients import possible_gradients, product_gradient
from ._matmul import product
from ._pattern import COMMUTATIVE, LEFT_GRADIENT, MATMUL, RIGHT_GRADIENT, Either, Pattern, PatternCall, Variable


@dataclass
class Match:
    """Where a pattern matches: values of its variables, and the ops, the root first.

    late:      the ops of other calls than the first, for a pattern of several
    arranging: those of the ops that are views or copies around matrix products
    choices:   which option each alternative took
    """

    bindings: dict[str, Any] = field(default_factory=dict)
    ops: list[Operation] = field(default_factory=list)
    values: dict[PatternCall, SSAValue] = field(default_factory=dict)
    late: list[Operation] = field(default_factory=list)
    arranging: list[Operation] = field(default_factory=list)
    choices: dict[Either, int] = field(default_factory=dict)

    def copy(self) -> Match:
        """A match to try an alternative with."""
        return Match(
            self.bindings.copy(), self.ops.copy(), self.values.copy(),
            self.late.copy(), self.arranging.copy(), self.choices.copy(),
        )  # fmt: skip


@dataclass
class NearMiss:
    """The alternative that got furthest: how many calls, how many of those needed, and why not further."""

    calls: int = 0
    needed: int = 0
    reason: str = ""


class Matcher:
    """Matches one pattern against one value."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        self.near = NearMiss()

    def at(self, root: SSAValue) -> Match | None:
        """The match whose last call computes `root`."""
        match = self._node(self.pattern.root, root, Match())
        if match is not None:
            self.near = NearMiss()
            for call in self.pattern.others:
                match = self._other(call, match)
            for name in self.pattern.parameters:
                match.bindings.setdefault(name, None)
        return match

    @property
    def no_gradient(self) -> str:
        """What stood in the way of other calls than the first, to be told behind another reason."""
        return f"; its gradient does not match: {self.near.reason}" if self.near.reason else ""

    def _other(self, call: PatternCall, match: Match) -> Match:
        """The match extended by one more call, where something computes it."""
        count = len(match.ops)
        for value in self._candidates(call, match):
            found = self._node(call, value, match.copy())
            if found is not None:
                found.late += found.ops[count:]
                del found.ops[count:]
                return found
        return match

    def _candidates(self, call: PatternCall, match: Match) -> Iterable[SSAValue]:
        """Values that a call may stand for, besides what is matched."""
        if call.packet in (LEFT_GRADIENT, RIGHT_GRADIENT):
            of = match.values.get(call.args[1])
            return possible_gradients(of, call.packet == LEFT_GRADIENT) if of is not None else ()
        block = match.ops[0].parent
        assert block is not None
        return [op.results[0] for op in block.ops if isinstance(op, AtenOp) and op.packet == call.packet and op.results]

    def _node(self, node: Any, value: Any, match: Match) -> Match | None:
        """The match extended by a node that stands for a value."""
        if node is ...:
            return match
        if isinstance(node, Variable):
            bound = match.bindings.setdefault(node.name, value)
            return match if _same(bound, value) else self._miss(match, f"two values stand for '{node.name}'")
        if isinstance(node, Either):
            return self._either(node, value, match)
        if isinstance(node, PatternCall):
            return self._call(node, value, match)
        if isinstance(node, tuple | list):
            return self._list(node, value, match)
        return match if _same(node, value) else self._miss(match, f"an argument is {value!r}, not {node!r}")

    def _either(self, node: Either, value: Any, match: Match) -> Match | None:
        numbers = range(len(node.options))
        if node.like is not None:
            number = match.choices.get(node.like)
            numbers = numbers if number is None else (number,)
        for number in numbers:
            found = self._node(node.options[number], value, match.copy())
            if found is not None:
                found.choices[node] = number
                return found
        return None

    def _list(self, nodes: Any, values: Any, match: Match | None) -> Match | None:
        if not isinstance(values, tuple) or len(values) != len(nodes):
            return None
        for node, value in zip(nodes, values, strict=True):
            if match is not None:
                match = self._node(node, value, match)
        return match

    def _call(self, node: PatternCall, value: Any, match: Match) -> Match | None:
        if node in match.values:
            return match if match.values[node] is value else None
        if not isinstance(value, OpResult) or value.index != 0:
            return self._miss(match, f"no {node.packet} computes an operand")
        if node.packet == MATMUL:
            found = product(value)
            if found is None:
                return self._miss(match, f"{value.owner.name} is not a matrix product")
            match.ops += found.ops
            match.arranging += found.arranging
            match.values[node] = value
            return self._list(list(node.args), (found.left, found.right), match)
        if node.packet in (LEFT_GRADIENT, RIGHT_GRADIENT):
            gradient, of = node.args
            step = product_gradient(value, match.values[of], node.packet == LEFT_GRADIENT)
            if step is None:
                return self._miss(match, f"{value.owner.name} is not the gradient of a matrix product")
            match.ops += step.ops
            match.arranging += step.arranging
            match.values[node] = value
            return self._node(gradient, step.gradient, match)
        op = value.owner
        if not isinstance(op, AtenOp) or op.packet != node.packet:
            return self._miss(match, f"{op.name} stands where aten.{node.packet} should")
        match.ops.append(op)
        match.values[node] = value
        return self._arguments(node, op, match)

    def _arguments(self, node: PatternCall, op: AtenOp, match: Match) -> Match | None:
        names = [argument.name for argument in op.schema.arguments]
        if len(node.args) > len(names):
            return self._miss(match, f"{op.name} takes fewer arguments")
        wanted = dict(zip(names, node.args, strict=False)) | dict(node.kwargs)
        if any(name not in names for name in wanted):
            return None
        pairs = [(wanted[name], op.arg(name)) for name in names if name in wanted]
        found = self._pairs(pairs, match.copy())
        if found is None and op.packet in COMMUTATIVE and len(pairs) == 2:
            (first, left), (second, right) = pairs
            found = self._pairs([(first, right), (second, left)], match.copy())
        # last, so that what stands in the way of a match is told as late as can be
        for argument in op.schema.arguments if found is not None else ():
            if argument.name not in wanted and not _has_default(op, argument):
                return self._miss(found, f"{op.name} has {argument.name} = {op.arg(argument.name)!r}")
        return found

    def _pairs(self, pairs: list[tuple[Any, Any]], match: Match | None) -> Match | None:
        for node, value in pairs:
            if match is not None:
                match = self._node(node, value, match)
        return match

    def _miss(self, match: Match | None, reason: str) -> None:
        if match is not None and len(match.values) > self.near.calls:
            needed = sum(call in self.pattern.root.needed for call in match.values)
            self.near = NearMiss(len(match.values), needed, reason)


def _has_default(op: AtenOp, argument: Argument) -> bool:
    if argument.is_tensor:
        return argument.may_be_left_out and op.arg(argument.name) is None
    return argument.name not in op.properties


def _same(left: Any, right: Any) -> bool:
    """Whether two arguments are the same value; 1, 1.0 and True are three."""
    if isinstance(left, SSAValue) or isinstance(right, SSAValue):
        return left is right
    return type(left) is type(right) and left == right
