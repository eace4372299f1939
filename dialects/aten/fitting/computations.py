"""Reductions, scans, products, losses, normalization, pooling, resampling, and tensors made of numbers."""

from __future__ import annotations

from collections.abc import Sequence

from ...parametric import parametric
from ...sym import ONE, Expr, as_expr
from .sizes import (
    Arguments,
    Results,
    Rule,
    Size,
    Sizes,
    broadcast,
    dimensions,
    of_broadcast,
    replaced,
    require,
    require_broadcast_to,
    require_same,
    same_as,
    text,
    without,
)
from .views import SAME


def _reduction(a: Arguments) -> Results:
    """No dimensions, or an empty list of them, are all."""
    shape = a.shape("self")
    name = "dims" if a.has("dims") else "dim"
    given = a.get(name)
    dims = range(len(shape)) if given is None or given == () else dimensions(a.integers(name), len(shape))
    return [without(shape, dims, bool(a.get("keepdim", False)))] * len(a.op.results)


def _along(a: Arguments) -> Results:
    """A scan, or a softmax, along one dimension."""
    shape = a.shape("self")
    a.dim(len(shape))
    return [shape] * len(a.op.results)


def _softmax_backward(a: Arguments) -> Results:
    shape = a.shape("output")
    require_same(a.shape("grad_output"), shape, "the gradient")
    a.dim(len(shape))
    return [shape]


@parametric
def _made(a: Arguments, name: str) -> Results:
    sizes = a.sizes(name)
    wrong = [size for size in sizes if size is not None and (size.as_int() or 0) < 0]
    require(not wrong, f"a size of {text(wrong)}")
    for other in ("stride", "physical_layout"):
        if a.has(other):
            require(len(a.sizes(other)) == len(sizes), f"{other} is not as long as {text(sizes)}")
    if a.has("physical_layout"):
        dimensions(a.integers("physical_layout"), len(sizes))
    return [sizes]


def _eye(a: Arguments) -> Results:
    rows = as_expr(a["n"])
    return [(rows, as_expr(a["m"]) if a.has("m") else rows)]


def _arange(a: Arguments) -> Results:
    given = a.get("start", 0), a["end"], a.get("step", 1)
    numbers = [each.as_int() if isinstance(each, Expr) else each for each in given]
    start, end, step = (each if isinstance(each, int) else None for each in numbers)
    if start is None or end is None or step is None:
        return [(None,)]
    require(step != 0 and (end - start) * step >= 0, f"from {start} to {end} by {step}")
    return [(as_expr(-((start - end) // step)),)]


def _loss(a: Arguments) -> Results:
    shape = broadcast(*a.tensors())
    return [shape if a.integer("reduction") == 0 else ()]


def _class_loss(a: Arguments) -> Results:
    return [_of_target(a), ()]


def _of_target(a: Arguments) -> Sizes:
    """The sizes of a loss by classes, which are the second dimension of `self`, or the only one."""
    shape, target = a.shape("self"), a.shape("target")
    image = a.op.packet.startswith("nll_loss2d")
    require(len(shape) == 4 if image else len(shape) in (1, 2), f"scores of {text(shape)}")
    places = (shape[0], *shape[2:]) if len(shape) > 1 else ()
    if len(shape) > 1 or target:
        require_same(target, places or (ONE,), "the target")
    weight = a.shape_or_none("weight")
    if weight is not None:
        require_same(weight, (shape[1 if len(shape) > 1 else 0],), "the weight")
    if a.integer("reduction") != 0:
        return ()
    return places if len(shape) > 1 else target


def _class_loss_backward(a: Arguments) -> Results:
    require_same(a.shape("grad_output"), _of_target(a), "the gradient")
    return [a.shape("self")]


def _inner(a: Arguments) -> tuple[Sizes, Sizes]:
    """The dimensions that are normalized away, and those that stay, of a layer norm; weights fit the former."""
    shape, normalized = a.shape("input"), a.sizes("normalized_shape")
    rank = len(shape) - len(normalized)
    require(0 <= rank < len(shape), f"{len(normalized)} dimensions of {text(shape)} are normalized")
    require_same(shape[rank:], normalized, "what is normalized")
    for name in ("weight", "bias"):
        given = a.shape_or_none(name) if a.has(name) else None
        if given is not None:
            require_same(given, normalized, name)
    return normalized, (*shape[:rank], *[ONE] * len(normalized))


def _layer_norm(a: Arguments) -> Results:
    statistics = _inner(a)[1]
    return [a.shape("input"), *[statistics] * (len(a.op.results) - 1)]


def _layer_norm_backward(a: Arguments) -> Results:
    normalized, statistics = _inner(a)
    require_same(a.shape("grad_out"), a.shape("input"), "the gradient")
    for name in ("mean", "rstd"):
        if a.has(name):
            require_same(a.shape(name), statistics, name)
    return [a.shape("input"), *[normalized] * (len(a.op.results) - 1)]


def _groups(a: Arguments) -> tuple[Sizes, Sizes]:
    """The sizes of statistics and of weights of a group norm."""
    shape = a.shape("input")
    rows, channels, pixels, groups = (as_expr(a[name]) for name in ("N", "C", "HxW", "group"))
    require(len(shape) > 1, f"a group norm of {text(shape)}")
    require_same(shape[:2], (rows, channels), "the first dimensions of the input")
    inner = ONE
    for size in shape[2:]:
        inner = inner * size
    require_same((inner,), (pixels,), "the number of pixels")
    count, parts = channels.as_int(), groups.as_int()
    if count is not None and parts is not None:
        require(parts > 0 and count % parts == 0, f"{parts} groups of {count} channels")
    for name in ("weight", "bias"):
        given = a.shape_or_none(name) if a.has(name) else None
        if given is not None:
            require_same(given, (channels,), name)
    return (rows, groups), (channels,)


def _group_norm(a: Arguments) -> Results:
    statistics = _groups(a)[0]
    return [a.shape("input"), statistics, statistics]


def _group_norm_backward(a: Arguments) -> Results:
    statistics, weights = _groups(a)
    require_same(a.shape("grad_out"), a.shape("input"), "the gradient")
    for name in ("mean", "rstd"):
        require_same(a.shape(name), statistics, name)
    return [a.shape("input"), weights, weights]


def _channels(a: Arguments) -> Sizes:
    """The channels of a batch norm, which all that is for each of them has."""
    shape = a.shape("input")
    require(len(shape) > 1, f"a batch norm of {text(shape)}")
    for name in ("weight", "bias", "running_mean", "running_var", "save_mean", "save_invstd"):
        given = a.shape_or_none(name) if a.has(name) else None
        if given is not None and given != (as_expr(0),):
            require_same(given, (shape[1],), name)
    return (shape[1],)


def _batch_norm(a: Arguments) -> Results:
    """Statistics that were not computed are empty."""
    channels = _channels(a)
    running = [channels if result.name.startswith("running") else None for result in a.op.schema.returns[1:]]
    return [a.shape("input"), *running]


def _batch_norm_backward(a: Arguments) -> Results:
    channels = _channels(a)
    require_same(a.shape("grad_out"), a.shape("input"), "the gradient")
    return [a.shape("input"), channels, channels]


def _spread(a: Arguments, name: str, count: int, default: Sequence[int] | None = None) -> tuple[int, ...]:
    """A list with one number for each dimension of an image, which may be written as one number, or left out."""
    given = a.integers(name) if a.has(name) else ()
    if not given and default is not None:
        return tuple(default)
    require(len(given) in (1, count), f"{name} has {len(given)} numbers for {count} dimensions")
    return given * count if len(given) == 1 else given


def _image(shape: Sequence[Expr], count: int) -> tuple[Sizes, tuple[Expr, ...]]:
    """What is before the last dimensions, and these."""
    require(len(shape) in (count + 1, count + 2), f"{text(shape)} is no image of {count} dimensions")
    return tuple(shape[: len(shape) - count]), tuple(shape[len(shape) - count :])


def _pooled(a: Arguments, count: int) -> Sizes:
    shape = a.shape("self")
    before, image = _image(shape, count)
    kernel = _spread(a, "kernel_size", count)
    stride = _spread(a, "stride", count, kernel)
    padding, dilation = _spread(a, "padding", count, [0] * count), _spread(a, "dilation", count, [1] * count)
    result: list[Size] = []
    for size, k, step, pad, spread in zip(image, kernel, stride, padding, dilation, strict=True):
        require(k > 0 and step > 0 and spread > 0, f"windows of {k} with a step of {step}, spread by {spread}")
        require(0 <= pad <= ((k - 1) * spread + 1) // 2, f"padding {pad} is more than half of the window of {k}")
        result.append(_windows(size.as_int(), k, step, pad, spread, bool(a["ceil_mode"])))
    return (*before, *result)


def _windows(size: int | None, k: int, step: int, pad: int, spread: int, up: bool) -> Size:
    if size is None:
        return None
    room = size + 2 * pad - spread * (k - 1) - 1
    count = (room + step - 1 if up else room) // step + 1
    if up and (count - 1) * step >= size + pad:
        count -= 1
    require(count > 0, f"a window of {k} does not fit in {size}")
    return as_expr(count)


def _pool(count: int) -> Rule:
    return lambda a: [_pooled(a, count)] * len(a.op.results)


@parametric
def _pool_backward(a: Arguments, count: int) -> Results:
    pooled = _pooled(a, count)
    require_same(a.shape("grad_output"), pooled, "the gradient")
    if a.has("indices"):
        require_same(a.shape("indices"), pooled, "the indices")
    return [a.shape("self")]


@parametric
def _adaptive(a: Arguments, count: int) -> Results:
    before, _ = _image(a.shape("self"), count)
    sizes = a.sizes("output_size")
    require(len(sizes) == count, f"output_size has {len(sizes)} numbers for {count} dimensions")
    return [(*before, *sizes)] * len(a.op.results)


@parametric
def _adaptive_backward(a: Arguments, count: int) -> Results:
    shape, grad = a.shape("self"), a.shape("grad_output")
    before, _ = _image(shape, count)
    require(len(grad) == len(shape), f"the gradient is {text(grad)}")
    require_same(grad[: len(before)], before, "the gradient")
    if a.has("indices"):
        require_same(a.shape("indices"), grad, "the indices")
    return [shape]


@parametric
def _resized(a: Arguments, count: int) -> Results:
    shape, sizes = a.shape("self"), a.sizes("output_size")
    require(len(shape) == count + 2, f"{text(shape)} is no batch of images of {count} dimensions")
    require(len(sizes) == count, f"output_size has {len(sizes)} numbers for {count} dimensions")
    return [(*shape[:2], *sizes)]


@parametric
def _resized_backward(a: Arguments, count: int) -> Results:
    whole, sizes = a.sizes("input_size"), a.sizes("output_size")
    require(len(whole) == count + 2 and len(sizes) == count, f"{text(whole)} resized to {text(sizes)}")
    require_same(a.shape("grad_output"), (*whole[:2], *sizes), "the gradient")
    return [whole]


def _glu(a: Arguments) -> Results:
    shape = a.shape("self")
    require(bool(shape), "a 0-d tensor has no halves")
    dim = a.dim(len(shape))
    size = shape[dim].as_int()
    require(size is None or size % 2 == 0, f"a dimension of size {size} has no halves")
    return [replaced(shape, dim, shape[dim] // 2)]


def _glu_backward(a: Arguments) -> Results:
    require_same(a.shape("grad_output"), _glu(a)[0] or (), "the gradient")
    return [a.shape("self")]


def _each(a: Arguments) -> Results:
    """An op of lists: each result is of the tensors at its place, and of a single one."""
    lists = [a.shapes(x.name) for x in a.op.schema.tensors if x.is_list]
    single = [a.shape(x.name) for x in a.op.schema.tensors if not x.is_list]
    numbers = [a[x.name] for x in a.op.schema.arguments if x.is_list and not x.is_tensor]
    lengths = {len(each) for each in (*lists, *numbers)}
    require(len(lengths) == 1, f"lists of {', '.join(map(str, sorted(lengths)))} items")
    return [broadcast(*single, *(shape for shape in items if shape is not None)) for items in zip(*lists, strict=True)]


def _each_to_number(a: Arguments) -> Results:
    return [() for _ in a.shapes("self")]


@parametric
def _product(a: Arguments, first: str, second: str, batched: bool) -> Results:
    left, right = a.shape(first), a.shape(second)
    rank = 2 + batched
    require(len(left) == len(right) == rank, f"a product of {text(left)} and {text(right)}")
    require_same(right[: rank - 1], (*left[: rank - 2], left[-1]), "the second factor, but for its columns,")
    result = (*left[:-1], right[-1])
    if a.has("self") and first != "self":
        require_broadcast_to(a.shape("self"), result, "the summand")
    return [result]


def _copied(a: Arguments) -> Results:
    require_broadcast_to(a.shape("src"), a.shape("self"), "what is copied")
    return [a.shape("self")]


#: what is computed of each tensor of a list, by the names behind `_foreach_`
_OF_LISTS = (
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min clone copy cos cosh div erf erfc exp expm1 floor "
    "frac lerp lgamma log log10 log1p log2 maximum minimum mul neg pow reciprocal round rsqrt sigmoid sign sin sinh "
    "sqrt sub tan tanh trunc zero"
)
_BATCHED, _PLAIN = True, False
RULES: dict[str, Rule] = {
    **dict.fromkeys((
        "sum", "mean", "prod", "nansum", "any", "all", "_is_any_true", "_is_all_true", "count_nonzero", "max", "amax",
        "argmax", "min", "amin", "argmin", "aminmax", "var", "var_mean", "std", "std_mean", "linalg_vector_norm",
        "norm", "logsumexp",
    ), _reduction),
    **dict.fromkeys(("cumsum", "cumprod", "cummax", "cummin", "logcumsumexp"), _along),
    **dict.fromkeys(("_softmax", "_safe_softmax", "_log_softmax"), _along),
    **dict.fromkeys(("_softmax_backward_data", "_log_softmax_backward_data"), _softmax_backward),
    **dict.fromkeys((
        "full", "new_full", "zeros", "new_zeros", "ones", "new_ones", "empty.memory_format", "new_empty",
        "empty_strided", "new_empty_strided", "empty_permuted",
    ), _made("size")),
    **dict.fromkeys((
        "full_like", "zeros_like", "ones_like", "empty_like", "zero", "fill.Scalar", "fill.Tensor",
        "bucketize.Tensor",
    ), SAME),
    "isin.Tensor_Tensor": same_as("elements"), "isin.Tensor_Scalar": same_as("elements"),
    "isin.Scalar_Tensor": lambda a: [()], "scalar_tensor": lambda a: [()], "eye": _eye, "arange": _arange,
    **dict.fromkeys(("mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy"), _loss),
    **dict.fromkeys((
        "mse_loss_backward", "smooth_l1_loss_backward", "huber_loss_backward", "soft_margin_loss_backward",
        "binary_cross_entropy_backward",
    ), of_broadcast),
    "nll_loss_forward": _class_loss, "nll_loss2d_forward": _class_loss,
    "nll_loss_backward": _class_loss_backward, "nll_loss2d_backward": _class_loss_backward,
    "native_layer_norm": _layer_norm, "_fused_rms_norm": _layer_norm,
    "native_layer_norm_backward": _layer_norm_backward, "_fused_rms_norm_backward": _layer_norm_backward,
    "native_group_norm": _group_norm, "native_group_norm_backward": _group_norm_backward,
    **dict.fromkeys((
        "_native_batch_norm_legit_no_training", "_native_batch_norm_legit_functional", "_native_batch_norm_legit",
        "_batch_norm_with_update_functional", "_batch_norm_no_update", "native_batch_norm",
    ), _batch_norm),
    "native_batch_norm_backward": _batch_norm_backward,
    "max_pool2d_with_indices": _pool(2), "max_pool3d_with_indices": _pool(3),
    "max_pool2d_with_indices_backward": _pool_backward(2), "max_pool3d_with_indices_backward": _pool_backward(3),
    "avg_pool1d": _pool(1), "avg_pool2d": _pool(2), "avg_pool3d": _pool(3),
    "avg_pool2d_backward": _pool_backward(2), "avg_pool3d_backward": _pool_backward(3),
    **dict.fromkeys(("_adaptive_avg_pool2d", "adaptive_avg_pool2d", "adaptive_max_pool2d"), _adaptive(2)),
    **dict.fromkeys(("_adaptive_avg_pool3d", "adaptive_avg_pool3d", "adaptive_max_pool3d"), _adaptive(3)),
    **dict.fromkeys(("_adaptive_avg_pool2d_backward", "adaptive_max_pool2d_backward"), _adaptive_backward(2)),
    **dict.fromkeys(("_adaptive_avg_pool3d_backward", "adaptive_max_pool3d_backward"), _adaptive_backward(3)),
    **{
        f"{name}{count}d{back}": (_resized_backward if back else _resized)(count)
        for count in (1, 2, 3) for name in ("upsample_nearest", "_upsample_nearest_exact") for back in ("", "_backward")
    },
    **{
        f"upsample_{name}{count}d{back}": (_resized_backward if back else _resized)(count)
        for name, count in (("linear", 1), ("bilinear", 2), ("trilinear", 3)) for back in ("", "_backward")
    },
    "copy_": _copied, "glu": _glu, "glu_backward": _glu_backward,
    "log_sigmoid_forward": lambda a: [a.shape("self"), None],
    "_prelu_kernel_backward": lambda a: [a.shape("self"), a.shape("self")],
    "_foreach_norm": _each_to_number, **dict.fromkeys((f"_foreach_{name}" for name in _OF_LISTS.split()), _each),
    "mm": _product("self", "mat2", _PLAIN), "bmm": _product("self", "mat2", _BATCHED),
    "addmm": _product("mat1", "mat2", _PLAIN), "baddbmm": _product("batch1", "batch2", _BATCHED),
}  # fmt: skip
