"""Attention whose keys and values have fewer heads or batches than queries: the pass `group-attention-heads`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx import GraphModule, Node

from ..machines import library_of
from ..passes.counters import counter
from ..passes.remarks import remark
from .fx_attention_masks import arguments_of, call_method
from .fx_attention_parts import tensor_of
from .fx_pre_grad import pre_grad_pass, random_as_eager
from .fx_private import known_true

_NAME = "group-attention-heads"
_OPERANDS = ("query", "key", "value")
_NARROW = (torch.float16, torch.bfloat16)
"""Types of the kernels that find the head of a key themselves."""


@pre_grad_pass(_NAME)
def group_attention_heads(graph: GraphModule, inputs: Sequence[Any]) -> None:
    """On a GPU, operands of `scaled_dot_product_attention` that broadcast come as its fused kernels take them.

    For broadcast heads or batches torch computes the scores op by op. One head of keys and values for all of 16 bits is
    a group; what else has one batch or head, and all others do not, is read by a stride of 0. Nothing is copied.

        y = scaled_dot_product_attention(q, k, v)  # q of (4, 8, 128, 64), k and v of (4, 1, 128, 64)
    becomes
        y = scaled_dot_product_attention(q, k, v, enable_gqa=True)
    """
    for node in graph.graph.nodes:
        if node.target is not F.scaled_dot_product_attention:
            continue
        arguments = arguments_of(node)
        if arguments.get("enable_gqa") or not all(isinstance(arguments.get(name), Node) for name in _OPERANDS):
            continue
        tensors = {name: tensor_of(arguments[name]) for name in _OPERANDS}
        if any(not library_of(each.device.type).groups_heads or each.dim() != 4 for each in tensors.values()):
            continue
        if arguments.get("dropout_p") and random_as_eager():
            remark("missed", _NAME, None, f"{node.name} broadcasts, and `fallback_random` asks for eager's numbers")
            continue
        mask = arguments.get("attn_mask")
        kind = mask.meta["example_value"].dtype if isinstance(mask, Node) else torch.bool
        if kind not in (torch.bool, tensors["query"].dtype):
            # a kernel of cuDNN would read its bits as of the other type: NaN on an H200, torch 2.11
            remark("missed", _NAME, None, f"{node.name} broadcasts, and its mask is of {kind}")
            continue
        wanted = [_full_size([each.shape[dim] for each in tensors.values()]) for dim in (0, 1)]
        if None in wanted or not _broadcasts(tensors.values(), wanted) or not counter("group-attention-heads"):
            continue
        _group(graph, node, arguments, tensors, wanted)
        remark("passed", _NAME, None, f"{node.name} reads its keys and values without broadcasting them")


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def _full_size(sizes: Sequence[Any]) -> Any:
    """The size that others than 1 have, 1 where all are; None where they are not known to be the same."""
    others = [size for size in sizes if not _is_one(size)]
    return None if not all(known_true(size == others[0]) for size in others) else (others or [1])[0]


def _broadcasts(tensors: Any, wanted: Sequence[Any]) -> bool:
    return any(_is_one(each.shape[dim]) and not _is_one(wanted[dim]) for each in tensors for dim in (0, 1))


def _group(
    graph: GraphModule, node: Node, arguments: dict[str, Any], tensors: dict[str, torch.Tensor], wanted: Sequence[Any]
) -> None:
    batch, heads = wanted
    shares = not _is_one(heads) and all(_is_one(tensors[name].shape[1]) for name in ("key", "value"))
    is_group = shares and not _is_one(tensors["query"].shape[1]) and tensors["query"].dtype in _NARROW
    with graph.graph.inserting_before(node):
        # sizes of operands that have them, as nodes of the graph where they are symbols
        sizes = [_size_of(graph, arguments, tensors, dim, wanted[dim]) for dim in (0, 1)]
        for name in _OPERANDS:
            keeps_heads = is_group and name != "query"
            target = [
                sizes[dim] if _is_one(tensors[name].shape[dim]) and not _is_one(full) and not keeps else -1
                for dim, full, keeps in ((0, batch, False), (1, heads, keeps_heads))
            ]
            if target != [-1, -1]:
                arguments[name] = call_method(graph, arguments[name], "expand", *target, -1, -1)
    if is_group:
        arguments["enable_gqa"] = True
    node.args = ()
    node.kwargs = arguments


def _size_of(
    graph: GraphModule, arguments: dict[str, Any], tensors: dict[str, torch.Tensor], dim: int, full: Any
) -> Any:
    """A size as an argument of a call: a number, or a node that computes it."""
    if isinstance(full, int):
        return full
    owner = next(name for name in _OPERANDS if not _is_one(tensors[name].shape[dim]))
    size = graph.graph.call_method("size", (arguments[owner], dim))
    size.meta["example_value"] = full
    return size
