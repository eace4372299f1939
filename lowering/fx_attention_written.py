"""`scaled_dot_product_attention` under a mask, written out beside the call, where a nest of ours may be faster."""

from __future__ import annotations

import math
import operator
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ..machines import library_of
from ..passes.counters import counter
from ..passes.remarks import remark
from .fx_attention_parts import Unlike, tensor_of
from .fx_either import EITHER, WRITTEN, asks_gradient, either_way, may_be_nest, next_number, read_on_way

_NARROW = (torch.float16, torch.bfloat16)


def offer_written_out(graph: GraphModule, node: Node, arguments: dict[str, Any], name: str) -> None:
    """Leave open whether a call, or products and a softmax compute an attention. A row that sees nothing is 0.

    arguments: those of the call, with the mask as it was made, in front of any arranging
    name:      the pass that does so

        y = scaled_dot_product_attention(q, k, v, attn_mask=m)
    becomes
        f = scaled_dot_product_attention(q, k, v, attn_mask=m)
        w = written_out(q, k, v, m, scale)
        y = inductile.either(f, w)
    """
    try:
        may = not node.meta.get(WRITTEN) and _is_plain(arguments)
    except Unlike:
        return
    mask, operands = arguments["attn_mask"], [arguments[each] for each in ("query", "key", "value")]
    if not may:
        return
    is_training = asks_gradient((*operands, mask))
    if asks_gradient((mask,)):
        remark("missed", name, None, f"{node.name} is the library's: a gradient is asked of its mask")
        return
    query, key = map(tensor_of, operands[:2])
    if not may_be_nest(query, key, is_training) or not counter("write-out-attention"):
        return
    number = next_number(graph) if is_training else None
    if number is not None:
        with graph.graph.inserting_before(node):
            read = {each: read_on_way(graph, each, number, 0) for each in operands}
            operands = [read_on_way(graph, each, number, 1) for each in operands]
        node.args = tuple(read.get(each, each) for each in node.args)
        node.kwargs = {key: read.get(each, each) if key != "attn_mask" else each for key, each in node.kwargs.items()}
    with graph.graph.inserting_after(node):
        written = graph.graph.call_function(written_out, (*operands, mask, arguments.get("scale")))
    with graph.graph.inserting_after(written):
        ways = (node, written)
        either = graph.graph.call_function(*((EITHER, ways) if number is None else (either_way, (*ways, number))))
    for each in (written, either):
        each.meta = {key: value for key, value in node.meta.items() if key != "from_node"}
    node.replace_all_uses_with(either, delete_user_cb=lambda user: user is not either)
    remark("passed", name, None, f"{node.name} may be a nest that computes its mask")


def _is_plain(arguments: dict[str, Any]) -> bool:
    """Whether a call is of matrices of 16 bits on a GPU, under a mask, and drops nothing."""
    query, key, value, mask = (tensor_of(arguments.get(each)) for each in ("query", "key", "value", "attn_mask"))
    tensors = (query, key, value)
    if arguments.get("dropout_p") or arguments.get("is_causal") or not library_of(query.device.type).reads_mask_rows:
        return False
    if query.dtype not in _NARROW or any(each.dtype != query.dtype or each.dim() != 4 for each in tensors):
        return False
    heads, of_keys = query.shape[1], key.shape[1]
    if not (isinstance(heads, int) and isinstance(of_keys, int) and of_keys) or heads % of_keys:
        return False
    scale = arguments.get("scale")
    is_number = scale is None or (isinstance(scale, int | float) and scale != 0)
    return is_number and (mask.dtype == torch.bool or mask.is_floating_point()) and mask.dim() in (2, 3, 4)


def written_out(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor, scale: float | None
) -> torch.Tensor:
    """What the call computes, op by op, in its strides: dimensions in memory as those of the queries."""
    group = query.shape[1] // key.shape[1]
    if group > 1:
        key, value = (each.repeat_interleave(group, dim=1) for each in (key, value))
    scores = operator.matmul(query, key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    scores = torch.where(mask, scores, -math.inf) if mask.dtype == torch.bool else scores + mask
    weights = torch.ops.aten._safe_softmax.default(scores, -1).to(query.dtype)
    result = weights @ value
    order = [*sorted(range(3), key=lambda dim: query.stride(dim), reverse=True), 3]
    if order == [0, 1, 2, 3]:
        return result
    return result.permute(order).contiguous().permute([order.index(dim) for dim in range(4)])
