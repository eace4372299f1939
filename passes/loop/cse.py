"""`loop-cse`: equal nests, and equal scalars inside a body, are computed once."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.effects import is_pure
from ...dialects.loop import FusionOp, ScatterOp
from ..analysis.memory import NESTS, Mutations, escaping, has_assert
from ..common.numbering import AttributeTokens, Key, NestNumbering
from ..counters import counter
from ..function_pass import LoopPass
from ._accesses import loads_in


class EliminateCommonSubexpressions(LoopPass):
    """Merge values that are computed twice, by value-numbered keys of whole bodies.

    level:         loop
    precondition:  none
    guarantee:     no two scalars that see each other are equal by key; nor are two values of a function, unless
                   both escape through the return (merging would make two outputs alias), or `aten.copy_` writes what
                   they read between them. Random ATen calls stay apart, as do two `loop.empty`.

        %v = loop.load %x[i0]  %w = loop.load %x[i0]  %s = arith.addf %v, %w : f32
    becomes
        %v = loop.load %x[i0]  %s = arith.addf %v, %v : f32
    """

    name = "loop-cse"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        _Merger(block).run()


class _Merger:
    """State of one sweep over a function."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.tokens = AttributeTokens()
        self.escaping = escaping(block)
        self.mutations = Mutations(block)
        self.known: dict[Key, list[Operation]] = {}

    def run(self) -> None:
        op = self.block.first_op
        while op is not None:
            following = op.next_op
            key = self.key(op)
            if key is not None and not self.merged(op, key):
                self.known.setdefault(key, []).append(op)
            op = following

    def key(self, op: Operation) -> Key | None:
        """The key under which an op may merge, None for one that may not. Numbers its body either way."""
        is_nest = type(op) in NESTS
        if not is_nest and type(op) is not FusionOp and (op.regions or not op.results or not is_pure(op)):
            return None
        merge = "" if type(op) is FusionOp else "loop-cse"
        key = NestNumbering(self.tokens, merge).key(op, [])
        if type(op) is FusionOp:
            for member in op.members:
                NestNumbering(self.tokens, "loop-cse").key(member, [])
            return None
        if type(op) is ScatterOp and op.in_place is not None:
            return None
        if self.mutations:
            key = (*key, *self.mutations.epochs(self.reads(op), op))
        return key

    def reads(self, op: Operation) -> list[SSAValue]:
        return [*op.operands, *(load.operands[0] for load in loads_in(op))]

    def merged(self, op: Operation, key: Key) -> bool:
        """Replace `op` by an equal op before it, if one may stand for it."""
        for equal in self.known.get(key, ()):
            pairs = tuple(zip(op.results, equal.results, strict=True))
            if any(old in self.escaping and new in self.escaping for old, new in pairs):
                continue
            if self.mutations and has_assert(op) and self.mutations.crosses_any(equal, op):
                continue
            if not counter("loop-cse"):
                return False
            for old, new in pairs:
                if old in self.escaping:
                    self.escaping.add(new)
                old.replace_all_uses_with(new)
            self.block.erase_op(op)
            return True
        return False
