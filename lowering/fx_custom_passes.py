"""Passes of users on FX graphs, as TorchInductor takes them: functions that change a `torch.fx.Graph` in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.fx import GraphModule, Node
from torch.fx.node import map_arg

from ..errors import UserError
from .fx_private import fake_mode_of, inference_aware, sort_nodes


def run_custom_passes(graph: GraphModule, name: str, passes: Any, *, is_inference: bool = False) -> None:
    """Call what the option `name` holds: nothing, one pass, or several.

    Behind them nodes are in order, and what is new or changed has its value in `meta["val"]`, where the graph has
    values. Raises UserError for a graph that is none any more.
    """
    chosen = () if passes is None else tuple(passes) if isinstance(passes, list | tuple) else (passes,)
    if not chosen:
        return
    before = {node: (node.target, node.args, dict(node.kwargs)) for node in graph.graph.nodes}
    for each in chosen:
        _call(each, graph, is_inference)
    try:
        sort_nodes(graph.graph)
        graph.graph.lint()
    except Exception as error:
        raise UserError(f"what {name!r} leaves is no graph: {error}", "see torch.fx.Graph.lint") from error
    _update_values(graph, before)
    graph.recompile()


def _call(custom: Callable[..., Any], graph: GraphModule, is_inference: bool) -> None:
    if inference_aware(custom):
        custom(graph.graph, is_inference)
    else:
        custom(graph.graph)


def _update_values(graph: GraphModule, before: dict[Node, Any]) -> None:
    """Compute the values of nodes that are new, that changed, or that read one whose value changed."""
    mode = fake_mode_of(node.meta.get("val") for node in graph.graph.nodes)
    if mode is None or not any("val" in node.meta for node in graph.graph.nodes):
        return  # Dynamo's graph, which autograd traces anyway
    changed: set[Node] = set()
    with mode:
        for node in graph.graph.nodes:
            same = before.get(node) == (node.target, node.args, node.kwargs) and "val" in node.meta
            if node.op != "call_function" or (same and changed.isdisjoint(node.all_input_nodes)):
                continue
            if all("val" in each.meta for each in node.all_input_nodes):  # else it calls a graph
                args, kwargs = map_arg((node.args, node.kwargs), lambda each: each.meta["val"])
                old = node.meta.get("val")
                node.meta["val"] = new = node.target(*args, **kwargs)
                if not same or not _is_alike(old, new):
                    changed.add(node)


def _is_alike(one: Any, other: Any) -> bool:
    """Whether two values are tensors of the same kind, which need not be told to readers."""
    if not isinstance(one, torch.Tensor) or not isinstance(other, torch.Tensor):
        return False
    return (one.dtype, one.device, one.shape, one.stride()) == (other.dtype, other.device, other.shape, other.stride())
