"""`flex_attention` as products, what its functions do with scores, and a softmax: `write-out-flex-attention`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ..passes.counters import counter
from ..passes.remarks import remark
from .fx_attention_parts import tensor_of
from .fx_pre_grad import pre_grad_pass
from .fx_private import indexing_by_tensors

_NAME = "write-out-flex-attention"
_LN2 = math.log(2)
#: positions among the arguments of the op: query, key and value come first
_BUFFERS = (7, 8)
_DEFAULT_OPTIONS = {
    "BACKEND": "AUTO", "PRESCALE_QK": False, "ROWS_GUARANTEED_SAFE": False, "BLOCKS_ARE_CONTIGUOUS": False,
    "WRITE_DQ": True, "OUTPUT_LOGSUMEXP": False, "OUTPUT_MAX": False,
}  # fmt: skip
"""What torch itself says where a user gave no `kernel_options`."""


@pre_grad_pass(_NAME)
def write_out_flex_attention(graph: GraphModule, inputs: Sequence[Any]) -> None:
    """A call of `flex_attention` that no gradient is asked of is the ops that it stands for, which autograd sees.

    `score_mod` and `mask_mod` are mapped over batches, heads, queries and keys. The tables of the BlockMask are not
    read: `mask_mod` says the same, and what it hides is left out by proof, or is not. A row that sees nothing is 0.

        y, lse, highest = flex_attention(q, k, v, score_mod, (..., mask_mod), scale, options, buffers, ())
    becomes
        y, lse, highest = attention_of_functions(q, k, v, score_mod, (..., mask_mod), scale, options, buffers, ())
    """
    for node in graph.graph.nodes:
        if node.target is not torch.ops.higher_order.flex_attention:
            continue
        if (objection := _objection(node)) is not None:
            remark("missed", _NAME, None, f"{node.name} stays a call: {objection}")
        elif counter("write-out-flex-attention"):
            options = {name: value for name, value in node.args[6].items() if _DEFAULT_OPTIONS.get(name) != value}
            options = {name: value for name, value in options.items() if not name.startswith("OUTPUT_")}
            ignored = f"; its kernel_options {options} are not looked at" if options else ""
            node.target = attention_of_functions
            remark("passed", _NAME, None, f"{node.name} is products and a softmax{ignored}")


def _objection(node: Node) -> str | None:
    """Why a call stays one."""
    if len(node.args) != 9 or node.kwargs:
        return "its arguments are not those that torch gives it"
    given = [*node.args[:3], *(each for k in _BUFFERS for each in node.args[k])]  # pyright: ignore
    tensors = [tensor_of(each) for each in given if isinstance(each, Node) and _is_tensor(each)]
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return "a gradient is asked of it, for which scores would be kept in memory"
    options: Any = node.args[6]
    if options.get("BACKEND", "AUTO") == "FLASH":
        return "its kernel_options ask for a library's kernel"
    return None


def _is_tensor(node: Node) -> bool:
    return isinstance(node.meta.get("example_value"), torch.Tensor)


def attention_of_functions(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Callable[..., torch.Tensor],
    block_mask: tuple[Any, ...],
    scale: float,
    kernel_options: dict[str, Any],
    score_buffers: tuple[Any, ...] = (),
    mask_buffers: tuple[Any, ...] = (),
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What `torch.ops.higher_order.flex_attention` returns: the result, and of each row log2 sum 2**x and max x.

    x is log2(e) times the scores, in float32, or float64 where queries are. The last two are empty where
    `kernel_options` says that nobody reads them.
    """
    kind = query.device.type
    if torch.is_autocast_enabled(kind):
        narrow = torch.get_autocast_dtype(kind)
        query, key, value = (each.to(narrow) for each in (query, key, value))
    with torch.autocast(kind, enabled=False), indexing_by_tensors():
        group = query.shape[1] // key.shape[1]
        if group > 1:
            key, value = (each.repeat_interleave(group, dim=1) for each in (key, value))
        if key.shape[0] != query.shape[0]:
            key, value = (each.expand(query.shape[0], -1, -1, -1) for each in (key, value))
        scores = _scores(query, key, score_mod, block_mask[-1], scale, score_buffers, mask_buffers)
        weights = torch.ops.aten._safe_softmax.default(scores, -1).to(query.dtype)
        result = _in_strides_of(weights @ value.to(query.dtype), query)
        return result, *_statistics(scores, kernel_options)


def _scores(
    query: torch.Tensor,
    key: torch.Tensor,
    score_mod: Callable[..., torch.Tensor],
    mask_mod: Callable[..., torch.Tensor],
    scale: float,
    score_buffers: tuple[Any, ...],
    mask_buffers: tuple[Any, ...],
) -> torch.Tensor:
    """Scores behind both functions: -inf where a key is hidden."""
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    scores = (query.to(wide) @ key.to(wide).transpose(-2, -1)) * scale
    places = [torch.arange(size, device=query.device) for size in scores.shape]
    seen = _mapped(mask_mod, (), len(mask_buffers))(*places, *mask_buffers)
    scores = _mapped(score_mod, (0,), len(score_buffers))(scores, *places, *score_buffers)
    return torch.where(seen, scores.to(wide), -math.inf)


def _statistics(scores: torch.Tensor, options: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    nothing = scores.new_empty(0)
    asked = options.get("OUTPUT_LOGSUMEXP", True), options.get("OUTPUT_MAX", True)
    sums = torch.logsumexp(scores, dim=-1) / _LN2 if asked[0] else nothing
    return sums, scores.amax(dim=-1) / _LN2 if asked[1] else nothing


def _in_strides_of(result: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """A result whose dimensions lie in memory in the order of the queries', but for the last one."""
    order = [*sorted(range(3), key=lambda dim: query.stride(dim), reverse=True), 3]
    if order == [0, 1, 2, 3]:
        return result
    inverse = [order.index(dim) for dim in range(4)]
    return result.permute(order).contiguous().permute(inverse)


def _mapped(
    function: Callable[..., torch.Tensor], scores: tuple[int, ...], buffers: int
) -> Callable[..., torch.Tensor]:
    """A function of one place, for all batches, heads, queries and keys at once, behind `scores` or nothing."""
    for axis in (3, 2, 1, 0):
        places = [0 if axis == k else None for k in range(4)]
        function = torch.vmap(function, in_dims=(*scores, *places, *[None] * buffers))
    return function
