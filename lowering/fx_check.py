"""Whether the values that an FX graph says its ops give are those that their meta functions give."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg
from torch.utils._pytree import tree_leaves

from ..errors import InductileError
from .fx_private import fake_mode_of, fake_results, known_true
from .fx_strides import corrected


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
    with fake_results(mode, partial(corrected, mode)), mode:
        for node in graph.graph.nodes:
            if isinstance(node.target, torch._ops.OpOverload) and "unbacked_bindings" not in node.meta:
                compared += _check(node)
    return compared


def _check(node: Node) -> int:
    recorded = node.meta.get("val")
    args, kwargs = map_arg((node.args, dict(node.kwargs)), _value)
    if recorded is None or any(isinstance(leaf, Node) for leaf in tree_leaves((args, kwargs))):
        return 0
    actual = node.target(*args, **kwargs)  # pyright: ignore[reportCallIssue]
    for old, new in zip(tree_leaves(recorded), tree_leaves(actual), strict=True):
        if isinstance(old, torch.Tensor) and _differ(old, new):
            raise MetaMismatchError(f"{node.name} ({node.target}) is {_text(old)}, its op gives {_text(new)}")
    return 1


def _value(node: Node) -> Any:
    return node.meta.get("val", node)


def _differ(old: torch.Tensor, new: torch.Tensor) -> bool:
    """Whether two fake tensors are known to differ; strides of dimensions of size 1 do not count."""
    if (old.dtype, old.device, old.dim()) != (new.dtype, new.device, new.dim()):
        return True
    strides = zip(old.shape, old.stride(), new.stride(), strict=True)
    return any(known_true(a != b) for a, b in zip(old.shape, new.shape, strict=True)) or any(
        known_true(size != 1) and known_true(a != b) for size, a, b in strides
    )


def _text(tensor: torch.Tensor) -> str:
    return f"{tensor.dtype} {list(tensor.shape)} with strides {list(tensor.stride())} on {tensor.device}"
