"""Kinds of attention as people write them, with the softmax in float32, and what flex_attention is told of them.

Eleven are compared with others (`loop_attention.NAMES`); the rest are kinds of masks for recorded measurements.

`VARIANTS[name]` takes (q, k, v, *extra) of batch x heads x length x head size; `extra_of` makes the other tensors, of
the device and dtype of q. Nothing here knows a fused kernel: that is what is measured.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

Tensor = torch.Tensor
WINDOW = 256
PREFIX = 128
CAP = 30.0
GROUPS = 4
HIDDEN = float("-inf")


def _places(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """The places of queries, as a column, and of keys, as a row."""
    rows, columns = (torch.arange(x.shape[-2], device=x.device) for x in (q, k))
    return rows[:, None], columns[None, :]


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])


def _weighted(scores: Tensor, v: Tensor) -> Tensor:
    return torch.softmax(scores.float(), -1).to(v.dtype) @ v


def full(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Every key for every query."""
    return _weighted(_scores(q, k), v)


def causal(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keys that are no later than the query."""
    row, column = _places(q, k)
    return _weighted(_scores(q, k).masked_fill(column > row, HIDDEN), v)


def window(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The last `WINDOW` of these."""
    row, column = _places(q, k)
    seen = (column <= row) & (row - column < WINDOW)
    return _weighted(_scores(q, k).masked_fill(~seen, HIDDEN), v)


def alibi(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, with a penalty by distance, one slope a head. Press et al., 2021."""
    row, column = _places(q, k)
    heads = q.shape[1]
    slopes = torch.exp2(-8.0 * torch.arange(1, heads + 1, device=q.device) / heads)
    scores = _scores(q, k) + slopes[:, None, None] * (column - row)
    return _weighted(scores.masked_fill(column > row, HIDDEN), v)


def softcap(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, with scores between -`CAP` and `CAP`, as Gemma 2 has them."""
    row, column = _places(q, k)
    scores = torch.tanh(_scores(q, k) / CAP) * CAP
    return _weighted(scores.masked_fill(column > row, HIDDEN), v)


def document(q: Tensor, k: Tensor, v: Tensor, ids: Tensor) -> Tensor:
    """Causal within documents that lie behind each other; `ids` says of which document a place is."""
    row, column = _places(q, k)
    seen = (column <= row) & (ids[:, None] == ids[None, :])
    return _weighted(_scores(q, k).masked_fill(~seen, HIDDEN), v)


def prefix(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, but that all see the first `PREFIX` keys."""
    row, column = _places(q, k)
    return _weighted(_scores(q, k).masked_fill(~((column <= row) | (column < PREFIX)), HIDDEN), v)


def added(q: Tensor, k: Tensor, v: Tensor, bias: Tensor) -> Tensor:
    """With a tensor added to the scores, one a head."""
    return _weighted(_scores(q, k) + bias, v)


def relative(q: Tensor, k: Tensor, v: Tensor, table: Tensor) -> Tensor:
    """With a number for each head and distance added to the scores."""
    row, column = _places(q, k)
    return _weighted(_scores(q, k) + table[:, column - row + (q.shape[-2] - 1)], v)


def grouped(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal, `GROUPS` query heads for each head of keys and values."""
    k, v = (x[:, ::GROUPS].repeat_interleave(GROUPS, dim=1) for x in (k, v))
    return causal(q, k, v)


def differential(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The difference of two softmaxes, of halves of the heads' size. Ye et al., 2024."""
    (first, second), (one, other) = q.chunk(2, -1), k.chunk(2, -1)
    weights = [torch.softmax(_scores(a, b).float(), -1) for a, b in ((first, one), (second, other))]
    return (weights[0] - 0.5 * weights[1]).to(v.dtype) @ v


def scattered(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Every second key: a mask by places that hides no step of a loop over keys."""
    row, column = _places(q, k)
    return _weighted(_scores(q, k).masked_fill((row + column) % 2 != 0, HIDDEN), v)


def distance(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """With a penalty by distance to both sides."""
    row, column = _places(q, k)
    return _weighted(_scores(q, k) - 0.1 * (row - column).abs(), v)


def called(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A window of `WINDOW`, as an argument of torch's own call."""
    row, column = _places(q, k)
    seen = (column <= row) & (row - column < WINDOW)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def called_distance(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """A penalty by distance, as an argument of torch's own call."""
    row, column = _places(q, k)
    bias = (-0.1 * (row - column).abs()).to(q.dtype)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def blocks(q: Tensor, k: Tensor, v: Tensor, ids: Tensor) -> Tensor:
    """Within documents, to both sides."""
    return _weighted(_scores(q, k).masked_fill(ids[:, None] != ids[None, :], HIDDEN), v)


def padded(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Keys of `seen` alone, a row of truths for each sequence, as models of transformers hide padding."""
    return _weighted(_scores(q, k).masked_fill(~seen[:, None, None], torch.finfo(q.dtype).min), v)


def masked(q: Tensor, k: Tensor, v: Tensor, seen: Tensor) -> Tensor:
    """Under a matrix of truths that is given."""
    return _weighted(_scores(q, k).masked_fill(~seen, HIDDEN), v)


VARIANTS: dict[str, Callable[..., Tensor]] = {
    f.__name__: f
    for f in (
        full, causal, window, alibi, softcap, document, prefix, added, relative, grouped, differential,
        scattered, distance, blocks, padded, masked, called, called_distance,
    )
}  # fmt: skip


def extra_of(name: str, q: Tensor) -> list[Tensor]:
    """The tensors beside queries, keys and values."""
    _, heads, length, _ = q.shape
    generator = torch.Generator(q.device).manual_seed(1)
    if name in ("document", "blocks"):
        return [torch.arange(length, device=q.device) * 5 // length]
    if name == "padded":
        return [torch.rand(q.shape[0], length, device=q.device, generator=generator) < 0.8]
    if name == "masked":
        return [torch.rand(length, length, device=q.device, generator=generator) < 0.5]
    if name == "added":
        return [torch.randn(heads, length, length, device=q.device, generator=generator).to(q.dtype)]
    if name == "relative":
        return [torch.randn(heads, 2 * length - 1, device=q.device, generator=generator).to(q.dtype)]
    return []


@dataclass(frozen=True)
class Flex:
    """What flex_attention is told: functions of (score,) batch, head, query, key, and whether heads are grouped."""

    score: Callable[..., Any] | None = None
    mask: Callable[..., Any] | None = None
    grouped: bool = False


def flex_of(name: str, q: Tensor, extra: Sequence[Tensor]) -> Flex | None:
    """The same variant for flex_attention; None for what it cannot say."""

    def is_past(b: Any, h: Any, i: Any, j: Any) -> Any:
        return j <= i

    heads, length = q.shape[1:3]
    found = {
        "full": Flex(),
        "causal": Flex(mask=is_past),
        "window": Flex(mask=lambda b, h, i, j: (j <= i) & (i - j < WINDOW)),
        "alibi": Flex(lambda s, b, h, i, j: s + torch.exp2(-8.0 * (h + 1) / heads) * (j - i), is_past),
        "softcap": Flex(lambda s, b, h, i, j: torch.tanh(s / CAP) * CAP, is_past),
        "document": Flex(mask=lambda b, h, i, j: (j <= i) & (extra[0][i] == extra[0][j])),
        "prefix": Flex(mask=lambda b, h, i, j: (j <= i) | (j < PREFIX)),
        "added": Flex(lambda s, b, h, i, j: s + extra[0][h, i, j]),
        "relative": Flex(lambda s, b, h, i, j: s + extra[0][h, j - i + length - 1]),
        "grouped": Flex(mask=is_past, grouped=True),
    }
    return found.get(name)
