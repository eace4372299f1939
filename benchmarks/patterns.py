"""Memory-bound patterns that compilers are judged by: `build(name, rows, dtype, device)` gives (function, inputs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Built = tuple[Callable[..., Any], tuple[torch.Tensor, ...]]
Randn = Callable[..., torch.Tensor]


def softmax(randn: Randn, rows: int) -> Built:
    """Softmax over rows of 4096."""
    return lambda x: F.softmax(x, -1), (randn(rows, 4096),)


def layer_norm(randn: Randn, rows: int) -> Built:
    """Layer norm of a residual sum, width 4096."""
    w, b = randn(4096), randn(4096)
    return lambda x, r, w, b: F.layer_norm(x + r, (4096,), w, b), (randn(rows, 4096), randn(rows, 4096), w, b)


def rms_norm(randn: Randn, rows: int) -> Built:
    """RMS norm of a residual sum, width 4096, written out as models do."""

    def f(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        h = (x + r).float()
        return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w

    return f, (randn(rows, 4096), randn(rows, 4096), randn(4096))


def bias_gelu(randn: Randn, rows: int) -> Built:
    """Residual + gelu(x + bias); the dropout is in eval mode."""
    return (
        lambda x, b, r: r + F.dropout(F.gelu(x + b), 0.1, training=False),
        (randn(rows, 4096), randn(4096), randn(rows, 4096)),
    )


def swiglu(randn: Randn, rows: int) -> Built:
    """silu(a) * b, width 11008."""
    return lambda a, b: F.silu(a) * b, (randn(rows, 11008), randn(rows, 11008))


def cross_entropy(randn: Randn, rows: int) -> Built:
    """Cross entropy over 32000 classes, half the rows."""
    n = max(rows // 2, 1)
    target = torch.randint(0, 32000, (n,), generator=torch.Generator().manual_seed(1)).to(randn(1).device)
    return lambda x, t: F.cross_entropy(x.float(), t), (randn(n, 32000), target)


def rope(randn: Randn, rows: int) -> Built:
    """Rotary embedding of q and k with 32 heads of 128; rows // 8 positions, batch 8 at most."""
    batch = 8 if rows >= 8192 else 1
    length = rows // 8

    def rotate(x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return torch.cat((-b, a), -1)

    def f(q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return q * cos + rotate(q) * sin, k * cos + rotate(k) * sin

    shape = (batch, 32, length, 128)
    return f, (randn(*shape), randn(*shape), randn(length, 128), randn(length, 128))


def batch_norm(randn: Randn, rows: int) -> Built:
    """Batch norm in eval mode and relu on (rows // 128, 256, 56, 56)."""
    n = max(rows // 128, 1)
    stats = (randn(256), randn(256).abs() + 0.5, randn(256), randn(256))
    return (
        lambda x, mean, var, w, b: F.relu(F.batch_norm(x, mean, var, w, b, False)),
        (randn(n, 256, 56, 56), *stats),
    )


def group_norm(randn: Randn, rows: int) -> Built:
    """Group norm with 32 groups and silu on (rows // 512, 320, 64, 64)."""
    n = max(rows // 512, 1)
    return lambda x, w, b: F.silu(F.group_norm(x, 32, w, b)), (randn(n, 320, 64, 64), randn(320), randn(320))


def square_sum(randn: Randn, rows: int) -> Built:
    """(x * x).sum() over everything, width 8192."""
    return lambda x: (x * x).sum(), (randn(rows, 8192),)


def column_sum(randn: Randn, rows: int) -> Built:
    """tanh(x).sum(0), width 2048, four times the rows."""
    return lambda x: torch.tanh(x).sum(0), (randn(rows * 4, 2048),)


def transpose_add(randn: Randn, rows: int) -> Built:
    """x + y.t() of a square matrix; at least 2048."""
    n = max(rows, 2048)
    return lambda x, y: x + y.t(), (randn(n, n), randn(n, n))


def cat_relu(randn: Randn, rows: int) -> Built:
    """relu(cat(x, 2y)) + 1, width 2048 each."""
    return lambda x, y: F.relu(torch.cat((x, 2 * y), 1)) + 1, (randn(rows, 2048), randn(rows, 2048))


PATTERNS: dict[str, Callable[[Randn, int], Built]] = {
    f.__name__: f
    for f in (
        softmax, layer_norm, rms_norm, bias_gelu, swiglu, cross_entropy, rope, batch_norm, group_norm, square_sum,
        column_sum, transpose_add, cat_relu,
    )
}  # fmt: skip


def build(name: str, rows: int = 512, dtype: torch.dtype = torch.float32, device: str = "cpu") -> Built:
    """(function, inputs) of a pattern on random data; `rows` 512 is a CPU size, 8192 the GPU baseline's."""
    generator = torch.Generator(device=device).manual_seed(0)
    return PATTERNS[name](lambda *size: torch.randn(*size, generator=generator, dtype=dtype, device=device), rows)
