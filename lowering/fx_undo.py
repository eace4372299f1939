"""Undoing what a pass did to an FX graph: the nodes as they were, kept at the price of a list."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch.fx import GraphModule, Node
from torch.fx.node import map_arg


class _Fields(NamedTuple):
    node: Node
    name: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    meta: dict[str, Any]


class GraphCopy:
    """A graph as it is now. Arguments of nodes are immutable, so that remembering them copies nothing."""

    def __init__(self, graph: GraphModule) -> None:
        self.module = graph
        self.nodes = [
            _Fields(node, node.name, node.target, node.args, dict(node.kwargs), dict(node.meta))
            for node in graph.graph.nodes
        ]

    def restore(self) -> None:
        """Fill the graph with new nodes that are equal to those that were remembered.

        Arguments stay what they are: Dynamo keeps more about them than their metadata.
        """
        graph = self.module.graph
        arguments = {old.node for old in self.nodes if old.node.op == "placeholder"}
        left = [node for node in graph.nodes if node not in arguments]
        for node in left:
            node.args, node.kwargs = (), {}
        for node in left:
            graph.erase_node(node)
        made = {node: node for node in arguments}

        def new(node: Node) -> Node:
            return made[node]

        for old in (old for old in self.nodes if old.node not in arguments):
            given = map_arg(old.args, new), map_arg(old.kwargs, new)
            node = graph.create_node(old.node.op, old.target, *given, type_expr=old.node.type)  # pyright: ignore
            node.name, node.meta = old.name, old.meta
            made[old.node] = node
