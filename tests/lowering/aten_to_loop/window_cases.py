"""Pools and resampling."""

from __future__ import annotations

import torch

from .structured_cases import case, channels_last, inf, mixed

_i6 = mixed(1, 2, 6, 7)


def _with_nans(*shape: int) -> torch.Tensor:
    """Few numbers, many NaNs."""
    drawn = torch.randint(0, 6, shape, generator=torch.Generator().manual_seed(1))
    return torch.tensor([0.0, 1.0, 2.0, inf, -inf, float("nan")])[drawn]


POOLS = [
    case("max_pool2d_with_indices", _i6, [2, 3]),
    case("max_pool2d_with_indices", _i6, [3, 3], [2, 2], [1, 1]),
    case("max_pool2d_with_indices", _i6, [2, 2], [2, 2], [0, 0], [2, 1], True),
    case("max_pool2d_with_indices", mixed(2, 5, 5, dtype=torch.float16), [2], [1]),
    case("max_pool2d_with_indices", channels_last, [2, 2], [1, 1]),
    case("max_pool2d_with_indices", torch.full((1, 1, 4, 4), -inf), [3, 3], [1, 1], [1, 1]),
    case("max_pool2d_with_indices", mixed(1, 4, 4).to(torch.int64), [3, 3], [1, 1], [1, 1]),
    case("max_pool2d_with_indices", (mixed(1, 4, 4) * 90).to(torch.uint8), [3, 3], [1, 1], [1, 1]),
    case("max_pool3d_with_indices", mixed(1, 2, 4, 5, 6), [2, 2, 3], [2, 1, 2], [1, 0, 1]),
    # of several NaNs the last one, in a window with infinities and equal numbers
    case("max_pool2d_with_indices", _with_nans(2, 7, 8), [3, 3], [2, 2], [1, 1], [1, 2]),
    case("max_pool2d_with_indices", _with_nans(1, 6, 7).bfloat16(), [2, 3], [1, 1]),
    case("max_pool2d_with_indices", _with_nans(1, 2, 6, 7).contiguous(memory_format=torch.channels_last), [3, 3]),
    case("max_pool3d_with_indices", _with_nans(2, 4, 5, 6), [2, 3, 3], [1, 2, 1], [0, 1, 1]),
    case("adaptive_max_pool2d", _with_nans(1, 2, 6, 7), [2, 3]),
    case("adaptive_max_pool3d", _with_nans(2, 4, 5, 6), [2, 2, 3]),
    case(
        "max_pool2d_with_indices_backward",
        mixed(1, 2, 3, 2),
        _i6,
        [2, 3],
        [2, 3],
        [0, 0],
        [1, 1],
        False,
        torch.ops.aten.max_pool2d_with_indices(_i6, [2, 3])[1],
    ),
    case("avg_pool2d", _i6, [2, 3]),
    case("avg_pool2d", _i6, [3, 3], [2, 2], [1, 1]),
    case("avg_pool2d", _i6, [3, 3], [2, 2], [1, 1], True, False),
    case("avg_pool2d", _i6, [3, 2], [2, 2], [1, 1], True, True),
    case("avg_pool2d", _i6, [3, 2], [2, 2], [1, 1], False, True, 5),
    case("avg_pool2d", channels_last.half(), [2, 2]),
    case("avg_pool3d", mixed(1, 2, 4, 5, 6), [2, 2, 3], [2, 1, 2], [1, 0, 1], False, False),
    case("avg_pool2d_backward", mixed(1, 2, 3, 4), _i6, [3, 3], [2, 2], [1, 1], False, True, None),
    case("avg_pool2d_backward", mixed(1, 2, 4, 4), _i6, [3, 3], [2, 2], [1, 1], True, False, None),
    case("avg_pool2d_backward", mixed(1, 2, 3, 2), _i6, [2, 3], [], [0, 0], False, True, 7),
    case("_adaptive_avg_pool2d", _i6, [1, 1]),
    case("_adaptive_avg_pool2d", _i6, [3, 7]),
    case("_adaptive_avg_pool2d", _i6, [4, 3]),
    case("_adaptive_avg_pool2d", _i6, [8, 9]),
    case("_adaptive_avg_pool2d", _i6, [5, 3]),  # windows of one size, which overlap
    case("_adaptive_avg_pool3d", mixed(1, 2, 4, 5, 6), [2, 3, 4]),
    case("adaptive_max_pool2d", _i6, [4, 3]),
    case("adaptive_max_pool2d", _i6, [3, 7]),
    case("adaptive_max_pool2d", _i6, [5, 6]),  # windows of one size, which overlap
    case("_adaptive_avg_pool2d_backward", mixed(1, 2, 1, 1), _i6),
    case("_adaptive_avg_pool2d_backward", mixed(1, 2, 3, 7), _i6),
    case("upsample_nearest1d", mixed(1, 2, 5), [10]),
    case("upsample_nearest2d", _i6, [12, 21]),
    case("upsample_nearest2d", _i6, [9, 10]),
    case("upsample_nearest2d", _i6, [13, 14], 2.3, 2.0),
    case("upsample_nearest2d", channels_last, [6, 10]),
    case("upsample_nearest3d", mixed(1, 2, 2, 3, 4), [4, 5, 2]),
    case("_upsample_nearest_exact2d", _i6, [12, 14]),
    case("_upsample_nearest_exact2d", _i6, [4, 10]),
    case("upsample_linear1d", mixed(1, 2, 5), [9], False),
    case("upsample_bilinear2d", _i6, [12, 11], False),
    case("upsample_bilinear2d", _i6, [12, 11], True),
    case("upsample_bilinear2d", _i6, [4, 3], False),
    case("upsample_bilinear2d", _i6, [13, 14], False, 2.3, 2.0),
    case("upsample_bilinear2d", _i6.bfloat16(), [1, 9], True),
    case("upsample_trilinear3d", mixed(1, 2, 2, 3, 4), [4, 5, 2], False),
]

POOLS += [
    case("adaptive_max_pool2d_backward", mixed(1, 2, 4, 3), _i6, torch.ops.aten.adaptive_max_pool2d(_i6, [4, 3])[1]),
    case("upsample_nearest2d_backward", mixed(1, 2, 12, 14), [12, 14], [1, 2, 6, 7]),
    case("upsample_nearest2d_backward", mixed(1, 2, 9, 10), [9, 10], [1, 2, 6, 7]),
    case("_upsample_nearest_exact1d_backward", mixed(1, 2, 9), [9], [1, 2, 6]),
    case("upsample_bilinear2d_backward", mixed(1, 2, 9, 10), [9, 10], [1, 2, 6, 7], False),
    case("upsample_linear1d_backward", mixed(1, 2, 9).half(), [9], [1, 2, 6], True),
]
