"""Small rewrites of bodies that several passes of the level share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.loop import IndexOp, LoadOp, ReduceOp
from ...dialects.sym import AxesAttr, Expr, MapAttr, SymAttr
from ..analysis.slices import backward_slice, inputs_of
from ._accesses import map_of


def substitute_axes(block: Block, substitution: Mapping[str, Expr]) -> None:
    """Replace axis symbols in all index expressions of a block and of the regions inside."""
    for op in block.ops:
        if type(op) is LoadOp:
            op.properties["map"] = MapAttr.of(*(e.subs(substitution) for e in map_of(op).data))
        elif type(op) is IndexOp:
            op.properties["expr"] = SymAttr.of(cast(SymAttr, op.properties["expr"]).data.subs(substitution))
        for region in op.regions:
            for inner in region.blocks:
                substitute_axes(inner, substitution)


def copy_slice(
    values: Sequence[SSAValue], block: Block, into: list[Operation], known: Mapping[SSAValue, SSAValue] | None = None
) -> dict[SSAValue, SSAValue]:
    """Copies of the ops of `block` that `values` depend on, appended to `into` in order; gives the new values.

    Values from elsewhere stand for themselves, but for those that are `known` by other ones.
    """
    needed = set(backward_slice(values, lambda op: op.parent is block))
    copies = dict(known or {})
    for op in block.ops:
        if op in needed:
            into.append(op.clone(copies))
    return copies


def outside_values(op: Operation) -> list[SSAValue]:
    """Scalars of the block that an op stands in which the op uses, in its regions too."""
    owners = ((value, value.owner) for value in inputs_of(op))
    return [value for value, owner in owners if (owner if isinstance(owner, Block) else owner.parent) is op.parent]


def outermost(op: Operation, block: Block) -> Operation:
    """The op of a function's block that an op is in."""
    while op.parent is not block:
        above = op.parent_op()
        assert above is not None
        op = above
    return op


def nest_of(block: Block) -> Operation:
    """The nest of the function that a block inside it belongs to."""
    op = block.parent_op()
    while type(op) is ReduceOp:
        op = op.parent_op()
    assert op is not None
    return op


def axes_around(block: Block) -> list[tuple[str, Expr]]:
    """Axes that a body runs along, innermost op first."""
    axes: list[tuple[str, Expr]] = []
    op = block.parent_op()
    while op is not None and (own := op.properties.get("axes")) is not None:
        axes += cast(AxesAttr, own).data
        op = op.parent_op() if type(op) is ReduceOp else None
    return axes
