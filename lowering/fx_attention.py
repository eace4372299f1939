"""Attention that is written out, as one call: the pass `recognise-attention` on Dynamo's graph.

There torch chooses among its fused kernels, and autograd knows their gradients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.fx import GraphModule, Node

from ..machines import library_of
from ..passes.counters import counter
from ..passes.remarks import remark
from .fx_attention_bias import Biases
from .fx_attention_masks import call_method, drop
from .fx_attention_parts import (
    PRODUCTS,
    SOFTMAXES,
    Attention,
    Unlike,
    is_call,
    leads_to_product,
    matched,
    tensor_of,
    transposed_of,
)
from .fx_either import WRITTEN, asks_gradient, leave_open, mark_reads, may_be_nest, next_number, read_on_way
from .fx_pre_grad import pre_grad_pass, random_as_eager
from .fx_private import known_true
from .fx_writes import Writes, use_results

_NAME = "recognise-attention"
_DTYPES = (torch.float16, torch.bfloat16)
_MOST_WIDTH = 256


@pre_grad_pass(_NAME)
def recognise_attention(graph: GraphModule, inputs: Sequence[Any]) -> None:
    """softmax(q @ k^T * scale + mask) @ v == scaled_dot_product_attention(q, k, v, mask, scale=scale) but for rounding.

    On a GPU, of 16 bits. A mask that hides nothing goes away, the causal one becomes `is_causal`, and any other, and a
    bias, is an operand, as one of two ways (`fx_either.py`) where similar ones were measured, the other being what was
    there. Of a bias of which a gradient is asked the call is the only one.
    In the operand rows that see nothing get what they get written out (`fx_attention_bias.py`). NaN stays NaN, but for
    one in a key or a value that a row does not see: written out it reaches the row by a weight of 0, or where a mask is
    added to it; a fused kernel need not read it. Dropout of the weights draws other numbers, as all of ours do without
    `fallback_random`.

        s = torch.matmul(q, k.transpose(-2, -1)) / 8.0
        y = torch.matmul(s.softmax(-1), v)
    becomes
        y = scaled_dot_product_attention(q, k, v, scale=0.125).contiguous()
    """
    products = [node for node in graph.graph.nodes if is_call(node, PRODUCTS)]
    if not any(is_call(node, SOFTMAXES) for node in graph.graph.nodes):
        return
    use_results(graph, leads_to_product)
    writes = Writes(graph)
    biases = Biases(graph, writes.values)
    for node in products:
        try:
            found = matched(node)
            _check(found, writes)
            kind = biases.judge(found)
        except Unlike as reason:
            if str(reason):
                remark("missed", _NAME, None, f"{node.name} ends an attention that stays written out: {reason}")
            continue
        if counter("recognise-attention"):
            _replace(graph, found, biases)
            remark("passed", _NAME, None, f"{node.name} is an attention, {kind}; replaces {len(found.calls)} calls")


def _check(found: Attention, writes: Writes) -> None:
    key = found.source or found.keys
    for each in writes.between(_reads(found), found.result, found.calls):
        raise Unlike(f"a part of it is written by {each.name}")
    query, keys, value, result = map(tensor_of, (found.query, found.keys, found.value, found.result))
    operands = (query, keys, value, tensor_of(key))
    if not all(library_of(each.device.type).keeps_nan for each in operands):
        raise Unlike
    if any(each.dtype != query.dtype for each in (query, value, tensor_of(key), result)) or query.dtype not in _DTYPES:
        raise Unlike("it is not of 16 bits, or its operands are of different types")
    rank = query.dim()
    if rank not in (3, 4) or any(each.dim() != rank for each in (*operands, result)):
        raise Unlike("it has no three or four dimensions")
    # one head or batch of keys and values serves all of the queries' (`fx_attention_heads.py`)
    shared = (zip(query.shape[:-2], each.shape[:-2], strict=True) for each in (keys, value))
    same = [a == b for pairs in shared for a, b in pairs if not (rank == 4 and isinstance(b, int) and b == 1)]
    same += [query.shape[-1] == value.shape[-1], keys.shape[-1] == value.shape[-2]]
    same += [a == b for a, b in zip(query.shape, result.shape, strict=True)]
    if not all(map(known_true, same)):
        raise Unlike("its operands are broadcast, or queries and values have different widths")
    if not isinstance(query.shape[-1], int) or query.shape[-1] % 8 or query.shape[-1] > _MOST_WIDTH:
        raise Unlike(f"no fused kernel takes heads of {query.shape[-1]} elements")
    _check_training(found)


def _reads(found: Attention) -> dict[Node, Node]:
    """What an attention reads, and where; in front of a cast, any time from then on."""
    product = found.calls[-1]
    reads = dict(zip(found.calls, found.calls, strict=True)) | {found.keys: product}
    if found.source is not None:
        reads[found.source] = product if found.source is transposed_of(found.keys) else found.source
    reads[found.query] = product if found.query in product.args else found.query
    return reads | {step.operand: step.reader for step in found.steps if step.operand is not None}


def _check_training(found: Attention) -> None:
    if found.dropout and random_as_eager():
        raise Unlike("its weights are dropped by eager's random numbers, as `fallback_random` asks")
    has_gradient = any(tensor_of(each).requires_grad for each in (found.query, found.keys, found.value))
    if has_gradient and torch.are_deterministic_algorithms_enabled():
        raise Unlike("gradients of fused kernels are not deterministic")


def _replace(graph: GraphModule, found: Attention, biases: Biases) -> None:
    node = found.result
    is_flat = tensor_of(found.query).dim() == 3
    is_open = _may_stay_written_out(found)
    number = next_number(graph) if is_open and _is_trained(found) else None
    with graph.graph.inserting_before(node):
        key = found.source or call_method(graph, found.keys, "transpose", -2, -1)
        operands = [found.query, key, found.value]
        if number is not None:
            operands = [read_on_way(graph, each, number, 0) for each in operands]
        if is_flat and found.heads is not None:
            operands = [call_method(graph, each, "unflatten", 0, (-1, found.heads)) for each in operands]
        elif is_flat:
            operands = [call_method(graph, each, "unsqueeze", 1) for each in operands]
        mask, operands[0] = biases.make(found, operands[0])
        options = {"attn_mask": mask, "dropout_p": found.dropout, "is_causal": found.is_causal, "scale": found.scale}
        fused = graph.graph.call_function(F.scaled_dot_product_attention, tuple(operands), options)
        fused.meta["example_value"] = _fake(operands)
        result = fused
        if is_flat:
            joined = ("squeeze", (1,)) if found.heads is None else ("flatten", (0, 1))
            result = call_method(graph, fused, joined[0], *joined[1])
        result = call_method(graph, result, "contiguous")
    for each in (fused, result):
        for key in ("stack_trace", "nn_module_stack", "source_fn_stack"):
            if key in node.meta:
                each.meta[key] = node.meta[key]
    if is_open:
        fused.meta[WRITTEN] = True
        if number is not None:
            mark_reads(graph, found.calls, number, 1)
        leave_open(graph, result, node, number)
        return
    node.replace_all_uses_with(result)
    drop(graph, node, lambda each: each in found.calls)


def _may_stay_written_out(found: Attention) -> bool:
    """Whether kernels of our own may be faster: under a mask of which no gradient is asked, and nothing is dropped.

    A library's kernel reads the mask from memory, where a nest computes it.
    """
    if not found.steps or found.is_causal or found.dropout:
        return False
    read = [step.operand for step in found.steps if step.operand is not None]
    if asks_gradient(read):
        remark("missed", _NAME, None, f"{found.result.name} is the library's: a gradient is asked of its bias")
        return False
    return may_be_nest(tensor_of(found.query), tensor_of(found.keys).mT, _is_trained(found))


def _is_trained(found: Attention) -> bool:
    return asks_gradient((found.query, found.keys, found.value))


def _fake(operands: Sequence[Node]) -> torch.Tensor:
    query, _, value = (each.meta["example_value"] for each in operands)
    with query.fake_mode:
        return query.new_empty((*query.shape[:-1], value.shape[-1]))
