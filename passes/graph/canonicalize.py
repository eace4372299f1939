"""`graph-canonicalize`: one spelling for each meaning, and no op that does nothing.

The laws of a rule here: it keeps every bit of the value (NaN, infinities, -0.0), the dtype, the sizes and the strides;
it never makes the memory of an output that of an input or of another output; it never makes the graph longer.
"""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp
from ...records import dataclass
from ..analysis.memory import possibly_written
from ..counters import counter
from ..function_pass import AtenPass
from ._rules import RULES, Rewriter, Rule
from ._uniform import UNIFORM_RULES


@dataclass(frozen=True)
class Canonicalize(AtenPass):
    """Apply the rules of `passes/graph/_rules.py` and `_uniform.py` to each op, first to last, until none matches.

    level:         aten
    precondition:  none
    guarantee:     no view or copy that changes nothing, unless it keeps an output apart; permutations of
                   permutations, views of views and casts of exact casts are one op; constants are `aten.full`.

        %0 = aten.t(%x) : !aten.tensor<4x8xf32, strides = [1, 4]>
        %1 = aten.t(%0) : !aten.tensor<8x4xf32>
        %2 = aten.exp(%1) : !aten.tensor<8x4xf32>
    becomes
        %2 = aten.exp(%x) : !aten.tensor<8x4xf32>
    """

    name = "graph-canonicalize"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        canonicalize(block)


_ALL: dict[str, tuple[Rule, ...]] = {
    packet: (*RULES.get(packet, ()), *UNIFORM_RULES.get(packet, ())) for packet in (*RULES, *UNIFORM_RULES)
}


def canonicalize(block: Block) -> None:
    """Apply the rules to each op of a block."""
    rewriter = Rewriter(possibly_written(block))
    op = block.first_op
    while op is not None:
        following = op.next_op
        _rewrite(op, rewriter)
        op = following


def _rewrite(op: Operation, rewriter: Rewriter) -> None:
    """Apply rules to `op` and to what replaces it, until none matches."""
    current: Operation | None = op
    while isinstance(current, AtenOp) and current.results:
        replacement = _first_match(current, rewriter)
        if replacement is None:
            return
        current.results[0].replace_all_uses_with(replacement)
        block = current.parent
        assert block is not None
        block.erase_op(current)
        current = rewriter.inserted


def _first_match(op: AtenOp, rewriter: Rewriter) -> SSAValue | None:
    for rule in _ALL.get(op.packet, ()):
        rewriter.inserted = None
        replacement = rule(op, rewriter)
        if replacement is not None:
            if counter("graph-canonicalize"):
                return replacement
            if rewriter.inserted is not None and rewriter.inserted.parent is not None:
                rewriter.inserted.parent.erase_op(rewriter.inserted)
    return None
