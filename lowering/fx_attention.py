"""Attention that is written out, as one call: the pass `recognise-attention` on Dynamo's graph.

There torch chooses among its fused kernels, and autograd knows their gradients.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx import GraphModule, Node

from ..passes.counters import counter
from ..passes.remarks import remark
from .fx_attention_masks import call_method, drop, judge_mask, written_values
from .fx_pre_grad import pre_grad_pass
from .fx_private import known_true

_NAME = "recognise-attention"
_DEVICES = ("cuda",)
"""Where torch's fused kernels keep NaN: the one of the CPU may lose it."""
_DTYPES = (torch.float16, torch.bfloat16)
_MOST_WIDTH = 256
_HIDING = -1e9
"""What stands for a hidden score from here on down gives it a weight of 0 beside one that is seen."""

_PRODUCTS = (operator.matmul, torch.matmul, torch.bmm, "matmul", "bmm")
_SOFTMAXES = (F.softmax, torch.softmax, "softmax")
_CASTS = ("to", "float", "half", "bfloat16", "type", "type_as")
_TIMES = (operator.mul, torch.mul, "mul")
_OVER = (operator.truediv, torch.div, torch.true_divide, "div", "true_divide")
_PLUS = (operator.add, torch.add, "add")
_FILLS = (torch.masked_fill, "masked_fill")


class _Unlike(Exception):  # noqa: N818 - no error: the calls are something else
    """What is found is no attention, or one that stays as it is; the text says why where it is one."""


@dataclass
class _Attention:
    """The parts of an attention, and the calls that compute it, the last one first."""

    query: Node
    keys: Node
    value: Node
    scale: float
    is_causal: bool
    calls: list[Node]


@pre_grad_pass(_NAME)
def recognise_attention(graph: GraphModule, inputs: Sequence[Any]) -> None:
    """softmax(q @ k^T * scale) @ v == scaled_dot_product_attention(q, k, v, scale=scale) but for rounding.

    On a GPU, of 16 bits, without a mask or under one that is proved to be causal: then no row is hidden entirely. NaN
    stays NaN, but for one in a value that a row does not see: written out, it reaches the row by a weight of 0.
    Dropout is left alone.

        s = torch.matmul(q, k.transpose(-2, -1)) / 8.0
        y = torch.matmul(s.softmax(-1), v)
    becomes
        y = scaled_dot_product_attention(q, k.transpose(-2, -1).transpose(-2, -1), v, scale=0.125).contiguous()
    """
    products = [node for node in graph.graph.nodes if _is_call(node, _PRODUCTS)]
    if not any(_is_call(node, _SOFTMAXES) for node in graph.graph.nodes):
        return
    written = written_values(graph)
    for node in products:
        try:
            found = _match(node, written)
        except _Unlike as reason:
            if str(reason):
                remark("missed", _NAME, None, f"{node.name} ends an attention that stays written out: {reason}")
            continue
        if counter("recognise-attention"):
            _replace(graph, node, found)
            kind = "causal" if found.is_causal else "without a mask"
            remark("passed", _NAME, None, f"{node.name} is an attention, {kind}; replaces {len(found.calls)} calls")


def _is_call(node: Any, targets: Sequence[Any]) -> bool:
    return isinstance(node, Node) and node.op in ("call_function", "call_method") and node.target in targets


def _value(node: Any) -> torch.Tensor:
    value = node.meta.get("example_value") if isinstance(node, Node) else None
    if not isinstance(value, torch.Tensor):
        raise _Unlike
    return value


def _operands(node: Node, count: int) -> tuple[Any, ...]:
    """The operands of a call that has no others."""
    if len(node.args) != count or node.kwargs:
        raise _Unlike
    return node.args


def _match(node: Node, written: set[Node]) -> _Attention:
    weights, value = _operands(node, 2)
    calls = [node]
    weights = _through_casts(weights, calls)
    if not _is_call(weights, _SOFTMAXES):
        raise _Unlike
    assert isinstance(weights, Node)
    calls.append(weights)
    scores = _through_casts(_softmax_operand(weights), calls)
    scores, mask = _mask(scores, calls)
    scores, scale = _scale(_through_casts(scores, calls), calls)
    if mask is None:
        scores, mask = _mask(scores, calls)
    if not _is_call(scores, _PRODUCTS):
        raise _Unlike
    calls.append(scores)
    query, keys = _operands(scores, 2)
    if any(len(each.users) != 1 for each in calls[1:]):
        raise _Unlike("another call reads its scores or weights")
    if any(each in written for each in (*calls, query, keys, value)):
        raise _Unlike("a part of it is written in place")
    found = _Attention(query, keys, value, scale, False, calls)
    _check(node, found)
    if mask is not None:
        found.is_causal = _is_causal(mask, written)
    return found


def _through_casts(node: Any, calls: list[Node]) -> Any:
    while _is_call(node, _CASTS) and _value(node).is_floating_point() and _value(node.args[0]).is_floating_point():
        if _value(node).device != _value(node.args[0]).device:
            raise _Unlike
        calls.append(node)
        node = node.args[0]
    return node


def _softmax_operand(node: Node) -> Any:
    options = dict(zip(("input", "dim"), node.args, strict=False)) | node.kwargs
    if node.target is F.softmax and len(node.args) > 2:
        raise _Unlike
    dim = options.get("dim")
    if not isinstance(dim, int) or dim not in (-1, _value(node).dim() - 1):
        raise _Unlike
    return options.get("input")


def _mask(node: Any, calls: list[Node]) -> tuple[Any, tuple[str, Any] | None]:
    """Scores without their mask, and the mask with what it says: "hidden", "visible" or "added"."""
    if _is_call(node, _FILLS):
        scores, hidden, fill = _operands(node, 3)
        return _masked(node, scores, ("hidden", hidden), fill, calls)
    if _is_call(node, (torch.where,)):
        shown, scores, fill = _operands(node, 3)
        return _masked(node, scores, ("visible", shown), fill, calls)
    if _is_call(node, _PLUS):
        scores, mask = _operands(node, 2)
        if isinstance(mask, Node) and isinstance(scores, Node):
            calls.append(node)
            return scores, ("added", mask)
    return node, None


def _masked(
    node: Node, scores: Any, mask: tuple[str, Any], fill: Any, calls: list[Node]
) -> tuple[Any, tuple[str, Any]]:
    least = torch.finfo(_value(node).dtype).min
    if isinstance(fill, bool) or not isinstance(fill, int | float) or not (fill <= _HIDING or fill <= least):
        raise _Unlike("hidden scores do not become very small")
    calls.append(node)
    return scores, mask


def _scale(node: Any, calls: list[Node]) -> tuple[Any, float]:
    for targets, is_divisor in ((_TIMES, False), (_OVER, True)):
        if _is_call(node, targets):
            scores, number = _operands(node, 2)
            if (
                isinstance(number, bool)
                or not isinstance(number, int | float)
                or number == 0
                or not math.isfinite(number)
            ):
                raise _Unlike
            calls.append(node)
            return scores, 1 / number if is_divisor else float(number)
    return node, 1.0


def _check(node: Node, found: _Attention) -> None:
    query, keys, value, result = (_value(each) for each in (found.query, found.keys, found.value, node))
    operands = (query, keys, value)
    if any(each.device.type not in _DEVICES for each in operands):
        raise _Unlike
    if any(each.dtype != query.dtype for each in (*operands, result)) or query.dtype not in _DTYPES:
        raise _Unlike("it is not of 16 bits, or its operands are of different types")
    rank = query.dim()
    if rank not in (3, 4) or any(each.dim() != rank for each in (*operands, result)):
        raise _Unlike("it has no three or four dimensions")
    same = [a == b for each in (keys, value) for a, b in zip(query.shape[:-2], each.shape[:-2], strict=True)]
    same += [query.shape[-1] == value.shape[-1], keys.shape[-1] == value.shape[-2]]
    same += [a == b for a, b in zip(query.shape, result.shape, strict=True)]
    if not all(map(known_true, same)):
        raise _Unlike("its operands are broadcast, or queries and values have different widths")
    if not isinstance(query.shape[-1], int) or query.shape[-1] % 8 or query.shape[-1] > _MOST_WIDTH:
        raise _Unlike(f"no fused kernel takes heads of {query.shape[-1]} elements")


def _is_causal(mask: tuple[str, Any], written: set[Node]) -> bool:
    """Whether a mask is the causal one; False for one that hides nothing."""
    kind, values = mask
    if _value(values).requires_grad:
        raise _Unlike("its mask is learned")
    if (kind == "added") != _value(values).is_floating_point():
        raise _Unlike("its mask is of another type")
    proved, problem = judge_mask(values, written, is_hiding=kind == "hidden")
    if proved is None:
        raise _Unlike(f"its mask is not proved to be causal: {problem}")
    return proved == "causal"


def _replace(graph: GraphModule, node: Node, found: _Attention) -> None:
    is_flat = _value(found.query).dim() == 3
    with graph.graph.inserting_before(node):
        operands = [found.query, call_method(graph, found.keys, "transpose", -2, -1), found.value]
        if is_flat:
            operands = [call_method(graph, each, "unsqueeze", 1) for each in operands]
        options = {"is_causal": found.is_causal, "scale": found.scale}
        fused = graph.graph.call_function(F.scaled_dot_product_attention, tuple(operands), options)
        fused.meta["example_value"] = _fake(operands)
        result = call_method(graph, fused, "squeeze", 1) if is_flat else fused
        result = call_method(graph, result, "contiguous")
    for each in (fused, result):
        for key in ("stack_trace", "nn_module_stack", "source_fn_stack"):
            if key in node.meta:
                each.meta[key] = node.meta[key]
    node.replace_all_uses_with(result)
    drop(graph, node, lambda each: each in found.calls)


def _fake(operands: Sequence[Node]) -> torch.Tensor:
    query, _, value = (each.meta["example_value"] for each in operands)
    with query.fake_mode:
        return query.new_empty((*query.shape[:-1], value.shape[-1]))
