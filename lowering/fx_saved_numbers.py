"""Which symbolic integers the backward graph is given.

Sizes are no values at the aten level, so the partition of tensors says nothing of them; this works on the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

from ..errors import UnsupportedError
from .fx_private import is_tangent, runs_in_backward

_NUMBERS = (torch.SymInt, torch.SymFloat, torch.SymBool)


def numbers_to_save(joint: GraphModule, saved: Iterable[Node], forward_outputs: int) -> list[Node]:
    """Integers that the backward graph needs besides the `saved` tensors, in the order of the graph.

    A number computed from other numbers is computed again; one that a tensor gives is saved.
    Raises UnsupportedError for what can be neither.
    """
    available = set(saved)
    late = _depends_on_tangents(joint)
    output = next(iter(joint.graph.find_nodes(op="output")))
    outputs = tree_leaves(output.args)
    pending = [node for node in outputs[forward_outputs:] if isinstance(node, Node)]
    pending += [node for node in joint.graph.nodes if node in late and _has_effect(node)]
    seen: set[Node] = set()
    numbers: set[Node] = set()
    while pending:
        node = pending.pop()
        if node in seen or node in available:
            continue
        seen.add(node)
        is_number = isinstance(node.meta.get("val"), _NUMBERS)
        if is_number and node not in late and _is_source(node):
            if not isinstance(node.meta["val"], torch.SymInt):
                raise UnsupportedError(f"the number {node.name} would have to be saved for backward, and is no integer")
            numbers.add(node)
        elif node.op == "placeholder" and node not in late:
            raise UnsupportedError(f"the backward graph needs {node.name}, which the partition does not save")
        else:
            pending += node.all_input_nodes
    return [node for node in joint.graph.nodes if node in numbers]


def _is_source(number: Node) -> bool:
    """Whether a number is an argument, or an integer that comes from a tensor."""
    if number.op == "placeholder":
        return True
    from_numbers = all(isinstance(node.meta.get("val"), (int, *_NUMBERS)) for node in number.all_input_nodes)
    return isinstance(number.meta["val"], torch.SymInt) and not from_numbers


def _depends_on_tangents(joint: GraphModule) -> set[Node]:
    late: set[Node] = set()
    for node in joint.graph.nodes:
        if node.op == "placeholder":
            if is_tangent(node):
                late.add(node)
        elif (_has_effect(node) and runs_in_backward(node)) or not late.isdisjoint(node.all_input_nodes):
            late.add(node)
    return late


def _has_effect(node: Node) -> bool:
    return node.op == "call_function" and node.is_impure()
