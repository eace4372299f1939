"""What users write around models, one kernel or few each: `python benchmarks/windows.py --idioms`.

Images of floats and of bytes with the channels inside, blocks, transposed rows, gradients of products and of windows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

Tensor = torch.Tensor
Case = tuple[Callable[..., Any], tuple[Tensor, ...], bool]
Images = dict[str, Callable[[Tensor], Any]]

_IMAGES: Images = {
    "pixel_shuffle": lambda x: F.pixel_shuffle(x, 4),
    "channel_softmax": lambda x: x.softmax(1),
    "channel_argmax": lambda x: x.argmax(1),
    "pools": lambda x: torch.cat((x.mean((2, 3)), x.amax((2, 3))), 1),
    "instance_standard": lambda x: (x - x.mean((2, 3), True)) / (x.std((2, 3), keepdim=True) + 1e-5),
    "blocks_mean": lambda x: x.unflatten(3, (7, 8)).unflatten(2, (7, 8)).mean((3, 5)),
    "blocks_amax": lambda x: x.unflatten(3, (7, 8)).unflatten(2, (7, 8)).amax((3, 5)),
    "max_pool_8": lambda x: F.max_pool2d(x, 8),
    "patch_amax": lambda x: x[:, :, 2:34, 2:34].amax((2, 3)),
    "partition": lambda x: x.unflatten(3, (8, 7)).unflatten(2, (8, 7)).permute(0, 2, 4, 3, 5, 1).reshape(-1, 49, 64),
}
_TRAINED: Images = {
    "variation_step": lambda x: (x[:, :, 1:] - x[:, :, :-1]).abs().mean((1, 2, 3)),
    "reflect_step": lambda x: F.pad(x, (2, 2, 2, 2), mode="reflect"),
    "adaptive_max_7_step": lambda x: F.adaptive_max_pool2d(x, 7),
    "adaptive_max_5_step": lambda x: F.adaptive_max_pool2d(x, 5),
    "bilinear_down_step": lambda x: F.interpolate(x, scale_factor=0.5, mode="bilinear"),
}
_BYTES: Images = {
    "bytes_pad": lambda x: F.pad(x, (0, 0, 2, 2, 2, 2)),
    "bytes_crop": lambda x: x[:, 16:208, 16:208].contiguous(),
    "bytes_flip": lambda x: x.flip(1, 2),
    "bytes_bgr": lambda x: x.flip(-1),
    "bytes_to_float": lambda x: x.permute(0, 3, 1, 2).float().div(255).sub(0.5).div(0.5),
    "bytes_transpose": lambda x: x.transpose(1, 2).contiguous(),
}
_SQUARES: Images = {
    "transposed_softmax": lambda x: x.t().softmax(-1),
    "transposed_norm": lambda x: F.layer_norm(x.t(), (1024,)),
    "symmetric": lambda x: (x + x.t()) / 2,
    "columns": lambda x: x / x.norm(dim=0, keepdim=True),
    "sort": lambda x: x.sort(-1).values,
}


def cases() -> Iterator[tuple[str, Case]]:
    """(name, (function, inputs, whether with the backward pass)) of everything."""
    image, square = torch.randn(4, 64, 56, 56), torch.randn(1024, 1024)
    last = image.contiguous(memory_format=torch.channels_last)
    for label, x in (("", image), ("_last", last), ("_bf16", image.bfloat16())):
        for name, function in _IMAGES.items():
            yield f"{name}{label}", (function, (x,), False)
        for name, function in _TRAINED.items():
            yield f"{name}{label}", (function, (x,), True)
    pixels = torch.randint(0, 256, (4, 224, 224, 3), dtype=torch.uint8)
    for name, function in _BYTES.items():
        yield name, (function, (pixels,), False)
    for name, function in _SQUARES.items():
        yield name, (function, (square,), False)
    yield "avg_pool3d_4", (lambda x: F.avg_pool3d(x, 4), (torch.randn(2, 16, 32, 32, 32),), False)
    rows, columns = torch.randn(256, 64), torch.randn(256, 64)
    yield "outer_step", (lambda x, y: x[:, :, None] * y[:, None], (rows, columns), True)
    yield "distances_step", (lambda x, y: (x[:, None] - y[None]).pow(2).sum(-1), (rows, columns), True)
    yield "meshgrid", (lambda x: torch.stack(torch.meshgrid(x, x, indexing="ij"), -1), (square[0, :512],), False)
