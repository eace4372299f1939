"""Searches in short lists, and ops on lists of tensors."""

from __future__ import annotations

import torch

from .structured_cases import arange, case, inf, ints, mixed, nan, special, x234

SEARCHES = [
    case("isin.Tensor_Tensor", x234, torch.tensor([[3, 5], [7, 30]])),
    case("isin.Tensor_Tensor", special, torch.tensor([nan, 2.0, inf]), invert=True),
    case("isin.Tensor_Scalar", ints(1, 2, 3), 2),
    case("bucketize.Tensor", special, torch.tensor([-1.0, 0.0, 2.0, 5.0])),
    case("bucketize.Tensor", ints(1, 2, 3, 4), ints(2, 3), right=True, out_int32=True),
    case("_unsafe_masked_index", arange(4), torch.tensor([True, False]), [ints(0, 9)], 1.5),
    case(
        "_unsafe_masked_index_put_accumulate", arange(4), torch.tensor([True, False, True]), [ints(0, 9, 0)], mixed(3)
    ),
]

_two = [arange(2, 3), mixed(4)]
FOREACH = [
    case("_foreach_add.List", _two, [mixed(2, 3), mixed(4, seed=1)], alpha=2),
    case("_foreach_add.Scalar", _two, 1.5),
    case("_foreach_mul.ScalarList", _two, [2.0, 3]),
    case("_foreach_mul.Tensor", _two, torch.tensor(2.0)),
    case("_foreach_sqrt", _two),
    case("_foreach_addcdiv.ScalarList", _two, _two, [mixed(2, 3) + 9, mixed(4) + 9], [0.5, 2.0]),
    case("_foreach_addcmul.Scalar", _two, _two, [mixed(2, 3), mixed(4)], 0.5),
    case("_foreach_lerp.Scalar", _two, [mixed(2, 3), mixed(4)], 0.25),
    case("_foreach_lerp.List", _two, [mixed(2, 3), mixed(4)], [mixed(2, 3), mixed(4)]),
    case("_foreach_pow.List", _two, [mixed(2, 3), mixed(4)]),
    case("_foreach_pow.ScalarAndTensor", 2, _two),
    case("_foreach_maximum.Scalar", _two, 1),
    case("_foreach_clamp_max.List", _two, [mixed(2, 3), mixed(4)]),
    case("_foreach_norm.Scalar", _two),
    case("_foreach_norm.Scalar", _two, 1),
    case("_foreach_copy", _two, [mixed(2, 3).half(), mixed(4)]),
    case("_foreach_zero", _two),
    case("log_sigmoid_forward", special),
    case("log_sigmoid_backward", mixed(3, 4), mixed(3, 4, seed=1), torch.exp(-mixed(3, 4, seed=1).abs())),
    case("_prelu_kernel_backward", mixed(3, 4), mixed(3, 4, seed=1), mixed(4)),
    case("_foreach_neg", [ints(1, -2), torch.tensor(-0.0)]),
]
