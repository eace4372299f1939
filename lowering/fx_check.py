"""Whether the values that an FX graph says its ops give are those that their meta functions give."""

from __future__ import annotations

from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.utils._pytree import tree_leaves

from ..errors import InductileError
from .fx_private import fake_mode_of


class MetaMismatchError(InductileError):
    """A node's recorded value differs from what its op's meta function gives."""


def check_result_types(graph: GraphModule) -> int:
    """Run every ATen op of a graph on its fake arguments and compare dtype, sizes, strides and device.

    Returns how many ops were compared; those that bring new symbols are passed over. Raises MetaMismatchError.
    """
    mode = fake_mode_of(node.meta.get("val") for node in graph.graph.nodes)
    if mode is None:
        return 0
    compared = 0
    with mode:
        for node in graph.graph.nodes:
            if isinstance(node.target, torch._ops.OpOverload) and "unbacked_bindings" not in node.meta:
                compared += _check(node)
    return compared


def _check(node: Node) -> int:
    recorded = node.meta.get("val")
    args, kwargs = torch.fx.node.map_arg((node.args, dict(node.kwargs)), _value)
    if recorded is None or any(isinstance(leaf, Node) for leaf in tree_leaves((args, kwargs))):
        return 0
    actual = node.target(*args, **kwargs)  # pyright: ignore[reportCallIssue]
    for old, new in zip(tree_leaves(recorded), tree_leaves(actual), strict=True):
        if isinstance(old, torch.Tensor) and _facts(old) != _facts(new):
            raise MetaMismatchError(f"{node.name} ({node.target}) is {_facts(old)}, its op gives {_facts(new)}")
    return 1


def _value(node: Node) -> Any:
    return node.meta.get("val", node)


def _facts(tensor: torch.Tensor) -> tuple[Any, ...]:
    strides = [stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size != 1]
    return tensor.dtype, tuple(tensor.shape), tuple(strides), tensor.device
