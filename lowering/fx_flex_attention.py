"""`flex_attention` as products, what its functions do with scores, and a softmax: `write-out-flex-attention`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.fx import GraphModule, Node

from ..passes.counters import counter
from ..passes.remarks import remark
from .fx_attention_parts import tensor_of
from .fx_either import asks_gradient, either_way, may_be_nest, next_number, read_on_way
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
    """A call of `flex_attention` is the ops that it stands for, which autograd sees.

    Where a gradient is asked of queries, keys or values it is one of two ways (`fx_either.py`), if training of
    attention of about these sizes was measured: where scores would be kept in memory, the call stays. So it does where
    a gradient is asked of what its functions read, or somebody reads more than the result.

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
            if asks_gradient(node.args[:3]):  # pyright: ignore[reportArgumentType]
                _leave_open(graph, node)
                continue
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
    options: Any = node.args[6]
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        if any(each.requires_grad for each in tensors[3:]):
            return "a gradient is asked of what its functions read"
        if not may_be_nest(tensors[0], tensors[1], is_training=True):
            return "a gradient is asked of it, for which scores would be kept in memory"
        if any(user.target is not operator.getitem or (user.args[1] and user.users) for user in node.users):
            return "a gradient is asked of it, and somebody reads more than its result"
    if options.get("BACKEND", "AUTO") == "FLASH":
        return "its kernel_options ask for a library's kernel"
    return None


def _leave_open(graph: GraphModule, node: Node) -> None:
    """Let a call, or products and a softmax compute an attention and its gradients."""
    results = [user for user in node.users if user.args[1] == 0]
    if not results:
        return
    number = next_number(graph)
    with graph.graph.inserting_before(node):
        ways = [[read_on_way(graph, each, number, way) for each in node.args[:3]] for way in (0, 1)]
    rest = node.args[3:]
    node.args = (*ways[0], *rest)
    with graph.graph.inserting_after(node):
        written = graph.graph.call_function(result_of_functions, (*ways[1], *rest))
    written.meta = {key: value for key, value in node.meta.items() if key not in ("from_node", "example_value")}
    with graph.graph.inserting_after(results[0]):
        either = graph.graph.call_function(either_way, (results[0], written, number))
    either.meta = {key: value for key, value in results[0].meta.items() if key != "from_node"}
    for each in results:
        each.replace_all_uses_with(either, delete_user_cb=lambda user: user is not either)
    remark("passed", _NAME, None, f"{node.name} may be a nest that computes its scores")


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


def result_of_functions(*args: Any) -> torch.Tensor:
    """The first of what `attention_of_functions` returns."""
    return attention_of_functions(*args)[0]


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
    scores = _Product.apply(query, key, wide) * scale  # pyright: ignore[reportOperatorIssue]
    places = [torch.arange(size, device=query.device) for size in scores.shape]
    seen = _mapped(mask_mod, (), len(mask_buffers))(*places, *mask_buffers)
    scores = _mapped(score_mod, (0,), len(score_buffers))(scores, *places, *score_buffers)
    return torch.where(seen, scores.to(wide), -math.inf)


class _Product(torch.autograd.Function):
    """queries @ keys^T in a wide type. Its gradient is rounded to the type of the queries, as flex_attention's is."""

    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor, wide: torch.dtype) -> torch.Tensor:
        ctx.save_for_backward(query, key)
        return query.to(wide) @ key.to(wide).transpose(-2, -1)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        query, key = ctx.saved_tensors
        narrow = gradient.to(query.dtype)
        return narrow @ key, narrow.transpose(-2, -1) @ query, None


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
