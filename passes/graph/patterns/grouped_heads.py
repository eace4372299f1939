"""Attention whose keys and values are repeated for groups of query heads."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Attribute, OpResult, SSAValue

from ....dialects.aten import AtenOp
from ....dialects.sym import ONE
from .._pattern import Pattern, PatternBuilder, PatternCall, either
from .._replacement import ReplacementBuilder, type_of

_NO_MATCH = ""


def _repeated(aten: PatternBuilder, heads: Any) -> Any:
    """Heads, each several times in a row, as `repeat_interleave` along their dimension and `repeat_kv` make them."""
    copy = aten.clone(aten.expand(aten.unsqueeze(heads, 2), ...), memory_format=...)
    return either(aten.view(copy, ...), aten._unsafe_view(copy, ...))


def _attention(
    aten: PatternBuilder, query: Any, key: Any, value: Any, dropout: Any, causal: Any, mask: Any, scale: Any
) -> PatternCall:
    return aten._scaled_dot_product_flash_attention_for_cpu(
        query, _repeated(aten, key), _repeated(aten, value), dropout, causal, attn_mask=mask, scale=scale
    )


def _guard(root: SSAValue, key: SSAValue, value: SSAValue, **_: Any) -> str | None:
    assert isinstance(root, OpResult) and isinstance(root.owner, AtenOp)
    call = root.owner
    if type_of(key).shape[1:2] != type_of(value).shape[1:2]:
        return "keys and values have different numbers of heads"
    problems = (_problem(heads, call.arg(name)) for name, heads in (("key", key), ("value", value)))
    return next((problem for problem in problems if problem is not None), None)


def _problem(heads: SSAValue, repeated: SSAValue) -> str | None:
    """Why the attention cannot read the heads themselves; `repeated` is a view of a copy of them."""
    shape = type_of(heads).shape
    copy = repeated.owner
    assert isinstance(copy, AtenOp)
    expanded = type_of(copy.operands[0]).shape
    if len(shape) != 4 or len(expanded) != 5 or (*expanded[:2], *expanded[3:]) != shape:
        return _NO_MATCH
    batch, groups, length, width = shape
    if type_of(repeated).shape != (batch, groups * expanded[2], length, width):
        return _NO_MATCH
    if any(size.as_int() == 0 for size in expanded):
        return "it is empty"
    # the copy has its elements side by side, whatever the heads have
    return None if type_of(heads).strides[-1] is ONE else "the elements of a head do not lie next to each other"


def _replace(
    aten: ReplacementBuilder,
    query: SSAValue, key: SSAValue, value: SSAValue,
    dropout: Any, causal: Any, mask: Any, scale: Any, root: SSAValue,
) -> SSAValue:  # fmt: skip
    options = {"attn_mask": mask, "scale": scale}
    call = aten._scaled_dot_product_flash_attention_for_cpu
    return call(query, key, value, dropout, causal, **options, types=_types(root))[0]


def _types(root: SSAValue) -> list[Attribute]:
    assert isinstance(root, OpResult)
    return [result.type for result in root.owner.results]


def _attention_of_cudnn(
    aten: PatternBuilder, query: Any, key: Any, value: Any,
    mask: Any, sums: Any, dropout: Any, causal: Any, scale: Any,
) -> PatternCall:  # fmt: skip
    return aten._scaled_dot_product_cudnn_attention(
        query, _repeated(aten, key), _repeated(aten, value), mask, sums, dropout, causal, scale=scale
    )


def _replace_for_cudnn(
    aten: ReplacementBuilder,
    query: SSAValue, key: SSAValue, value: SSAValue,
    mask: Any, sums: Any, dropout: Any, causal: Any, scale: Any, root: SSAValue,
) -> SSAValue:  # fmt: skip
    call = aten._scaled_dot_product_cudnn_attention
    return call(query, key, value, mask, sums, dropout, causal, scale=scale, types=_types(root))[0]


def _flash_attention(
    aten: PatternBuilder, query: Any, key: Any, value: Any, dropout: Any, causal: Any, scale: Any
) -> PatternCall:
    return aten._scaled_dot_product_flash_attention(
        query, _repeated(aten, key), _repeated(aten, value), dropout, causal, scale=scale
    )


def _replace_flash(
    aten: ReplacementBuilder,
    query: SSAValue, key: SSAValue, value: SSAValue,
    dropout: Any, causal: Any, scale: Any, root: SSAValue,
) -> SSAValue:  # fmt: skip
    call = aten._scaled_dot_product_flash_attention
    return call(query, key, value, dropout, causal, scale=scale, types=_types(root))[0]


# a query head finds its key and value by integer division; it computes with the same elements in the same order
GROUPED_HEADS = Pattern("grouped_heads", _attention, _replace, guard=_guard, is_exact=True, keeps_effects=True)
#: kernels of GPUs that take groups; others want a head of keys for each of queries
GROUPED_HEADS_CUDNN = Pattern(
    "grouped_heads_cudnn", _attention_of_cudnn, _replace_for_cudnn, guard=_guard, is_exact=True, keeps_effects=True
)
GROUPED_HEADS_FLASH = Pattern(
    "grouped_heads_flash", _flash_attention, _replace_flash, guard=_guard, is_exact=True, keeps_effects=True
)
