"""Order of the nodes of a backward graph."""

from __future__ import annotations

from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from .fx_private import is_tangent
from .fx_targets import is_pure


def order_backward(backward: GraphModule) -> None:
    """Compute what the forward graph computed already, and backward computes again, right before it is read.

    The extraction of a backward graph puts such nodes first, so that all of them would be alive together; then
    computing them again would save no memory. Nodes that depend on a tangent keep their order, as do effects.
    """
    early = _independent_of_tangents(backward)
    if not early:
        return
    placed: set[Node] = set()
    for node in list(backward.graph.nodes):
        if node not in early:
            _place_operands(node, early, placed)
    for node in reversed(list(backward.graph.nodes)):
        if node in early and node not in placed:  # only such read it
            backward.graph.erase_node(node)
    backward.recompile()


def _independent_of_tangents(backward: GraphModule) -> set[Node]:
    """Calls without effect that only values saved by the forward graph lead to."""
    late: set[Node] = set()
    early: set[Node] = set()
    for node in backward.graph.nodes:
        if node.op == "placeholder":
            if is_tangent(node):
                late.add(node)
        elif not late.isdisjoint(node.all_input_nodes):
            late.add(node)
        elif node.op == "call_function" and node.users and not _has_effect(node):
            early.add(node)
    return early


def _has_effect(node: Node) -> bool:
    """Whether the order of a call shows: it writes, draws random numbers, or talks to other processes."""
    return node.is_impure() or (isinstance(node.target, OpOverload) and not is_pure(node.target))


def _place_operands(reader: Node, early: set[Node], placed: set[Node]) -> None:
    """Move the early nodes that a node needs in front of it, operands first."""
    pending = [node for node in reversed(reader.all_input_nodes) if node in early and node not in placed]
    while pending:
        node = pending[-1]
        if node in placed:
            pending.pop()
            continue
        missing = [each for each in reversed(node.all_input_nodes) if each in early and each not in placed]
        if missing:
            pending += missing
            continue
        pending.pop()
        placed.add(node)
        reader.prepend(node)
