"""More of what compilers make of models, one kernel or few each: `gpu_patterns.py --patterns more`.

Sizes are for 8192 rows, what a GPU is measured with; fewer rows make them smaller.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
Built = tuple[Callable[..., Any], tuple[Tensor, ...]]
Randn = Callable[..., Tensor]
#: inputs of a number of rows: shapes are those of 8192 rows, whose first size shrinks with them
Inputs = Callable[["Make"], tuple[Tensor, ...]]


class Make:
    """Inputs of a size: `make(8192, 4096)` is normal, `make.numbers(n, ...)` below n, `make.bits(...)` a mask."""

    def __init__(self, randn: Randn, rows: int) -> None:
        self.randn, self.rows = randn, rows

    def _shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return (max(shape[0] * self.rows // 8192, 1), *shape[1:])

    def __call__(self, *shape: int) -> Tensor:
        return self.randn(*self._shape(shape))

    def fixed(self, *shape: int) -> Tensor:
        """Of this size whatever the rows: weights."""
        return self.randn(*shape)

    def full(self, *shape: int) -> Tensor:
        """In float32."""
        return self(*shape).float()

    def numbers(self, below: int, *shape: int) -> Tensor:
        """Integers from 0 on."""
        return (self(*shape).float().abs() * below / 4).clamp_max(below - 1).long()

    def bits(self, *shape: int) -> Tensor:
        """One in six is true."""
        return self(*shape) > 1


def _rotate(x: Tensor) -> Tensor:
    return torch.cat((-x[..., 64:], x[..., :64]), -1)


def _normed_rope(x: Tensor, w: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    y = F.rms_norm(x, (128,), w)
    return y * cos + _rotate(y) * sin


def _pair_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2)


def _glu(x: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return a * torch.sigmoid(b)


def _quantised(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax(-1, keepdim=True).float() / 127
    return (x / scale).round().clamp(-127, 127).to(torch.int8), scale


def _adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
    return p - 1e-3 * m / (v.abs().sqrt() + 1e-8), m, v


def _images(channels_last: bool, *shape: int) -> Inputs:
    layout = torch.channels_last if channels_last else torch.contiguous_format
    return lambda make: (make(*shape).contiguous(memory_format=layout),)


def _trained(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, w, b, True)


def _gate(x: Tensor) -> tuple[Tensor, Tensor]:
    weights, experts = torch.softmax(x.float(), -1).topk(2, -1)
    return weights / weights.sum(-1, keepdim=True), experts


def _scattered_gate(x: Tensor) -> Tensor:
    weights, experts = _gate(x)
    return torch.zeros_like(x, dtype=weights.dtype).scatter(-1, experts, weights)


def _cumulative_mean(x: Tensor) -> Tensor:
    return x.cumsum(-1) / torch.arange(1, x.shape[-1] + 1, device=x.device)


def _distillation(x: Tensor, y: Tensor) -> Tensor:
    return F.kl_div(F.log_softmax(x / 2, -1), F.softmax(y / 2, -1), reduction="batchmean") * 4


def _divergence(x: Tensor, y: Tensor) -> Tensor:
    p, q = torch.softmax(y.float() / 2, -1), torch.log_softmax(x.float() / 2, -1)
    return (p * (p.log() - q)).sum() / x.shape[0]


#: kinds bound by memory that were once behind eager or Inductor: `--patterns behind`
BEHIND = (
    "column_variance", "column_standard", "column_var_mean", "adam", "cosine", "row_products", "row_distances",
    "row_polynomials", "gate", "scattered_gate", "cumulative_mean", "gated_cumulative_mean", "distillation",
    "divergence", "mse", "max_pool",
)  # fmt: skip

CASES: dict[str, tuple[Callable[..., Any], Inputs]] = {
    # elementwise
    "gelu": (lambda x: F.gelu(x), lambda m: (m(8192, 4096),)),
    "glu": (_glu, lambda m: (m(8192, 8192),)),
    "cast": (lambda x: x.float() * 2, lambda m: (m(8192, 8192),)),
    "dequantise": (lambda q, s: q.to(s.dtype) * s, lambda m: (m.numbers(127, 8192, 8192).to(torch.int8), m(8192, 1))),
    "clip_logits": (lambda x, v: torch.where(x < v, -math.inf, x), lambda m: (m(4096, 32000), m(4096, 1))),
    "triangle": (lambda x: x.tril() * 0.5, lambda m: (m(64, 1024, 1024),)),
    "adam": (_adam, lambda m: tuple(m.full(4096, 8192) for _ in range(4))),
    "one_hot": (lambda i: F.one_hot(i, 512).float(), lambda m: (m.numbers(512, 65536),)),
    "bucketize": (
        lambda x, b: torch.bucketize(x, b),
        lambda m: (m.full(16777216), torch.linspace(-3, 3, 64, device=m.fixed(1).device)),
    ),
    # places
    "permute": (lambda x: x.permute(0, 2, 1, 3).contiguous() * 2, lambda m: (m(32, 1024, 16, 128),)),
    "transpose": (lambda x: (x + 1).transpose(1, 2).contiguous(), lambda m: (m(64, 1024, 1024),)),
    "cat_rows": (lambda a, b: torch.cat((a, b)) + 1, lambda m: (m(4096, 4096), m(4096, 4096))),
    "cat_three": (
        lambda a, b, c: torch.cat((a, b * 2, c + 1), 1),
        lambda m: (m(8192, 1000), m(8192, 2000), m(8192, 1096)),
    ),
    "flip": (lambda x: x.flip(-1) + x, lambda m: (m(8192, 4096),)),
    "roll": (lambda x: x.roll(64, -1) + x, lambda m: (m(8192, 4096),)),
    "differences": (lambda x: (x[:, 1:] - x[:, :-1]) ** 2, lambda m: (m(8192, 4096),)),
    "taps": (lambda x: x[:, :-3] + x[:, 1:-2] * 2 + x[:, 2:-1] * 3 + x[:, 3:], lambda m: (m(64, 2048, 256),)),
    "pad": (lambda x: F.pad(x, (1, 1, 1, 1)) * 2, lambda m: (m(32, 128, 64, 64),)),
    "nearest": (lambda x: F.interpolate(x, scale_factor=2) + 1, lambda m: (m(32, 128, 64, 64),)),
    "bilinear": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), lambda m: (m(16, 128, 64, 64),)),
    "pair_rope": (_pair_rope, lambda m: (m(4, 2048, 32, 128), m.fixed(2048, 1, 64), m.fixed(2048, 1, 64))),
    "gather": (lambda x, i: x.gather(1, i) * 2, lambda m: (m(8192, 8192), m.numbers(8192, 8192, 4096))),
    "index_add": (
        lambda x, i, v: x.index_add(0, i, v),
        lambda m: (m.full(8192, 1024), m.numbers(m.rows, 16384), m.full(16384, 1024)),
    ),
    "scatter_add": (
        lambda x, i, v: x.scatter_add(1, i, v),
        lambda m: (m.full(4096, 4096), m.numbers(4096, 4096, 2048), m.full(4096, 2048)),
    ),
    # rows
    "add_layer_norm": (
        lambda x, r, w, b: (x + r, F.layer_norm(x + r, (4096,), w, b)),
        lambda m: (m(8192, 4096), m(8192, 4096), m.fixed(4096), m.fixed(4096)),
    ),
    "layer_norm_768": (
        lambda x, w, b: F.layer_norm(x, (768,), w, b),
        lambda m: (m(32768, 768), m.fixed(768), m.fixed(768)),
    ),
    "layer_norm_full": (
        lambda x, w, b: F.layer_norm(x, (4096,), w, b),
        lambda m: (m.full(8192, 4096), m.fixed(4096).float(), m.fixed(4096).float()),
    ),
    "embedding_norm": (
        lambda i, e, w, b: F.layer_norm(e[i], (1024,), w, b),
        lambda m: (m.numbers(50000, 32768), m.fixed(50000, 1024), m.fixed(1024), m.fixed(1024)),
    ),
    "head_norm": (lambda x, w: F.rms_norm(x, (128,), w), lambda m: (m(8192, 32, 128), m.fixed(128))),
    "head_norm_rope": (
        _normed_rope,
        lambda m: (m(4, 2048, 32, 128), m.fixed(128), m.fixed(2048, 1, 128), m.fixed(2048, 1, 128)),
    ),
    "masked_softmax": (
        lambda x, k: torch.softmax(x.masked_fill(k, -math.inf) * 0.125, -1),
        lambda m: (m(16, 16, 512, 512), m.bits(16, 1, 512, 512)),
    ),
    "short_softmax": (lambda x: torch.softmax(x, -1), lambda m: (m(1048576, 32),)),
    "outer_softmax": (lambda x: torch.softmax(x, 1), lambda m: (m(256, 128, 1024),)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), lambda m: (m(4096, 32000),)),
    "logsumexp": (lambda x: x.float().logsumexp(-1), lambda m: (m(8192, 32000),)),
    "unit_rows": (lambda x: x / x.norm(dim=-1, keepdim=True).clamp_min(1e-6), lambda m: (m(8192, 4096),)),
    "cosine": (lambda x, y: F.cosine_similarity(x, y, -1), lambda m: (m(8192, 4096), m(8192, 4096))),
    "quantise": (_quantised, lambda m: (m(8192, 4096),)),
    "cumsum": (lambda x: x.cumsum(-1), lambda m: (m(8192, 4096),)),
    "cumsum_rows": (lambda x: x.cumsum(0), lambda m: (m(4096, 4096),)),
    # reductions
    "argmax": (lambda x: x.argmax(-1), lambda m: (m(8192, 8192),)),
    "means": (lambda x: x.mean(-1), lambda m: (m(8192, 8192),)),
    "variances": (lambda x: torch.var_mean(x.float(), -1), lambda m: (m(8192, 8192),)),
    "column_max": (lambda x: x.amax(0), lambda m: (m(8192, 8192),)),
    "column_means": (lambda x: x.float().mean((0, 1)), lambda m: (m(64, 128, 4096),)),
    "tall_sum": (lambda x: x.sum(0), lambda m: (m(1048576, 64),)),
    "standardise": (
        lambda x: (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True),
        lambda m: (m.full(2048, 128, 256),),
    ),
    "column_variance": (lambda x: x.var(0), lambda m: (m(8192, 4096),)),
    "column_standard": (
        lambda x: (x - x.mean(0)) / (x.var(0) + 1e-5).sqrt(),
        lambda m: (m(8192, 4096),),
    ),
    "row_products": (lambda x, y: (x * y).sum(-1), lambda m: (m(8192, 4096), m(8192, 4096))),
    "row_distances": (lambda x, y: ((x - y) ** 2).sum(-1), lambda m: (m(8192, 4096), m(8192, 4096))),
    "gate": (_gate, lambda m: (m(32768, 64),)),
    "cumulative_mean": (_cumulative_mean, lambda m: (m(8192, 4096),)),
    "distillation": (_distillation, lambda m: (m(4096, 32000), m(4096, 32000))),
    "column_var_mean": (lambda x: torch.var_mean(x.float(), 0), lambda m: (m(8192, 4096),)),
    "row_polynomials": (lambda x: (x * x + x).sum(-1), lambda m: (m(8192, 4096),)),
    "scattered_gate": (_scattered_gate, lambda m: (m(32768, 64),)),
    "gated_cumulative_mean": (
        lambda x, y: torch.sigmoid(_cumulative_mean(x)) * y,
        lambda m: (m(8192, 4096), m(8192, 4096)),
    ),
    "divergence": (_divergence, lambda m: (m(4096, 32000), m(4096, 32000))),
    "mse": (lambda x, y: F.mse_loss(x.float(), y.float()), lambda m: (m(8192, 4096), m(8192, 4096))),
    "bce": (
        lambda x, y: F.binary_cross_entropy_with_logits(x.float(), y.sigmoid().float()),
        lambda m: (m(8192, 4096), m(8192, 4096)),
    ),
    # images
    "max_pool": (lambda x: F.max_pool2d(F.relu(x), 3, 2, 1), _images(False, 64, 64, 112, 112)),
    "max_pool_last": (lambda x: F.max_pool2d(F.relu(x), 3, 2, 1), _images(True, 64, 64, 112, 112)),
    "average_pool": (lambda x: F.adaptive_avg_pool2d(F.relu(x), 1), _images(False, 256, 1024, 14, 14)),
    "instance_norm": (lambda x: F.instance_norm(x), _images(False, 16, 256, 64, 64)),
    "batch_statistics": (
        _trained,
        lambda m: (*_images(False, 64, 256, 28, 28)(m), m.fixed(256), m.fixed(256)),
    ),
    "batch_statistics_last": (
        _trained,
        lambda m: (*_images(True, 64, 256, 28, 28)(m), m.fixed(256), m.fixed(256)),
    ),
}


def build(name: str, rows: int = 512, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Built:
    """(function, inputs) of a case on random data."""
    generator = torch.Generator(device=device).manual_seed(0)
    function, inputs = CASES[name]

    def randn(*size: int) -> Tensor:
        return torch.randn(*size, generator=generator, dtype=dtype, device=device)

    return function, inputs(Make(randn, rows))
