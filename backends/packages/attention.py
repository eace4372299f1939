"""Which attention of ATen's runs on a GPU that is not here: torch asks the device, and without one takes none."""

from __future__ import annotations

from typing import Any

import torch

_ATEN: Any = torch.ops.aten
_MOST = 256
"""Length of a head that fused kernels take."""
_ALIGNED = 8
"""Elements that fused kernels read at once: heads and rows of a bias are multiples."""


def attention_of_a_gpu(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> torch.Tensor:
    """`scaled_dot_product_attention` by a fused kernel where all GPUs that we know of have it, else written out.

    In 16 bits and without a mask FlashAttention, else the memory-efficient one, whose masks are added in their type.
    """
    if not _is_fusible(query, key, value, attn_mask):
        options = {"scale": scale, "enable_gqa": enable_gqa}
        return _ATEN._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None, **options
        )[0]
    if enable_gqa and key.shape[1] != query.shape[1]:
        key, value = (each.repeat_interleave(query.shape[1] // each.shape[1], 1) for each in (key, value))
    if attn_mask is None and query.dtype is not torch.float32:
        flash = _ATEN._scaled_dot_product_flash_attention
        return flash(query, key, value, dropout_p, is_causal, False, scale=scale)[0]
    bias = None if attn_mask is None else _bias(attn_mask, query, key)
    efficient = _ATEN._scaled_dot_product_efficient_attention
    return efficient(query, key, value, bias, False, dropout_p, is_causal, scale=scale)[0]


def _is_fusible(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor | None) -> bool:
    width = query.shape[-1]
    same = all(each.dim() == 4 and each.shape[-1] == width for each in (query, key, value))
    known = isinstance(width, int) and width <= _MOST and width % _ALIGNED == 0
    if not same or not known or query.dtype not in (torch.float16, torch.bfloat16, torch.float32):
        return False
    if any(each.stride(-1) != 1 for each in (query, key, value)):
        return False
    if mask is None:
        return True
    length = key.shape[-2]
    return not mask.requires_grad and isinstance(length, int) and length % _ALIGNED == 0


def _bias(mask: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """What is added to the products, of all heads; True of a mask of booleans takes part."""
    if mask.dtype is torch.bool:
        zero = torch.zeros((), dtype=query.dtype, device=query.device)
        mask = torch.where(mask, zero, float("-inf"))
    return mask.to(query.dtype).expand(*query.shape[:-1], key.shape[-2])
