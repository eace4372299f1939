"""Small inputs for ops that are not pointwise: (overload, positional arguments, keyword arguments)."""

from __future__ import annotations

from typing import Any

import torch

inf, nan = float("inf"), float("nan")
Case = tuple[str, tuple[Any, ...], dict[str, Any]]


def arange(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """0, 1, 2, ... in a shape."""
    count = 1
    for size in shape:
        count *= size
    return torch.arange(count).reshape(shape).to(dtype)


def mixed(*shape: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    """Reproducible numbers, some of them equal, in no order."""
    generator = torch.Generator().manual_seed(seed)
    return (torch.randint(-9, 10, shape, generator=generator) / 4).to(dtype)


def ints(*values: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


def case(name: str, *args: Any, **kwargs: Any) -> Case:
    return name, args, kwargs


x234 = arange(2, 3, 4)
special = torch.tensor([[1.0, nan, 3.0, -0.0], [inf, -inf, 2.0, 2.0], [-inf, -inf, -inf, -inf], [5.0, 5.0, -1.0, 0.0]])
channels_last = mixed(2, 4, 3, 5).to(memory_format=torch.channels_last)

VIEWS = [
    case("view", x234, [6, 4]),
    case("view", x234, [4, 6]),
    case("view", x234, [2, 12]),
    case("view", x234, [3, 2, 2, 2]),
    case("view", arange(8, 1, 3), [3, 8]),
    case("view", torch.empty(0, 3), [3, 0]),
    case("view", arange(1), []),
    case("view", torch.tensor(3.0), [1, 1]),
    case("_unsafe_view", arange(2, 6), [12]),
    case("_reshape_alias", x234, [6, 4], [4, 1]),
    case("permute", x234, [2, 0, -2]),
    case("transpose.int", x234, 0, -1),
    case("t", arange(2, 3)),
    case("t", arange(3)),
    case("expand", arange(3, 1), [2, 3, 4]),
    case("expand", torch.tensor(2.0), [2, 3]),
    case("expand", arange(1, 3), [-1, 3]),
    case("slice.Tensor", x234, 1, 1, 9223372036854775807, 1),
    case("slice.Tensor", x234, 2, -3, -1, 1),
    case("slice.Tensor", arange(10), 0, 1, 8, 3),
    case("slice.Tensor", arange(10), 0, -20, 5, 2),
    case("slice.Tensor", arange(10), 0, 7, 3, 1),
    case("select.int", x234, 1, -1),
    case("select.int", arange(4), 0, 2),
    case("squeeze", arange(1, 3, 1)),
    case("squeeze.dim", arange(1, 3, 1), 0),
    case("squeeze.dims", arange(1, 3, 1), [0, 2]),
    case("unsqueeze", arange(3), -1),
    case("diagonal", arange(3, 4), 1),
    case("diagonal", x234, -1, 1, 2),
    case("unfold", arange(2, 9), 1, 3, 2),
    case("alias", arange(3).flip(0)),
    case("detach", arange(3)),
    case("split.Tensor", arange(7), 3),
    case("split_with_sizes", x234, [1, 3], 2),
    case("unbind.int", x234, 1),
    case("permute", channels_last, [0, 2, 3, 1]),
    case("flip", x234, [0, 2]),
    case("flip", torch.tensor(1.0), []),
    case("roll", arange(5), [2], [0]),
    case("roll", x234, [1, -2], [0, 2]),
    case("roll", x234, [5]),
    case("roll", torch.empty(0, 2), [1]),
    case("repeat", arange(2, 3), [2, 1, 3]),
    case("repeat", torch.tensor(2.0), [2, 2]),
    case("repeat", torch.empty(0, 3), [2, 1]),
    case("permute_copy", x234, [1, 2, 0]),
    case("slice_copy.Tensor", x234, 1, 1),
    case("select_copy.int", x234, 0, 1),
    case("view_copy", x234, [24]),
    case("view", torch.tensor([1 + 2j, 3j]), [2, 1]),
    case("slice.Tensor", arange(6).to(torch.float8_e4m3fn), 0, 2, 5),
]

CREATION = [
    case("full", [2, 3], 7),
    case("full", [], True),
    case("full", [2], 0.1, dtype=torch.float16),
    case("full", [0, 3], 1.5),
    case("full_like", arange(2, 3, dtype=torch.int32), 2.9),
    case("full_like", channels_last, 3.0),
    case("new_full", arange(2), [3], -1),
    case("zeros", [2, 2], dtype=torch.uint8),
    case("ones_like", arange(3, dtype=torch.bool)),
    case("scalar_tensor", 3),
    case("scalar_tensor", -0.0, dtype=torch.float32),
    case("fill.Scalar", arange(3), -0.0),
    case("fill.Tensor", arange(3), torch.tensor(2, dtype=torch.int64)),
    case("arange", 5),
    case("arange", 5.5),
    case("arange.start", 2, 7),
    case("arange.start_step", 10, 0, -3),
    case("arange.start_step", 0.0, 1.0, 0.1),
    case("arange.start_step", 0, 5, 2, dtype=torch.float16),
    case("arange.start_step", 1, 9, 2, dtype=torch.uint8),
    case("eye", 3),
    case("eye.m", 2, 4, dtype=torch.int32),
    case("tril", arange(3, 4), 1),
    case("triu", x234, -1),
    case("triu", arange(3, 3, dtype=torch.bool)),
    case("tril", arange(4, 2, dtype=torch.float16), -1),
    case("clone", arange(2, 3).t()),
    case("clone", arange(2, 3).t(), memory_format=torch.contiguous_format),
    case("_to_copy", torch.tensor([-1.5, 2.9, 300.0, -0.5]), dtype=torch.int32),
    case("_to_copy", torch.tensor([-1.5, 2.9, 100.0, -0.5]), dtype=torch.int8),
    case("_to_copy", torch.tensor([0.0, -0.0, nan, 0.1]), dtype=torch.bool),
    case("_to_copy", torch.tensor([1.1, 70000.0, 1e-8, nan]), dtype=torch.float16),
    case("_to_copy", torch.tensor([1.1, 3.3], dtype=torch.float16), dtype=torch.bfloat16),
    case("_to_copy", torch.tensor([1.1, 3.3], dtype=torch.bfloat16), dtype=torch.float64),
    case("_to_copy", torch.tensor([200, 255], dtype=torch.uint8), dtype=torch.float32),
    case("_to_copy", torch.tensor([200, 255], dtype=torch.uint8), dtype=torch.int8),
    case("_to_copy", torch.tensor([1 << 40, -1]), dtype=torch.int16),
    case("_to_copy", channels_last, memory_format=torch.contiguous_format),
    case("copy", arange(2, 3, dtype=torch.float16), torch.tensor([1.1, 2.2, 3.3])),
    case("where.self", torch.tensor([True, False, True]), special[0, :3], torch.tensor(1, dtype=torch.int64)),
    case("where.self", arange(3, dtype=torch.uint8), arange(2, 1), arange(3)),
    case("masked_fill.Scalar", arange(2, 3), torch.tensor([True, False, True]), -inf),
    case("masked_fill.Tensor", arange(2, 3), torch.tensor([True, False, True]), torch.tensor(2.5)),
    case("nan_to_num", special),
    case("nan_to_num", special.half(), 1.0, 2.0),
    case("nan_to_num", ints(1, 2)),
]

_reducible = [special, arange(0, 3), torch.tensor(5.0), x234.transpose(0, 2), arange(2, 3, dtype=torch.float16)]
_bytes = torch.tensor([[0, 127, 128], [255, 129, 126]], dtype=torch.uint8)
_integers = [arange(2, 3, dtype=torch.uint8) + 250, arange(2, 3, dtype=torch.int8), torch.tensor([True, False, True])]
_dims: list[tuple[str, torch.Tensor, Any]] = [
    (name, tensor, dim)
    for name in ("sum.dim_IntList", "mean.dim", "amax", "amin", "all.dims", "any.dims", "nansum",
                 "count_nonzero.dim_IntList", "logsumexp", "linalg_vector_norm", "var.correction", "std.correction")
    for tensor in _reducible
    for dim in ([-1], [0, -1] if tensor.dim() > 1 else [0])
]  # fmt: skip


def _dim_case(name: str, tensor: torch.Tensor, dim: list[int], keepdim: bool) -> Case | None:
    if name in ("amax", "amin") and tensor.numel() == 0:
        return None
    if name.startswith("count_nonzero"):
        return case(name, tensor, dim)
    if name == "linalg_vector_norm":
        return case(name, tensor, 2, dim, keepdim)
    if name.endswith("correction"):
        return case(name, tensor, dim, correction=1, keepdim=keepdim)
    return case(name, tensor, dim, keepdim)


REDUCTIONS = [
    *(c for n, t, d in _dims for k in (False, True) if (c := _dim_case(n, t, d, k)) is not None),
    *(
        case(n, t)
        for n in ("sum", "prod", "max", "min", "all", "any", "argmax", "argmin", "count_nonzero", "nansum")
        for t in (special, *_integers[:2], torch.tensor(-2.0), arange(6, dtype=torch.bfloat16))
    ),
    *(
        case(n, t, d)
        for n in ("max.dim", "min.dim", "argmax", "argmin", "prod.dim_int")
        for t in (special, x234, *_integers[:2])
        for d in (0, -1)
    ),
    *(case(n, torch.tensor([True, False, True])) for n in ("sum", "prod", "max", "min", "all", "any")),
    case("max.dim", torch.tensor([False, True, True]), 0),
    case("sum", torch.empty(0)),
    case("prod", torch.empty(0, 2)),
    case("mean", torch.empty(0)),
    case("any", torch.empty(0, dtype=torch.bool)),
    case("all", torch.empty(0)),
    case("sum", torch.full((4096,), 1.0, dtype=torch.float16)),
    case("sum", arange(4, dtype=torch.int32), dtype=torch.float32),
    case("sum.dim_IntList", x234, [1], dtype=torch.float64),
    case("sum.dim_IntList", x234, []),
    case("sum.dim_IntList", x234, None),
    case("mean", ints(1, 2, 4), dtype=torch.float32),
    case("mean", torch.full((70000,), 3.0, dtype=torch.float16)),
    *(case(name, _bytes, [1]) for name in ("amax", "amin")),
    *(case(name, _bytes.to(torch.int8), [0]) for name in ("amax", "amin")),
    case("aminmax", _bytes, dim=1),
    case("max", _bytes),
    case("min", _bytes),
    case("any.dim", arange(2, 3, dtype=torch.uint8), 1),
    case("max.dim", torch.tensor(3.0), 0),
    case("argmax", torch.tensor(3.0)),
    case("argmax", torch.tensor([1.0, nan, nan, 7.0])),
    case("argmin", torch.tensor([[1, 0], [0, 1]], dtype=torch.int16)),
    case("aminmax", special),
    case("aminmax", x234, dim=1, keepdim=True),
    case("linalg_vector_norm", special[3], 0),
    *(
        case("linalg_vector_norm", torch.tensor([[1e30], [0.05], [-1e-30], [0.0], [nan], [-inf]]), p, [1])
        for p in (-41, 0, 0.5, 2, 3)
    ),
    case("linalg_vector_norm", x234, 1, [0, 1]),
    case("linalg_vector_norm", x234, inf),
    case("linalg_vector_norm", x234, -inf, [2], True),
    case("linalg_vector_norm", x234, 3.5, [2]),
    case("linalg_vector_norm", x234.half(), 2, [2], dtype=torch.float32),
    case("norm.ScalarOpt_dim", x234, 2, [1]),
    case("norm.Scalar", x234),
    case("var.correction", torch.tensor([1e30, -1e30, 1e30])),
    case("var.correction", torch.tensor([[2.0], [3.0]]), [1]),
    case("var.correction", torch.tensor([1e5, 1e5 + 1, 1e5 + 2]), correction=0),
    case("std.correction", x234, [0, 2], correction=0.5),
    case("var_mean.correction", x234, [1], correction=2),
    case("std_mean.correction", x234.half(), keepdim=True),
    case("var.correction", torch.empty(0)),
    case("logsumexp", ints(1, 2, 3), [0]),
    case("cumsum", x234, 1),
    case("cumsum", torch.tensor(2.0), 0),
    case("cumsum", arange(3, dtype=torch.bool), 0),
    case("cumsum", torch.full((4096,), 1.0, dtype=torch.float16), 0),
    case("cumsum", arange(0, 3), 0),
    case("cumprod", special[3], 0),
    case("cumprod", arange(2, 3, dtype=torch.int8) + 1, -1, dtype=torch.int64),
    case("cummax", torch.tensor([1.0, 3.0, 3.0, nan, 2.0, nan]), 0),
    case("cummin", mixed(3, 7), 1),
    case("cummax", arange(5, dtype=torch.uint8) + 250, 0),
    case("cummin", torch.tensor(1.0), 0),
    case("logcumsumexp", special, 1),
    case("logcumsumexp", mixed(3, 4).half(), 0),
]

_w4, _b4 = mixed(4, seed=1), mixed(4, seed=2)
_var4 = mixed(4, seed=3).abs() + 0.5
image = mixed(2, 4, 3, 5)

NORMALIZATION = [
    *(
        case(n, t, d, False)
        for n in ("_softmax", "_log_softmax")
        for t in (special, x234, x234.half(), torch.tensor(1.0), torch.empty(0, 3))
        for d in (0, -1)
    ),
    case("_softmax", torch.randn(3, 5).bfloat16(), 1, False),
    case("_safe_softmax", special[1:], -1),
    case("_softmax_backward_data", mixed(3, 4), mixed(3, 4, seed=1), 1, torch.float32),
    case("_log_softmax_backward_data", mixed(3, 4), mixed(3, 4, seed=1), 0, torch.float32),
    case("native_layer_norm", mixed(2, 3, 4), [4], _w4, _b4, 1e-5),
    case("native_layer_norm", mixed(2, 3, 4), [3, 4], None, None, 1e-5),
    case("native_layer_norm", mixed(2, 3, 4).half(), [4], _w4.half(), None, 1e-5),
    case("native_layer_norm", mixed(5, 4).t(), [5], mixed(5), mixed(5), 1e-5),
    case("_fused_rms_norm", mixed(2, 3, 4), [4], _w4, None),
    case("_fused_rms_norm", mixed(2, 3, 4).bfloat16(), [4], None, 1e-6),
    case("native_group_norm", image, _w4, _b4, 2, 4, 15, 2, 1e-5),
    case("native_group_norm", mixed(2, 4), None, None, 2, 4, 1, 2, 1e-5),
    case("_native_batch_norm_legit_no_training", image, _w4, _b4, _b4, _var4, 0.1, 1e-5),
    case("_native_batch_norm_legit_no_training", channels_last, _w4, None, _b4, _var4, 0.1, 1e-5),
    case("_native_batch_norm_legit_no_training", mixed(3, 4), None, None, _b4, _var4, 0.1, 1e-5),
    case("_native_batch_norm_legit_functional", image, _w4, _b4, _b4, _var4, True, 0.1, 1e-5),
    case("_native_batch_norm_legit_functional", image, _w4, _b4, _b4, _var4, False, 0.1, 1e-5),
    case("_native_batch_norm_legit.no_stats", image, _w4, _b4, True, 0.1, 1e-5),
    case("native_batch_norm", image, _w4, _b4, _b4, _var4, False, 0.1, 1e-5),
    case("native_batch_norm", image.half(), None, None, None, None, True, 0.1, 1e-5),
]

_m231, _r231 = mixed(2, 3, 1, seed=8), mixed(2, 3, 1, seed=9).abs() + 0.5
_all = [True, True, True]
NORMALIZATION += [
    case("native_layer_norm_backward", mixed(2, 3, 4), mixed(2, 3, 4, seed=6), [4], _m231, _r231, _w4, _b4, m)
    for m in (_all, [True, False, False], [False, True, True], [False, False, True])
]
NORMALIZATION += [
    case("native_layer_norm_backward", mixed(2, 3, 4), mixed(2, 3, 4, seed=6), [4], _m231, _r231, None, None,
         [True, False, False]),
    case("native_group_norm_backward", image, mixed(2, 4, 3, 5, seed=6), mixed(2, 2), mixed(2, 2).abs() + 0.5, _w4,
         2, 4, 15, 2, _all),
    case("native_batch_norm_backward", image, mixed(2, 4, 3, 5, seed=6), _w4, _b4, _var4, _b4, _var4, True, 1e-5, _all),
    case("native_batch_norm_backward", image, mixed(2, 4, 3, 5, seed=6), _w4, _b4, _var4, _b4, _var4, False, 1e-5,
         _all),
    case("native_batch_norm_backward", mixed(5, 4), mixed(5, 4, seed=6), None, None, None, _b4, _var4, True, 1e-5,
         [True, False, False]),
]  # fmt: skip

mask = torch.tensor([[True, False, True], [False, False, True]])

GATHERS = [
    case("embedding", mixed(5, 3), torch.tensor([[0, 4], [2, 2]])),
    case("embedding", mixed(5, 3).half(), torch.tensor(1)),
    case("embedding", mixed(5, 3), torch.empty(0, dtype=torch.int64)),
    case("embedding", mixed(5, 3), ints(1, 2, dtype=torch.int32)),
    case("index.Tensor", x234, [ints(0, 1), None, ints(3, -1)]),
    case("index.Tensor", x234, [None, ints(2, -3, 0)]),
    case("index.Tensor", x234, [torch.tensor([[0], [1]]), ints(0, 2, 1)]),
    case("index.Tensor", x234, [None, torch.tensor([[0], [1]]), ints(0, 2, 1)]),
    case("index.Tensor", x234, [torch.tensor(1)]),
    case("index.Tensor", arange(3), [torch.empty(0, dtype=torch.int64)]),
    case("_unsafe_index.Tensor", x234, [None, ints(1, 1)]),
    case("index_select", x234, 2, ints(3, 0, 3)),
    case("index_select", x234, 0, torch.tensor(1)),
    case("index_select", torch.tensor(3.0), 0, torch.tensor(0)),
    case("gather", x234, 1, torch.tensor([[[0, 2]], [[1, 1]]])),
    case("gather", torch.tensor(2.0), 0, torch.tensor(0)),
    case("take", x234, torch.tensor([[0, 5], [-1, 23]])),
    case("constant_pad_nd", arange(2, 3), [1, 2], 1.5),
    case("constant_pad_nd", x234, [-1, 2, 1, 0]),
    case("constant_pad_nd", arange(2, 3, dtype=torch.int64), [0, 0, 1, 1], -7),
    case("constant_pad_nd", arange(2, 3, dtype=torch.bool), [1, 1], True),
    case("constant_pad_nd", arange(2, 3).half(), [1, 0], inf),
    case("reflection_pad1d", arange(2, 5), [3, 2]),
    case("reflection_pad2d", arange(1, 2, 4, 5), [2, 1, 3, 0]),
    case("reflection_pad3d", arange(1, 2, 2, 3, 4), [1, 1, 2, 0, 1, 1]),
    case("replication_pad1d", arange(2, 3), [2, 4]),
    case("replication_pad2d", arange(2, 4, 5), [2, 1, -1, 3]),
    case("replication_pad3d", arange(1, 2, 2, 3, 4), [1, 1, 2, 0, 1, 1]),
]

_src = mixed(2, 3, seed=5)
SCATTERS = [
    case("cat", [arange(2, 3), mixed(2, 2)], 1),
    case("cat", [arange(2), torch.empty(0), arange(3, dtype=torch.int64)]),
    case("cat", [arange(2, 3).half(), mixed(1, 3)], -2),
    case("cat", [torch.empty(0, 3), torch.empty(0, 3)]),
    case("cat", [channels_last, channels_last], 1),
    case("stack", [arange(2, 3), mixed(2, 3)], 1),
    case("slice_scatter", x234, mixed(2, 2, 4), 1, 1),
    case("slice_scatter", arange(9), mixed(3), 0, -8, 100, 3),
    case("select_scatter", x234, mixed(2, 4), 1, -2),
    case("diagonal_scatter", arange(3, 4), mixed(3), 1),
    case("diag_embed", arange(2, 3), 1),
    case("index_put", arange(5), [ints(0, -1, 2)], mixed(3)),
    case("index_put", arange(3), [ints(0, 0, 2)], mixed(3), True),
    case("index_put", x234, [None, ints(2, 0)], torch.tensor(7.0)),
    case("index_put", x234, [ints(0, 1), None, ints(3, -1)], mixed(2, 3)),
    case("index_put", arange(2, 3), [mask], torch.tensor(5.0)),
    case("index_put", arange(2, 3).half(), [mask], torch.tensor([5.0]).half(), True),
    case("index_put", x234, [None, torch.tensor([True, False, True])], torch.tensor(-1.0)),
    case("_unsafe_index_put", arange(5), [ints(1, 3)], mixed(2)),
    case("scatter.src", arange(3, 5), 0, torch.tensor([[2, 0, 1]]), mixed(2, 3)),
    case("scatter.value", arange(3, 5), 1, torch.tensor([[4], [0]]), 2.5),
    case("scatter.reduce", arange(3, 5), 1, torch.tensor([[4, 4], [0, 1]]), mixed(2, 3), reduce="multiply"),
    case("scatter.value_reduce", arange(3, 5), 1, torch.tensor([[4, 4], [0, 1]]), 2, reduce="add"),
    case("scatter_add", arange(4), 0, ints(1, 1, 3), mixed(3)),
    case("scatter_add", torch.tensor(1.0), 0, torch.tensor(0), torch.tensor(2.0)),
    *(
        case("scatter_reduce.two", a, 0, ints(1, 1, 3, 1), b, r, include_self=i)
        for a, b in ((arange(4), mixed(4)), (arange(4, dtype=torch.int32), ints(5, -3, 2, 4, dtype=torch.int32)))
        for r in ("sum", "prod", "mean", "amax", "amin")
        for i in (True, False)
    ),
    *(
        case("index_reduce", arange(3, 2), 0, ints(1, 1, 2), mixed(3, 2), r, include_self=i)
        for r in ("prod", "mean", "amax", "amin")
        for i in (True, False)
    ),
    case("index_add", arange(3, 4), 1, ints(3, 0, 3), mixed(3, 3)),
    case("index_add", arange(3), 0, ints(0, 0, 2), mixed(3), alpha=2),
    case("index_copy", arange(3, 4), 0, ints(2, 0), mixed(2, 4)),
    case("index_fill.int_Scalar", arange(3, 4), 1, ints(-1, 1), 9),
    case("index_fill.int_Tensor", arange(3, 4), 0, ints(0), torch.tensor(1.5)),
    case("embedding_dense_backward", mixed(2, 2, 3), torch.tensor([[0, 4], [2, 2]]), 5, -1, False),
    case("embedding_dense_backward", mixed(2, 2, 3), torch.tensor([[0, 4], [2, 2]]), 5, 2, False),
    case("reflection_pad1d_backward", mixed(2, 10), arange(2, 5), [3, 2]),
    case("reflection_pad2d_backward", mixed(1, 2, 7, 8), arange(1, 2, 4, 5), [2, 1, 3, 0]),
    case("replication_pad2d_backward", mixed(2, 6, 8), arange(2, 4, 5), [2, 1, -1, 3]),
]
