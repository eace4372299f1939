"""`graph-cse`: what is computed twice is computed once."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...dialects.effects import is_pure
from ...dialects.raw import operands_of
from ...records import dataclass
from ..analysis.memory import Mutations, escaping, possibly_written
from ..common.numbering import AttributeTokens, Key
from ..counters import counter
from ..function_pass import AtenPass


@dataclass(frozen=True)
class EliminateCommonSubexpressions(AtenPass):
    """Merge ops that are equal by class, operands, properties and result types.

    level:         aten
    precondition:  none
    guarantee:     no two pure ops are equal, unless merging would make two outputs of the function share memory, or
                   two arguments of a call that may write them, or `aten.copy_` writes between them what they read.
                   Random ops stay apart.

        %0 = aten.exp(%x) : T
        %1 = aten.exp(%x) : T
        %2 = aten.add.Tensor(%0, %1) : T
    becomes
        %0 = aten.exp(%x) : T
        %2 = aten.add.Tensor(%0, %0) : T
    """

    name = "graph-cse"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        _merge(block)


def _merge(block: Block) -> None:
    tokens = AttributeTokens()
    mutations = Mutations(block)
    escaped = escaping(block) | possibly_written(block)
    known: dict[Key, list[Operation]] = {}
    op = block.first_op
    while op is not None:
        following = op.next_op
        if op.results and not op.attributes and not op.regions and is_pure(op):
            key = _key(op, tokens, mutations)
            equals = known.setdefault(key, [])
            for equal in equals:
                # two values whose memory the caller gets must stay two
                if any(old in escaped and new in escaped for old, new in zip(op.results, equal.results, strict=True)):
                    continue
                if counter("graph-cse"):
                    for old, new in zip(op.results, equal.results, strict=True):
                        if old in escaped:
                            escaped.add(new)
                        old.replace_all_uses_with(new)
                    block.erase_op(op)
                break
            else:
                equals.append(op)
        op = following


def _key(op: Operation, tokens: AttributeTokens, mutations: Mutations) -> Key:
    """Equal for ops that compute the same; operands that are written later count with how often before."""
    operands, properties = operands_of(op), op.properties
    names = sorted(properties) if len(properties) > 1 else properties
    key = (
        type(op),
        *operands,
        *[(name, tokens.of(properties[name])) for name in names],
        *tokens.of_types(op.results),
    )
    return (*key, *mutations.epochs(operands, op)) if mutations else key
