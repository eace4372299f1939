"""By which rule each ATen op's kernel in eager chooses the strides of its results.

Each rule is what ATen does, step by step, on sizes and strides that may be symbolic. Only ops of which the meta
function or the decomposition is known to differ, or that belong to a family of which one does, are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import torch

from ..dialects.parametric import parametric
from ..machines import eager
from .fx_private import is_decidable, is_true, sympy_of

#: sizes or strides, of which some may be symbolic
Numbers: TypeAlias = Sequence[Any]
#: op, arguments, keyword arguments, result -> the strides that eager gives, None where meta is right
Rule: TypeAlias = Callable[[Any, Sequence[Any], Mapping[str, Any], torch.Tensor], "Numbers | None"]


def are_alike(left: Numbers, right: Numbers) -> bool:
    """Whether two lists of sizes or strides are written alike; asks nothing of their symbols."""
    return len(left) == len(right) and all(map(_alike, left, right))


def _alike(left: Any, right: Any) -> bool:
    if isinstance(left, int) or isinstance(right, int):
        return type(left) is type(right) and left == right
    return sympy_of(left) == sympy_of(right)


def contiguous_strides(shape: Numbers) -> list[Any]:
    """Row-major; a dimension without elements counts as one."""
    return strides_in_order(shape, range(len(shape)))


def channels_last_strides(shape: Numbers) -> list[Any]:
    """Those of `channels_last` for four dimensions, of `channels_last_3d` for five."""
    return strides_in_order(shape, (0, *range(2, len(shape)), 1))


def strides_in_order(shape: Numbers, order: Iterable[int]) -> list[Any]:
    """Dense strides for dimensions in an order, the outermost in memory first."""
    strides: list[Any] = [1] * len(shape)
    step: Any = 1
    for dim in reversed(tuple(order)):
        strides[dim] = step
        step = step * (1 if is_true(shape[dim] == 0) else shape[dim])
    return strides


def is_dense_in(shape: Numbers, strides: Numbers, order: Iterable[int]) -> bool:
    """Whether dimensions follow in an order, the outermost first, without gaps; those of size 1 may have any stride."""
    expected: Any = 1
    for dim in reversed(tuple(order)):
        if is_true(shape[dim] == 1):
            continue
        if not is_true(strides[dim] == expected):
            return False
        expected = expected * shape[dim]
    return True


def is_contiguous(tensor: torch.Tensor) -> bool:
    """As Tensor.is_contiguous()."""
    shape = tensor.shape
    return any(is_true(size == 0) for size in shape) or is_dense_in(shape, tensor.stride(), range(len(shape)))


def is_channels_last(tensor: torch.Tensor) -> bool:
    """As Tensor.is_contiguous(memory_format=channels_last): of four dimensions alone."""
    return tensor.dim() == 4 and is_dense_in(tensor.shape, tensor.stride(), (0, 2, 3, 1))


def is_dense(tensor: torch.Tensor) -> bool:
    """As is_non_overlapping_and_dense: some order of dimensions has neither gaps nor overlaps."""
    shape, strides = tensor.shape, tensor.stride()
    if any(is_true(size == 0) for size in shape):
        return True
    remaining = [dim for dim, size in enumerate(shape) if not is_true(size == 1)]
    step: Any = 1
    while remaining:
        innermost = next((dim for dim in remaining if is_true(strides[dim] == step)), None)
        if innermost is None:
            return False
        remaining.remove(innermost)
        step = step * shape[innermost]
    return True


def looks_channels_last(tensor: torch.Tensor) -> bool:
    """Whether Tensor.suggest_memory_format() is channels_last or channels_last_3d: by the order of strides."""
    shape, strides = tensor.shape, tensor.stride()
    if len(shape) not in (4, 5) or is_true(strides[1] == 0):
        return False
    least: Any = 0
    for dim in (1, *reversed(range(2, len(shape))), 0):
        if is_true(shape[dim] == 0) or is_true(strides[dim] < least):
            return False
        if dim == 0 and is_true(least == strides[1]):
            return False  # all sizes are 1 but the batch: ambiguous, and then contiguous
        least = strides[dim] if is_true(shape[dim] <= 1) else strides[dim] * shape[dim]
    return True


# the rule of TensorIterator


def _memory_order(operands: Sequence[Numbers], shape: Numbers) -> list[int]:
    """Dimensions from the innermost in memory to the outermost, as TensorIterator sorts them: the first operand decides
    that has no stride 0 in either of two dimensions; of equal strides the larger dimension is further out.
    """
    order = list(reversed(range(len(shape))))
    for start in range(1, len(order)):
        place = start
        for before in reversed(range(start)):
            decision = _swap(operands, shape, order[before], order[place])
            if decision > 0:
                order[before], order[place] = order[place], order[before]
                place = before
            elif decision < 0:
                break
    return order


def _swap(operands: Sequence[Numbers], shape: Numbers, inner: int, outer: int) -> int:
    for strides in operands:
        first, second = strides[inner], strides[outer]
        if is_true(first == 0) or is_true(second == 0):
            continue
        if is_true(first < second):
            return -1
        if is_true(first > second) or is_true(shape[inner] > shape[outer]):
            return 1
    return 0


def _by_order(operands: Sequence[Numbers], shape: Numbers) -> Numbers:
    order = _memory_order(operands, shape)
    if order == list(reversed(range(len(shape)))):
        return contiguous_strides(shape)
    strides: list[Any] = [1] * len(shape)
    step: Any = 1
    for dim in order:
        strides[dim] = step
        step = step * shape[dim]
    return strides


def _expanded(own: Numbers, strides: Numbers, shape: Numbers) -> Numbers:
    """Strides of an operand of another shape over the shape of the result: 0 where it is repeated."""
    missing = len(shape) - len(own)
    repeated = [
        0 if is_true(size == 1) and not is_true(whole == 1) else stride
        for size, stride, whole in zip(own, strides, shape[missing:], strict=True)
    ]
    return [0] * missing + repeated


def elementwise_reversed(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Any:
    """TensorIterator's, where the kernel takes the tensors in the reverse order."""
    return elementwise(op, [each for each in reversed(args) if isinstance(each, torch.Tensor)], kwargs, result)


def elementwise(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Numbers | None:
    """TensorIterator's, for a result that it allocates."""
    shape = result.shape
    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    if not _can_tell(result, tensors):
        return None
    numbers = _has_number_as_operand(op, args)
    if not numbers and all(are_alike(t.shape, shape) for t in tensors):
        if all(map(is_contiguous, tensors)):
            return contiguous_strides(shape)
        if all(map(is_channels_last, tensors)):
            return channels_last_strides(shape)
        first, *others = tensors
        if all(are_alike(each.stride(), first.stride()) for each in others) and is_dense(first):
            return first.stride()
    operands = [_read_strides(each, result.dtype) for each in tensors]
    return _by_order([_expanded(t.shape, s, shape) for t, s in zip(tensors, operands, strict=True)], shape)


def _read_strides(tensor: torch.Tensor, dtype: torch.dtype) -> Numbers:
    """Strides of an operand as the loop reads it: one that becomes floating is converted before, to a dense one."""
    if dtype.is_floating_point and not tensor.dtype.is_floating_point and tensor.dtype != torch.bool:
        return dense_strides(tensor)
    return tensor.stride()


def dense_strides(tensor: torch.Tensor) -> Numbers:
    """Those of a copy that preserves the format: its own where it is dense, else dense ones in its order."""
    return tensor.stride() if is_dense(tensor) else _by_order([tensor.stride()], tensor.shape)


def _has_number_as_operand(op: Any, args: Sequence[Any]) -> bool:
    name, overload = op._opname, op._overloadname
    if name in _NUMBER_OF_THEIR_OWN or (name in _NUMBERS_AS_OPERANDS and "scalar" in overload.lower()):
        return True
    return any(
        isinstance(parameter.type, torch.TensorType) and not isinstance(each, torch.Tensor)
        for parameter, each in zip(op._schema.arguments, args, strict=False)
    )


def _can_tell(result: torch.Tensor, tensors: Sequence[torch.Tensor]) -> bool:
    if not tensors or any(each.layout is not torch.strided for each in tensors):
        return False
    return all(is_decidable(n) for each in (result, *tensors) for n in (*each.shape, *each.stride()))


# rules that follow one argument


@parametric
def preserved(
    op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor, position: int
) -> Numbers | None:
    """Those of the argument at a position where it is dense, else dense ones in its order, as for `preserve_format`."""
    source = args[position]
    if kwargs.get("memory_format") not in (None, torch.preserve_format) or not _can_tell(result, [source]):
        return None
    if not are_alike(source.shape, result.shape):
        return None
    return dense_strides(source)


@parametric
def suggested(
    op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor, position: int
) -> Numbers | None:
    """Channels last where the argument at a position looks so, else contiguous."""
    source = args[position]
    if not _can_tell(result, [source]):
        return None
    return channels_last_strides(result.shape) if looks_channels_last(source) else contiguous_strides(result.shape)


def normalized(position: int) -> Rule:
    """Those of a batch norm of the argument at a position: contiguous where that is, else the suggested format.

    A tensor of one channel or of one point is both contiguous and channels last. The gradient's kernel looks at that
    only where its two images have one format.
    """
    by_format = suggested(position)

    def rule(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Numbers | None:
        images = [each for each in args[: position + 1] if isinstance(each, torch.Tensor)]
        if not _can_tell(result, images):
            return None
        if is_contiguous(images[-1]) and len(set(map(looks_channels_last, images))) == 1:
            return contiguous_strides(result.shape)
        return by_format(op, args, kwargs, result)

    return rule


def contiguous(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Numbers | None:
    """Row-major whatever the arguments are."""
    return contiguous_strides(result.shape)


@parametric
def same_as(
    op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor, position: int
) -> Numbers | None:
    """Those of the argument at a position, gaps and overlaps included."""
    source = args[position]
    return source.stride() if are_alike(source.shape, result.shape) else None


def rolled(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor) -> Numbers | None:
    """Those of `cat` on the two pieces of each dimension: channels last as the argument, unless a piece is empty."""
    source, shifts, dims = args[0], args[1], args[2] if len(args) > 2 else ()
    if not _can_tell(result, [source]):
        return None
    if any(is_true(size == 0) for size in source.shape):
        return dense_strides(source)
    moves = all(not is_true(shift % source.shape[dim] == 0) for shift, dim in zip(shifts, dims, strict=False))
    if dims and moves and looks_channels_last(source):
        return channels_last_strides(result.shape)
    return contiguous_strides(result.shape)


_ATEN = torch.ops.aten

#: packets whose overloads with a number make of it an operand of TensorIterator, a tensor without dimensions
_NUMBERS_AS_OPERANDS = frozenset((
    "add", "bitwise_and", "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "copysign", "div",
    "eq", "fmod", "ge", "gt", "le", "lt", "mul", "ne", "remainder", "rsub", "special_xlog1py", "special_zeta", "sub",
    "xlogy",
))  # fmt: skip
_NUMBER_OF_THEIR_OWN = ("deg2rad", "rad2deg")

#: packets that are loops over elements, without torch's tag of such
_ALSO_ELEMENTWISE = (
    "complex", "elu_backward", "hardshrink_backward", "hardsigmoid_backward", "hardswish_backward",
    "hardtanh_backward", "logit_backward", "mish_backward", "native_dropout_backward", "polar",
    "rrelu_with_noise_backward", "silu_backward", "softplus_backward", "softshrink_backward",
)  # fmt: skip

#: elementwise packets whose kernel has the tensors in the reverse order
_REVERSED = ("leaky_relu_backward", "threshold_backward")

#: elementwise packets that are several loops, of which the last decides
_COMPOSITE = ("ldexp",)

#: packets of copies and of new tensors like another one, on any device
_PRESERVING = (
    "_conj_physical", "_prelu_kernel", "_to_copy", "bernoulli", "clone", "empty_like", "exponential", "fill", "flip",
    "frexp", "full_like", "hardtanh", "index_fill", "log_sigmoid_backward", "nan_to_num", "ones_like", "rand_like",
    "randint_like", "randn_like", "relu6", "uniform", "zeros_like",
)  # fmt: skip

#: on the CPU, packets whose results are contiguous
_CONTIGUOUS = (
    "diag_embed", "glu_backward", "huber_loss_backward", "isin", "log_sigmoid_forward", "masked_fill",
    "mse_loss_backward", "native_layer_norm", "native_layer_norm_backward", "nll_loss2d_forward",
    "smooth_l1_loss_backward", "tril", "triu",
)  # fmt: skip

_RESAMPLING = (
    "upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "_upsample_nearest_exact1d",
    "_upsample_nearest_exact2d", "_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d",
    "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa",
)  # fmt: skip

#: on the CPU, batch norms and their gradients: packet -> the argument whose format their first result follows
_NORMALIZED = {
    "_batch_norm_no_update": 0,
    "_batch_norm_with_update": 0,
    "_batch_norm_with_update_functional": 0,
    "_native_batch_norm_legit": 0,
    "_native_batch_norm_legit_functional": 0,
    "_native_batch_norm_legit_no_training": 0,
    "batch_norm_backward": 1,
    "native_batch_norm": 0,
    "native_batch_norm_backward": 1,
}

#: on the CPU, packets whose first result follows the suggested format of the argument at a position
_SUGGESTED = {
    "native_group_norm": 0,
    "native_group_norm_backward": 1,
    "reflection_pad2d_backward": 1,
    "replication_pad2d_backward": 1,
    **{f"{name}{end}": 0 for name in _RESAMPLING for end in ("", "_backward")},
}

#: others, on the CPU: packet -> a rule for each of its results, None where meta is right
_ON_CPU: dict[str, tuple[Rule | None, ...]] = {
    "_weight_norm_interface": (contiguous, same_as(1)),
    "roll": (rolled,),
    "rrelu_with_noise_functional": (preserved(0), preserved(1)),
    "sort": (preserved(0), preserved(0)),
}

#: by the identity of an op, which is looked up faster than its hash; the op is kept, and with it its identity
_FOUND: dict[int, tuple[Any, tuple[Rule | None, ...] | None]] = {}


def rules_of(op: Any) -> tuple[Rule | None, ...] | None:
    """The rules for an op's results; None where meta is right, and for what writes or gives views."""
    found = _FOUND.get(id(op))
    if found is None:
        found = _FOUND[id(op)] = op, _find_rules(op)
    return found[1]


def _find_rules(op: Any) -> tuple[Rule | None, ...] | None:
    if not isinstance(op, torch._ops.OpOverload) or op.namespace != "aten" or op._schema.is_mutable:
        return None
    if any(each.alias_info is not None for each in op._schema.returns):
        return None
    name = op._opname
    if name in _PRESERVING:
        return (preserved(0),) * len(op._schema.returns)
    if op in (_ATEN.pow.Scalar, _ATEN.mvlgamma.default):
        return (contiguous,)
    if name in _REVERSED:
        return (elementwise_reversed,)
    if name in _CONTIGUOUS:
        return (_on_cpu(contiguous),) * len(op._schema.returns)
    if name in _NORMALIZED:
        return (_on_cpu(normalized(_NORMALIZED[name])),)
    if name in _SUGGESTED:
        return (_on_cpu(suggested(_SUGGESTED[name])),)
    if name in _ON_CPU:
        return tuple(rule and _on_cpu(rule) for rule in _ON_CPU[name])
    if name in _COMPOSITE:
        return None
    return (elementwise,) if torch.Tag.pointwise in op.tags or name in _ALSO_ELEMENTWISE else None


@parametric
def _on_cpu(
    op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: torch.Tensor, rule: Rule
) -> Numbers | None:
    return rule(op, args, kwargs, result) if eager(result.device.type).own_layouts else None
