"""Numbers that modules own are constants: the pass `settle-numbers` on Dynamo's graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from ..passes.counters import counter
from ..passes.remarks import remark
from .fx_pre_grad import pre_grad_pass
from .fx_private import settled_number

_NAME = "settle-numbers"


@pre_grad_pass(_NAME)
def settle_numbers(graph: GraphModule, inputs: Sequence[Any]) -> None:
    """A float that a module, or a namespace, owns is a constant, as it is where sizes are static.

    Under `dynamic=True` Dynamo passes each as a tensor of the CPU, of which every kernel that reads it needs a copy,
    and a scale that is open keeps attention from its fused kernels. A guard asks for the value of this trace; where it
    was another one before, it stays open, so that a number that changes compiles twice, as it does without
    `dynamic=True`. Numbers that a call is given stay open.

        eps = l_self_eps.item()
        y = torch.rms_norm(x, (64,), None, eps)
    becomes
        y = torch.rms_norm(x, (64,), None, 1e-06)
    """
    for node in list(graph.graph.nodes):
        value = node.meta.get("example_value")
        if not isinstance(value, torch.SymFloat) or node.op not in ("call_method", "call_function"):
            continue
        number = _computed(node) if node.op == "call_function" else settled_number(value)
        if number is None or not counter("settle-numbers"):
            continue
        if node.op == "call_method":
            float(value)  # a guard
        _put(node, number)
        graph.graph.erase_node(node)
        remark("passed", _NAME, None, f"{node.name} is {number}")


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
