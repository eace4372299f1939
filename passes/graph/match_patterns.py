"""`graph-match-patterns`: several ops that together are another op become that op."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.aten import AtenOp
from ...dialects.effects import is_pure
from ...dialects.raw import ops_of
from ...records import dataclass
from .. import remarks
from ..analysis.memory import Mutations
from ..common.locations import merged
from ..counters import counter
from ..function_pass import AtenPass
from ._matcher import Match, Matcher
from ._pattern import Pattern
from ._replacement import Origin, ReplacementBuilder
from .canonicalize import canonicalize
from .patterns import chosen_patterns


@dataclass(frozen=True)
class MatchPatterns(AtenPass):
    """Replace ops that match a pattern of `passes/graph/patterns`.

    level:         aten
    precondition:  none; canonical graphs match best
    guarantee:     only patterns that `patterns` names are applied: "exact" stands for those that keep every bit of
                   the value, "all" for all, "none" for none; other names are those of single patterns. The ops of a
                   match go away unless something else reads them, as copies of operands may be. In a joint graph a
                   pattern may match the gradient as well, so that what backward reads of its inside is no obstacle.

    A remark is made for each replacement, for each match that a guard refuses, and for what nearly matches.

        %0 = aten.mm(%x, %w) : T
        %1 = aten.add.Tensor(%0, %b) : T
    with patterns = "addmm" becomes
        %1 = aten.addmm(%b, %x, %w) : T
    """

    name = "graph-match-patterns"

    patterns: str = "exact"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module. UserError for a name that no pattern has."""
        if apply_patterns(block, chosen_patterns(self.patterns)):
            canonicalize(block)


def apply_patterns(block: Block, patterns: Iterable[Pattern]) -> bool:
    """Replace what matches in a block, and say so in remarks of the pass; whether anything was replaced."""
    by_packet: dict[str, list[Pattern]] = {}
    for pattern in patterns:
        for packet in pattern.root_packets:
            by_packet.setdefault(packet, []).append(pattern)
    return bool(by_packet) and _Rewriter(block, by_packet).sweep()


class _Rewriter:
    """Applies patterns to one block, last op first, so that the largest match is found before its parts are."""

    def __init__(self, block: Block, by_packet: dict[str, list[Pattern]]) -> None:
        self.block = block
        self.by_packet = by_packet
        self.mutations = Mutations(block)

    def sweep(self) -> bool:
        """Visit each op once; whether anything was replaced."""
        changed = False
        roots = [
            op for op in ops_of(self.block) if isinstance(op, AtenOp) and op.results and op.packet in self.by_packet
        ]
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
            if remarks.enabled() and matcher.near.needed >= max(2, (len(pattern.root.needed) + 1) // 2):
                reason = f"nearly matches '{pattern.name}': {matcher.near.reason}"
                remarks.remark("missed", MatchPatterns.name, op, reason)
            return False
        found = _Found(pattern, match, root)
        reason = self._refusal(found)
        if reason == "":
            return False
        if reason is not None:
            remarks.remark("missed", MatchPatterns.name, op, f"matches {found}, but {reason}{matcher.no_gradient}")
            return False
        if not counter(f"pattern-{pattern.name}"):
            return False
        self._replace(found, op)
        return True

    def _refusal(self, found: _Found) -> str | None:
        """Why a match stays as it is, None when it does not."""
        pattern, match = found.pattern, found.match
        if not all(is_pure(op) or (pattern.keeps_effects and op is match.ops[0]) for op in found.ops):
            return "an op of it has an effect"
        if not pattern.may_repeat and (reader := found.outside_reader()) is not None:
            return f"{reader.name} reads a value inside it"
        if any(len({_tags(op) for op in ops}) > 1 for ops in (match.ops, match.late)):
            return "only a part of it is in a checkpointed region"
        last = match.ops[0]
        if any(self.mutations.moves_past_write(op.operands, op, last) for op in set(match.ops)):
            return "one of its operands is overwritten meanwhile"
        if match.late and any(self.mutations.writes_to(value) for op in found.ops for value in op.operands):
            return "one of its operands is overwritten"
        return pattern.guard(**match.bindings, **found.results) if pattern.guard is not None else None

    def _replace(self, found: _Found, op: AtenOp) -> None:
        builder = ReplacementBuilder(op, *map(_origin, filter(None, (found.match.ops, found.match.late))))
        values = found.pattern.replace(builder, **found.match.bindings, **found.results)
        remarks.remark("passed", MatchPatterns.name, op, f"{found} replaces {len(found.ops)} ops")
        for old, new in zip(found.roots, values if isinstance(values, tuple) else (values,), strict=True):
            if old is not None:
                assert new.type == old.type, f"{found} gives {new.type}, not {old.type}"
                new.name_hint = old.name_hint
                old.replace_all_uses_with(new)
        self._remove(found.ops)

    def _remove(self, ops: Iterable[Operation]) -> None:
        """Erase the ops of a match that nothing reads any more, readers first."""
        pending = dict.fromkeys(ops)
        while dead := [op for op in pending if all(result.first_use is None for result in op.results)]:
            for op in dead:
                del pending[op]
                self.block.erase_op(op)


class _Found:
    """A match and the values that it gives to others."""

    def __init__(self, pattern: Pattern, match: Match, root: SSAValue) -> None:
        self.pattern = pattern
        self.match = match
        self.ops = dict.fromkeys((*match.ops, *match.late))
        self.roots = (root, *(match.values.get(call) for call in pattern.others))

    def __str__(self) -> str:
        return f"'{self.pattern.name}'" + (" with its gradient" if self.match.late else "")

    @property
    def results(self) -> dict[str, Any]:
        """The values as guards and replacements get them."""
        return {"root": self.roots[0]} | ({"others": self.roots[1:]} if self.pattern.others else {})

    def outside_reader(self) -> Operation | None:
        """An op outside that reads a value inside, one that is not meant to be read."""
        for op in self._inner_ops():
            for result in op.results:
                if result not in self.roots:
                    for use in result.uses:
                        if use.operation not in self.ops:
                            return use.operation
        return None

    def _inner_ops(self) -> Iterable[Operation]:
        """Ops that should go away: all but those that only arrange operands, which others may read."""
        arranging = set(self.match.arranging)
        while inner := {op for op in arranging if any(v.owner in self.ops.keys() - arranging for v in op.operands)}:
            arranging -= inner
        return self.ops.keys() - arranging


def _origin(ops: Sequence[Operation]) -> Origin:
    return Origin(merged(each.location for each in reversed(ops)), dict(_tags(ops[0])))


def _tags(op: Operation) -> tuple[tuple[str, Attribute], ...]:
    """What a joint graph says of an op, for comparison."""
    return tuple(sorted(op.attributes.items()))
