"""`loop-dce`: what nobody reads is not computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation

from ...dialects.effects import has_side_effect
from ...dialects.loop import (
    MONOIDS,
    AssertOp,
    FusionOp,
    GenerateOp,
    ReduceOp,
    ScanOp,
    YieldOp,
    combiner_attr,
)
from ..counters import counter
from ..function_pass import LoopPass


class EliminateDeadCode(LoopPass):
    """Remove nests, members, results and scalars without a use.

    level:         loop
    precondition:  none
    guarantee:     every value is used, but for results of ops with an effect: nests with a `loop.assert`, scatters in
                   place, ATen calls that draw random numbers or write. A nest of several results keeps the used ones;
                   a reduction keeps the monoids of which a value is used, and is no `argmax` for the sake of a maximum.

        %a, %b = loop.generate (i0 in 4) { %v = ...  %w = ...  loop.yield %v, %w } : T, T   // %b is not used
    becomes
        %a = loop.generate (i0 in 4) { %v = ...  loop.yield %v } : T
    """

    name = "loop-dce"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        sweep(block)


def sweep(block: Block) -> None:
    """Remove what is dead in a block, last op first, so that chains die in one go."""
    terminator = block.last_op
    op = terminator.prev_op if terminator is not None else None
    while op is not None:
        previous = op.prev_op
        _visit(op, block)
        op = previous


def _visit(op: Operation, block: Block) -> None:
    used = [result.first_use is not None for result in op.results]
    if not any(used):
        if type(op) is not AssertOp and not has_side_effect(op) and counter(EliminateDeadCode.name):
            block.erase_op(op)
            return
    elif not all(used) and (prune := _PRUNE.get(type(op))) is not None and counter(EliminateDeadCode.name):
        op = prune(op, used)
    for region in op.regions:
        inner = region.blocks.first
        if inner is not None:
            sweep(inner)


def _select(items: Sequence, used: Sequence[bool]) -> tuple:
    return tuple(item for item, keep in zip(items, used, strict=True) if keep)


def _replace(op: Operation, new: Operation, used: Sequence[bool]) -> Operation:
    """Put `new`, which has the used results of `op`, in its place."""
    block = op.parent
    assert block is not None
    block.insert_op_before(new, op)
    for old, result in zip(_select(op.results, used), new.results, strict=True):
        old.replace_all_uses_with(result)
    block.erase_op(op)
    return new


def _rebuild(op: Operation, used: Sequence[bool], **changed: ArrayAttr[StringAttr]) -> Operation:
    """`op` without its unused results, which its body no longer yields."""
    last = op.regions[0].block.last_op
    assert type(last) is YieldOp
    last.operands = _select(last.operands, used)
    new = type(op).create(
        operands=tuple(op.operands),
        result_types=_select(tuple(r.type for r in op.results), used),
        properties=op.properties | changed,
        attributes=op.attributes,
        location=op.location,
        regions=[op.detach_region(region) for region in op.regions],
    )
    return _replace(op, new, used)


#: what gives the first value of a monoid alone
_FIRST_ALONE = {"argmax": "max", "argmin": "min"}


def _prune_monoids(op: Operation, used: Sequence[bool]) -> Operation:
    """Remove from a reduction the monoids and the positions of extrema whose results nothing uses."""
    names = [c.data for c in cast("ArrayAttr[StringAttr]", op.properties["combiners"])]
    if names == ["custom"]:
        return op
    kept: list[str] = []
    needed: list[bool] = []
    for name in names:
        mine = used[len(needed) : len(needed) + MONOIDS[name].arity]
        # In a scan the position tells which of two equal values is there, and 0.0 equals -0.0.
        if name in _FIRST_ALONE and mine[0] and not mine[1] and type(op) is not ScanOp:
            kept.append(_FIRST_ALONE[name])
            needed += mine
            continue
        needed += [any(mine)] * len(mine)
        kept += [name] if any(mine) else []
    return op if all(needed) else _rebuild(op, needed, combiners=combiner_attr(*kept))


_PRUNE = {
    GenerateOp: _rebuild,
    FusionOp: _rebuild,
    ReduceOp: _prune_monoids,
    ScanOp: _prune_monoids,
}
