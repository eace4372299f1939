"""`graph-match-patterns`: several ops that together are another op become that op."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects.aten import AtenOp
from ...dialects.effects import is_pure
from .. import remarks
from ..common.functions import functions
from ..common.memory import Mutations
from ..counters import counter
from ..kernel.locations import merged
from ._matcher import Match, Matcher
from ._pattern import Pattern
from ._replacement import ReplacementBuilder
from .canonicalize import canonicalize
from .patterns import chosen_patterns


@dataclass(frozen=True)
class MatchPatterns(ModulePass):
    """Replace ops that match a pattern of `passes/graph/patterns`.

    level:         aten
    precondition:  none; canonical graphs match best
    guarantee:     only patterns that `patterns` names are applied: "exact" stands for those that keep every bit of
                   the value, "all" for all, "none" for none; other names are those of single patterns. The ops of a
                   match go away unless something else reads them.

    A remark is made for each replacement, for each match that a guard refuses, and for what nearly matches.

        %0 = aten.mm(%x, %w) : T
        %1 = aten.add.Tensor(%0, %b) : T
    with patterns = "addmm" becomes
        %1 = aten.addmm(%b, %x, %w) : T
    """

    name = "graph-match-patterns"
    level: ClassVar[str] = "aten"

    patterns: str = "exact"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every function of the module. UserError for a name that no pattern has."""
        by_packet: dict[str, list[Pattern]] = {}
        for pattern in chosen_patterns(self.patterns):
            for packet in pattern.root_packets:
                by_packet.setdefault(packet, []).append(pattern)
        for _, block in functions(op):
            if by_packet and _Rewriter(block, by_packet).sweep():
                canonicalize(block)


class _Rewriter:
    """Applies patterns to one block, last op first, so that the largest match is found before its parts are."""

    def __init__(self, block: Block, by_packet: dict[str, list[Pattern]]) -> None:
        self.block = block
        self.by_packet = by_packet
        self.mutations = Mutations(block)

    def sweep(self) -> bool:
        """Visit each op once; whether anything was replaced."""
        changed = False
        roots = [op for op in self.block.ops if isinstance(op, AtenOp) and op.results and op.packet in self.by_packet]
        for op in reversed(roots):
            # a match may have taken it away
            if op.parent is not None:
                changed |= any(self._apply(pattern, op) for pattern in self.by_packet[op.packet])
        return changed

    def _apply(self, pattern: Pattern, op: AtenOp) -> bool:
        root = op.results[0]
        matcher = Matcher(pattern)
        match = matcher.at(root)
        if match is None:
            if remarks.enabled() and matcher.near.calls >= max(2, (pattern.root.size + 1) // 2):
                reason = f"nearly matches '{pattern.name}': {matcher.near.reason}"
                remarks.remark("missed", MatchPatterns.name, op, reason)
            return False
        reason = self._refusal(pattern, match, root)
        if reason == "":
            return False
        if reason is not None:
            remarks.remark("missed", MatchPatterns.name, op, f"matches '{pattern.name}', but {reason}")
            return False
        if not counter(f"pattern-{pattern.name}"):
            return False
        self._replace(pattern, match, op)
        return True

    def _refusal(self, pattern: Pattern, match: Match, root: SSAValue) -> str | None:
        """Why a match stays as it is, None when it does not."""
        matched = set(match.ops)
        if not all(map(is_pure, matched)):
            return "an op of it has an effect"
        if not pattern.may_repeat and (reader := _outside_reader(match.ops, matched)) is not None:
            return f"{reader.name} reads a value inside it"
        if len({_tags(op) for op in matched}) > 1:
            return "only a part of it is in a checkpointed region"
        last = match.ops[0]
        if any(self.mutations.moves_past_write(op.operands, op, last) for op in matched):
            return "one of its operands is overwritten meanwhile"
        return pattern.guard(**match.bindings, root=root) if pattern.guard is not None else None

    def _replace(self, pattern: Pattern, match: Match, op: AtenOp) -> None:
        location = merged(each.location for each in reversed(match.ops))
        builder = ReplacementBuilder(op, location, dict(_tags(op)))
        value = pattern.replace(builder, **match.bindings, root=op.results[0])
        assert value.type == op.results[0].type, f"'{pattern.name}' gives {value.type}, not {op.results[0].type}"
        value.name_hint = op.results[0].name_hint
        remarks.remark("passed", MatchPatterns.name, op, f"'{pattern.name}' replaces {len(set(match.ops))} ops")
        op.results[0].replace_all_uses_with(value)
        self._remove(match.ops)

    def _remove(self, ops: list[Operation]) -> None:
        """Erase the ops of a match that nothing reads any more, readers first."""
        pending = dict.fromkeys(ops)
        while dead := [op for op in pending if all(result.first_use is None for result in op.results)]:
            for op in dead:
                del pending[op]
                self.block.erase_op(op)


def _outside_reader(ops: list[Operation], matched: Collection[Operation]) -> Operation | None:
    """An op outside that reads a value inside; the first op is the root, which is meant to be read."""
    for op in dict.fromkeys(ops[1:]):
        for result in op.results:
            for use in result.uses:
                if use.operation not in matched:
                    return use.operation
    return None


def _tags(op: Operation) -> tuple[tuple[str, Attribute], ...]:
    """What a joint graph says of an op, for comparison."""
    return tuple(sorted(op.attributes.items()))
