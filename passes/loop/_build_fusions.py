"""Builds the `loop.fusion` ops of a finished partition, each once, and puts the ops of the function in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, NoneAttr, UnknownLoc
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.loop import FusionOp, YieldOp, axis_names
from ...dialects.sym import AxesAttr
from ..analysis.nest_dependences import NO_AXIS, Node
from ._groups import Group, Groups


def build_fusions(groups: Groups, block: Block) -> None:
    """Replace the nests of each group by one `loop.fusion`."""
    terminator = groups.graph.terminator
    for node in groups.graph.nodes:
        block.detach_op(node.op)
    if terminator is not None:
        block.detach_op(terminator)
    replaced: dict[SSAValue, SSAValue] = {}
    for group in groups.in_order():
        for node in group.nodes:
            _redirect(node, replaced)
        if group.is_nest:
            block.add_op(_fusion(groups, group, replaced))
        else:
            block.add_op(group.nodes[0].op)
    if terminator is not None:
        _redirect_operands(terminator, replaced)
        block.add_op(terminator)


def _redirect(node: Node, replaced: dict[SSAValue, SSAValue]) -> None:
    """Make a node use results of the fusions that are built already."""
    for read in node.reads:
        new = replaced.get(read.source)
        if new is not None:
            read.load.operands[0] = new
    _redirect_operands(node.op, replaced)


def _redirect_operands(op: Operation, replaced: dict[SSAValue, SSAValue]) -> None:
    operands = tuple(op.operands)
    if any(v in replaced for v in operands):
        op.operands = [replaced.get(v, v) for v in operands]


def _fusion(groups: Groups, group: Group, replaced: dict[SSAValue, SSAValue]) -> FusionOp:
    names = _name_axes(groups, group)
    inside = Counter(v for node in group.nodes for v in node.op.operands)
    inside.update({source: len(reads) for source, reads in group.reads.items()})
    escaping = [v for node in group.nodes for v in node.op.results if v.uses.get_length() > inside[v]]
    for node in group.nodes:
        _place(groups, node, names)
    body = Block([node.op for node in group.nodes])
    body.add_op(YieldOp.create(operands=escaping))
    named = [(name, groups.sizes[axis]) for axis, name in names.items()]
    parallel = len(group.parallel)
    location = fused_location(node.op.location for node in group.nodes)
    op = FusionOp.of(AxesAttr.of(*named[:parallel]), AxesAttr.of(*named[parallel:]), Region(body), location)
    for inner, result in zip(escaping, op.results, strict=True):
        result.name_hint = inner.name_hint
        replaced[inner] = result
    return op


def _name_axes(groups: Groups, group: Group) -> dict[int, str]:
    """Names by fused axis: parallel ones first, in the order of the member with the most axes that comes last."""
    lead = max(group.nodes, key=lambda node: (node.rank, node.position))
    order: dict[int, None] = {}
    for node in (lead, *group.nodes):
        for axis in range(len(node.sizes)):
            order.setdefault(groups.place(node, axis))
    order.pop(NO_AXIS, None)
    placed = [a for a in order if a in group.parallel] + [a for a in order if a not in group.parallel]
    return {axis: f"a{k}" for k, axis in enumerate(placed)}


def _place(groups: Groups, node: Node, names: dict[int, str]) -> None:
    """Write the fusion axis of each axis of a member and its reductions."""
    names = {NO_AXIS: "_", **names}
    node.op.properties["on"] = axis_names(*(names[groups.place(node, k)] for k in range(node.rank)))
    for reduce, axes in node.reduces:
        reduce.properties["on"] = axis_names(*(names[groups.place(node, k)] for k in axes))


def fused_location(locations: Iterable[LocationAttr]) -> LocationAttr:
    """One location for an op that stands for several."""
    parts: dict[LocationAttr, None] = {}
    for location in locations:
        inner = location.locations if isinstance(location, FusedLoc) else (location,)
        parts.update((part, None) for part in inner if not isinstance(part, UnknownLoc))  # pyright: ignore
    if not parts:
        return UnknownLoc()
    return next(iter(parts)) if len(parts) == 1 else FusedLoc(ArrayAttr(list(parts)), NoneAttr())
