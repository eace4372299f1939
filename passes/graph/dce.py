"""`graph-dce`: ops whose results nobody reads go away."""

from __future__ import annotations

from xdsl.dialects.builtin import ArrayAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...dialects.aten import AtenOp, CallOp
from ...dialects.effects import has_side_effect
from ...dialects.sym import SymbolAttr
from ..analysis.mentions import mentioned_symbols
from ..counters import counter
from ..function_pass import AtenPass


class EliminateDeadCode(AtenPass):
    """Remove ops without a use.

    level:         aten
    precondition:  none
    guarantee:     every op is used, writes, draws random numbers or checks something. An op that defines a symbol
                   stays while a type or an attribute mentions the symbol; the function declares no symbol of a removed
                   op.

        %0 = aten.exp(%x) : T   // not used
        %1 = aten.log(%x) : T
        func.return %1 : T
    becomes
        %1 = aten.log(%x) : T
        func.return %1 : T
    """

    name = "graph-dce"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        binders = _sweep(block)
        for binder in binders:
            _remove_binder(function, block, binder)


def _sweep(block: Block) -> list[Operation]:
    """Remove dead ops, last first, so that chains die in one go; returns unused ops that define symbols."""
    binders: list[Operation] = []
    op = block.last_op
    op = op.prev_op if op is not None else None
    while op is not None:
        previous = op.prev_op
        if all(result.first_use is None for result in op.results):
            if _is_binder(op):
                binders.append(op)
            elif not has_side_effect(op) and counter(EliminateDeadCode.name):
                block.erase_op(op)
        op = previous
    return binders


def _is_binder(op: Operation) -> bool:
    """Whether defining symbols is all that an op does besides its results."""
    if isinstance(op, AtenOp):
        return bool(op.binds) and op.schema.is_pure
    return isinstance(op, CallOp) and bool(op.binds) and op.pure is not None


def _remove_binder(function: FuncOp, block: Block, binder: Operation) -> None:
    """Remove an unused op that defines symbols, unless something mentions one of them."""
    assert isinstance(binder, AtenOp | CallOp)
    if any(result.first_use is not None for result in binder.results):
        return
    names = frozenset(binder.binds)
    mentioned = [symbol for op in block.ops if op is not binder for symbol in mentioned_symbols(op)]
    if not names.isdisjoint(mentioned):
        return
    operands = [value.owner for value in binder.operands]
    block.erase_op(binder)
    declared = function.attributes.get("symbols")
    if isinstance(declared, ArrayAttr):
        kept = [s for s in declared if not (isinstance(s, SymbolAttr) and s.data.name in names)]
        function.attributes["symbols"] = ArrayAttr(kept)
    for owner in operands:
        _remove_chain(block, owner)


def _remove_chain(block: Block, op: Operation | Block) -> None:
    """Remove what only a removed op used."""
    if isinstance(op, Block) or op.parent is not block or any(r.first_use is not None for r in op.results):
        return
    if not has_side_effect(op):
        operands = [value.owner for value in op.operands]
        block.erase_op(op)
        for owner in operands:
            _remove_chain(block, owner)
