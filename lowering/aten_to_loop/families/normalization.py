"""Layer, RMS, group and batch normalization."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ....dialects.aten.types import TensorType
from ....dialects.sym import Expr, as_expr
from ....machines import eager
from ..dtypes import accumulation_type, computation_type, epsilon
from ..nests import LoopBuilder, Shape, row_major, shape_of, type_of
from ..rules import Call, Replacement, lowers
from ..scalar import Scalar
from .reductions import moments, size_of


def affine(
    b: LoopBuilder, value: Scalar, weight: SSAValue | None, bias: SSAValue | None, index: Sequence[Expr]
) -> Scalar:
    """value * weight + bias, each part optional, read at an index of its own shape."""
    if weight is not None:
        value = value * b.at(weight, index).to(value.element)
    if bias is not None:
        value = value + b.at(bias, index).to(value.element)
    return value


def as_result(b: LoopBuilder, tensor: SSAValue, type_: TensorType) -> SSAValue:
    """A statistic in the type that the op returns; undefined where the op returns none."""
    if shape_of(tensor) != type_.shape:
        return b.empty(type_)
    return tensor if tensor.type == type_ else b.pointwise(lambda x: x, type_, tensor)


def inverse_deviation(b: LoopBuilder, squares: SSAValue, size: Expr, eps: float, type_: TensorType) -> SSAValue:
    """1 / sqrt(squares / size + eps)"""
    s = b.s
    return b.pointwise(lambda q: s.rsqrt(q / s.number(size, q.element) + eps), type_, squares)


def _trailing(call: Call, rank: int) -> list[int]:
    return list(range(rank - len(call["normalized_shape"]), rank))


@lowers("native_layer_norm")
def _layer_norm(b: LoopBuilder, call: Call) -> Replacement:
    x, weight, bias = call.tensor("input"), call.optional("weight"), call.optional("bias")
    shape = shape_of(x)
    dims = _trailing(call, len(shape))
    type_, mean_type, rstd_type = call.types
    wide = computation_type(type_.element)
    stats = row_major(mean_type.shape, wide, type_.device)
    mean, squares = moments(b, shape, dims, lambda i: b.at(x, i), stats)
    rstd = inverse_deviation(b, squares, size_of(shape, dims), call["eps"], stats)

    def body(index: tuple[Expr, ...]) -> Scalar:
        value = (b.at(x, index) - b.at(mean, index)) * b.at(rstd, index)
        value = affine(b, value, weight, bias, index[dims[0] :] if dims else index)
        # eager's CPU kernel takes an absent bias for zeros: -0.0 + 0.0 is +0.0
        return value + 0.0 if bias is None and eager(type_.device).adds_missing_bias else value

    (result,) = b.generate(body, type_)
    return [result, as_result(b, mean, mean_type), as_result(b, rstd, rstd_type)]


@lowers("_fused_rms_norm")
def _rms_norm(b: LoopBuilder, call: Call) -> Replacement:
    s = b.s
    x, weight = call.tensor("input"), call.optional("weight")
    shape = shape_of(x)
    dims = _trailing(call, len(shape))
    type_, rstd_type = call.types
    wide = computation_type(type_.element)
    eps = epsilon(wide) if call["eps"] is None else call["eps"]
    size = size_of(shape, dims)

    def square(index: tuple[Expr, ...]) -> Scalar:
        value = b.at(x, index)
        return value * value

    stats = row_major(rstd_type.shape, wide, type_.device)
    (rstd,) = b.reduce(["sum"], shape, dims, square, stats, finish=lambda q: s.rsqrt(q / s.number(size, wide) + eps))

    def body(index: tuple[Expr, ...]) -> Scalar:
        return affine(b, b.at(x, index) * b.at(rstd, index), weight, None, index[dims[0] :])

    (result,) = b.generate(body, type_)
    return [result, as_result(b, rstd, rstd_type)]


@lowers("native_group_norm")
def _group_norm(b: LoopBuilder, call: Call) -> Replacement:
    """Statistics over the domain (N, group, channels of a group, spatial sizes ...)."""
    x, weight, bias = call.tensor("input"), call.optional("weight"), call.optional("bias")
    shape = shape_of(x)
    groups = as_expr(call["group"])
    channels = shape[1] // groups
    domain: Shape = (shape[0], groups, channels, *shape[2:])
    dims = list(range(2, len(domain)))
    type_, mean_type, rstd_type = call.types
    stats = row_major((shape[0], groups), computation_type(type_.element), type_.device)

    def element(index: tuple[Expr, ...]) -> Scalar:
        n, group, channel, *place = index
        return b.at(x, (n, group * channels + channel, *place))

    mean, squares = moments(b, domain, dims, element, stats)
    rstd = inverse_deviation(b, squares, size_of(domain, dims), call["eps"], stats)

    def body(index: tuple[Expr, ...]) -> Scalar:
        row = (index[0], index[1] // channels)
        value = (b.at(x, index) - b.at(mean, row)) * b.at(rstd, row)
        return affine(b, value, weight, bias, index[1:2])

    (result,) = b.generate(body, type_)
    return [result, as_result(b, mean, mean_type), as_result(b, rstd, rstd_type)]


def _normalized_channels(b: LoopBuilder, call: Call, mean: SSAValue, rstd: SSAValue) -> SSAValue:
    """x * alpha + beta with alpha = rstd * weight and beta = bias - mean * alpha, as eager computes it."""
    x, weight, bias = call.tensor("input"), call.optional("weight"), call.optional("bias")
    wide = computation_type(call.type.element)

    def body(index: tuple[Expr, ...]) -> Scalar:
        channel = index[1:2]
        alpha = affine(b, b.at(rstd, channel).to(wide), weight, None, channel)
        offset = b.at(mean, channel).to(wide) * alpha
        beta = -offset if bias is None else b.at(bias, channel).to(wide) - offset
        return b.at(x, index).to(wide) * alpha + beta

    return b.generate(body, call.type)[0]


def _running_statistics(b: LoopBuilder, call: Call) -> tuple[SSAValue, SSAValue]:
    """The running mean and 1 / sqrt(running variance + eps), in the type of computation."""
    s = b.s
    mean, variance = call.tensor("running_mean"), call.tensor("running_var")
    type_ = row_major(shape_of(mean), computation_type(type_of(mean).element), call.type.device)
    return mean, b.pointwise(lambda v: s.rsqrt(v + call["eps"]), type_, variance)


class _BatchStatistics:
    """Mean and deviation of each channel over a batch, and the running statistics that follow from them."""

    def __init__(self, b: LoopBuilder, call: Call) -> None:
        self.b = b
        self.call = call
        x = call.tensor("input")
        shape = shape_of(x)
        dims = [d for d in range(len(shape)) if d != 1]
        wide = accumulation_type(call.type.element, call.type.device, wide=True)
        type_ = row_major((shape[1],), wide, call.type.device)
        self.size = size_of(shape, dims)
        self.mean, self.squares = moments(b, shape, dims, lambda i: b.at(x, i).to(wide), type_)
        narrow = row_major((shape[1],), computation_type(call.type.element), call.type.device)
        self.rstd = inverse_deviation(b, self.squares, self.size, call["eps"], narrow)

    def running(self, mean_type: TensorType, variance_type: TensorType) -> list[SSAValue]:
        """The running mean and the running, unbiased variance after this batch."""
        b, s, momentum = self.b, self.b.s, self.call["momentum"]

        def mixed(old: Scalar, new: Scalar) -> Scalar:
            return new * momentum + old.to(new.element) * (1.0 - momentum)

        def unbiased(squares: Scalar) -> Scalar:
            return squares / (s.number(self.size, squares.element) - 1.0)

        mean, variance = self.call.tensor("running_mean"), self.call.tensor("running_var")
        return [
            b.pointwise(mixed, mean_type, mean, self.mean),
            b.pointwise(lambda old, q: mixed(old, unbiased(q)), variance_type, variance, self.squares),
        ]


def _training(b: LoopBuilder, call: Call) -> tuple[_BatchStatistics, list[SSAValue]]:
    """Batch statistics, and result, mean and 1 / deviation."""
    stats = _BatchStatistics(b, call)
    result = _normalized_channels(b, call, stats.mean, stats.rstd)
    mean_type, rstd_type = call.types[1:3]
    return stats, [result, as_result(b, stats.mean, mean_type), as_result(b, stats.rstd, rstd_type)]


def _inference(b: LoopBuilder, call: Call) -> list[SSAValue]:
    """Result, mean and 1 / deviation from running statistics; eager's CPU kernels return no statistics then."""
    mean, rstd = _running_statistics(b, call)
    result = _normalized_channels(b, call, mean, rstd)
    mean_type, rstd_type = call.types[1:3]
    if shape_of(mean) == mean_type.shape:  # a copy: a result must not alias the argument
        mean = b.pointwise(lambda x: x, mean_type, mean)
    return [result, as_result(b, mean, mean_type), as_result(b, rstd, rstd_type)]


@lowers("_native_batch_norm_legit_no_training")
def _batch_norm_no_training(b: LoopBuilder, call: Call) -> Replacement:
    return _inference(b, call)


@lowers("_native_batch_norm_legit_functional")
def _batch_norm_functional(b: LoopBuilder, call: Call) -> Replacement:
    if not call["training"]:
        statistics = [call.tensor("running_mean"), call.tensor("running_var")]
        copies = [b.pointwise(lambda x: x, t, v) for t, v in zip(call.types[3:], statistics, strict=True)]
        return [*_inference(b, call), *copies]
    stats, results = _training(b, call)
    return [*results, *stats.running(*call.types[3:5])]


@lowers("_native_batch_norm_legit.no_stats")
def _batch_norm_no_stats(b: LoopBuilder, call: Call) -> Replacement:
    return _training(b, call)[1]


@lowers("_batch_norm_with_update_functional")
def _batch_norm_with_update(b: LoopBuilder, call: Call) -> Replacement:
    stats, results = _training(b, call)
    return [*results, b.empty(call.types[3]), *stats.running(*call.types[4:6])]


@lowers("_batch_norm_no_update")
def _batch_norm_no_update(b: LoopBuilder, call: Call) -> Replacement:
    return [*_inference(b, call), b.empty(call.types[3])]


def _reject_mutation(call: Call) -> str | None:
    if call["training"] and call.optional("running_mean") is not None:
        return "native_batch_norm in training writes the running statistics without saying so"
    return None


@lowers("native_batch_norm", _reject_mutation)
def _native_batch_norm(b: LoopBuilder, call: Call) -> Replacement:
    return _training(b, call)[1] if call["training"] else _inference(b, call)
