"""Numbers that modules own, as constants of Dynamo's graph. Light: graphs are looked up in the cache with these."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from ..records import dataclass
from .fx_private import settled_number, symbol_name


@dataclass(frozen=True)
class Settled:
    """A number that has become a constant.

    node:   the name of its node
    symbol: the name that torch has for it, where Dynamo passes it; None for one that is computed of such
    """

    node: str
    number: float
    symbol: str | None


def settle(graph: GraphModule, may: Callable[[], bool] = lambda: True) -> list[Settled]:
    """Put constants in the places of numbers that modules own; a guard asks for each.

    may: whether the next one may be replaced
    """
    settled: list[Settled] = []
    for node in list(graph.graph.nodes):
        value = node.meta.get("example_value")
        if not isinstance(value, torch.SymFloat) or node.op not in ("call_method", "call_function"):
            continue
        number = _computed(node) if node.op == "call_function" else settled_number(value)
        if number is None or not may():
            continue
        if node.op == "call_method":
            float(value)  # a guard
        _put(node, number)
        graph.graph.erase_node(node)
        passed = node.op == "call_method"
        settled.append(Settled(node.name, number, symbol_name(value) if passed else None))
    if settled:
        graph.recompile()
    return settled


def _computed(node: Node) -> float | None:
    """What a call makes of numbers that are constants; None where it is given anything else."""
    given = (*node.args, *node.kwargs.values())
    if not all(isinstance(each, int | float) for each in given) or not callable(node.target):
        return None
    number = node.target(*node.args, **node.kwargs)
    return number if isinstance(number, float) else None


def _put(node: Node, number: float) -> None:
    """Give all users of a node a number in its place."""

    def replaced(each: Node) -> Any:
        return number if each is node else each

    for user in list(node.users):
        user.args = map_arg(user.args, replaced)
        user.kwargs = map_arg(user.kwargs, replaced)
