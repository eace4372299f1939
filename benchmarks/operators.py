"""Common operators at common sizes: `python benchmarks/windows.py --operators`.

Reductions over each dimension, norms in both layouts, scans, tables and scatters, small products, moved pieces, images
of bytes, 16 bits, losses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
Case = tuple[Callable[..., Any], tuple[Tensor, ...], bool]
Named = tuple[str, Case]


def _both(name: str, function: Callable[..., Any], *inputs: Tensor) -> Iterator[Named]:
    """Forward alone, and a step with the backward pass."""
    yield name, (function, inputs, False)
    yield f"{name}_step", (function, inputs, True)


def _along(x: Tensor) -> Iterator[Named]:
    """What is reduced, scanned or joined along each dimension."""
    for d in range(x.dim()):
        functions: dict[str, Callable[..., Any]] = {
            "sum": lambda x, d=d: x.sum(d),
            "prod": lambda x, d=d: x.prod(d),
            "var": lambda x, d=d: x.var(d),
            "argmax": lambda x, d=d: x.argmax(d),
            "max": lambda x, d=d: x.max(d).values,
            "logsumexp": lambda x, d=d: x.logsumexp(d),
            "softmax": lambda x, d=d: x.softmax(d),
            "cumsum": lambda x, d=d: x.cumsum(d),
            "cummax": lambda x, d=d: x.cummax(d).values,
            "flip": lambda x, d=d: x.flip(d),
            "cat": lambda x, d=d: torch.cat((x, x * 2), d),
            "stack": lambda x, d=d: torch.stack((x, x * 2), d),
            "split": lambda x, d=d: tuple(part * 2 for part in x.chunk(4, d)),
        }
        for name, function in functions.items():
            yield f"{name}_{d}", (function, (x,), False)
        yield f"softmax_{d}_step", (functions["softmax"], (x,), True)
        yield f"var_{d}_step", (functions["var"], (x,), True)


def _norms(image: Tensor, rows: Tensor) -> Iterator[Named]:
    for label, x in (("", image), ("_last", image.contiguous(memory_format=torch.channels_last))):
        yield from _both(f"group_norm{label}", lambda x: F.group_norm(x, 8), x)
        yield from _both(f"instance_norm{label}", F.instance_norm, x)
        yield from _both(f"batch_norm{label}", lambda x: F.batch_norm(x, None, None, training=True), x)
    yield from _both("layer_norm", lambda x: F.layer_norm(x, x.shape[-1:]), rows)
    yield from _both("layer_norm_image", lambda x: F.layer_norm(x, x.shape[1:]), image)
    yield from _both("rms_norm", lambda x: F.rms_norm(x, x.shape[-1:]), rows)
    yield "layer_norm_bf16", (lambda x: F.layer_norm(x, x.shape[-1:]), (rows.bfloat16(),), False)
    yield from _both("normalize", lambda x: F.normalize(x, dim=1), image)


def _tables(rows: Tensor) -> Iterator[Named]:
    table, which = torch.randn(1024, 256), torch.randint(0, 1024, (4096,))
    begins, updates = torch.arange(0, 4096, 16), torch.randn(4096, 256)
    places = torch.randint(0, 1024, (1024, 1024))
    square = torch.randn(1024, 1024)
    functions: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
        "embedding": (F.embedding, (which, table)),
        "embedding_bag": (F.embedding_bag, (which, table, begins)),
        "one_hot": (lambda i: F.one_hot(i, 1024), (which,)),
        "index_select_0": (lambda x, i: x.index_select(0, i), (table, which)),
        "index_select_1": (lambda x, i: x.index_select(1, i % 256), (table, which)),
        "gather_0": (lambda x, i: x.gather(0, i), (square, places)),
        "gather_1": (lambda x, i: x.gather(1, i), (square, places)),
        "index_add": (lambda x, i, u: x.index_add(0, i, u), (table, which, updates)),
        "index_put": (lambda x, i, u: x.index_put((i,), u), (table, torch.randperm(1024), updates[:1024])),
        "scatter_add": (lambda x, i, u: x.scatter_add(0, i[:, None].expand(-1, 256), u), (table, which, updates)),
        "rows_of_images": (lambda x, i: x[:, i % 512], (rows, which[:256])),
    }
    for name, (function, inputs) in functions.items():
        yield name, (function, inputs, False)


def _products() -> Iterator[Named]:
    small = torch.randn(2048, 8, 8)
    yield from _both("bmm_8", torch.matmul, small, small + 1)
    vectors = torch.randn(256, 64)
    yield from _both("outer", lambda x, y: torch.einsum("bi,bj->bij", x, y), vectors, vectors + 1)
    volume = torch.randn(2, 16, 16, 32, 32)
    yield (
        "conv3d_depthwise",
        (lambda x, w: F.conv3d(x, w, padding=1, groups=16), (volume, torch.randn(16, 1, 3, 3, 3)), False),
    )
    yield from _both("max_pool3d_3_s2", lambda x: F.max_pool3d(x, 3, 2, 1), volume)
    yield from _both("avg_pool3d_2", lambda x: F.avg_pool3d(x, 2), volume)
    yield from _both("linear_by_2", lambda x: F.interpolate(x, scale_factor=2, mode="linear"), torch.randn(8, 512, 256))
    yield from _both("trilinear_by_2", lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), volume)
    yield "pad_circular_3d", (lambda x: F.pad(x, (1,) * 6, "circular"), (volume,), False)


def _images_of_bytes() -> Iterator[Named]:
    image = torch.randint(0, 256, (4, 224, 224, 3), dtype=torch.uint8)
    mean, scale = torch.randn(3, 1, 1), torch.rand(3, 1, 1) + 1
    rows = torch.randint(0, 256, (1024, 1024), dtype=torch.uint8)
    functions: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
        "normalised": (
            lambda x, m, s: ((x.permute(0, 3, 1, 2).float() / 255 - m) / s).contiguous(),
            (image, mean, scale),
        ),
        "bytes_flip": (lambda x: x.flip(2), (image,)),
        "bytes_threshold": (lambda x: (x > 127).to(torch.uint8) * 255, (image,)),
        "bytes_amax": (lambda x: x.amax(-1), (rows,)),
        "bytes_argmax": (lambda x: x.argmax(-1), (rows,)),
        "bytes_sum": (lambda x: x.sum(-1), (rows,)),
        "bytes_all": (lambda x: (x > 0).all(0), (rows,)),
    }
    for name, (function, inputs) in functions.items():
        yield name, (function, inputs, False)


def _elementwise(square: Tensor) -> Iterator[Named]:
    half, other = square.bfloat16(), square + 1
    functions: dict[str, tuple[Callable[..., Any], tuple[Tensor, ...]]] = {
        "tril": (torch.tril, (square,)),
        "clamp": (lambda x: x.clamp(-1, 1), (square,)),
        "gelu": (F.gelu, (square,)),
        "sin_cos": (lambda x: x.sin() * x.cos().pow(3), (square,)),
        "where": (lambda x, y: torch.where(x > 0, x, y), (square, other)),
        "to_bf16": (lambda x: x.bfloat16(), (square,)),
        "bf16_add": (lambda x: x + x, (half,)),
        "bf16_sum": (lambda x: x.sum(-1), (half,)),
        "transpose": (lambda x: x.t().contiguous(), (square,)),
        "rot90": (lambda x: x.rot90(1, (0, 1)), (square,)),
        "diff": (lambda x: x.diff(dim=-1), (square,)),
        "cross_entropy": (lambda x: F.cross_entropy(x, x.argmax(-1)), (square,)),
    }
    for name, (function, inputs) in functions.items():
        yield name, (function, inputs, False)


def cases() -> Sequence[Named]:
    """(name, (function, inputs, whether with the backward pass)) of everything."""
    rows, image = torch.randn(8, 512, 256), torch.randn(4, 64, 56, 56)
    parts = (
        _along(rows),
        _norms(image, rows),
        _tables(rows),
        _products(),
        _images_of_bytes(),
        _elementwise(torch.randn(1024, 1024)),
    )
    return [case for part in parts for case in part]
