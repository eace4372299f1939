"""Activations and their gradients, with the formulas of eager's CPU kernels."""

from __future__ import annotations

import math

from ....dialects.sym import Expr
from ..nests import LoopBuilder, normalize_dim, shape_of
from ..pointwise import add_pointwise, operand_as
from ..rules import Call, Replacement, lowers
from ..scalar import Scalar
from ..scalar_builder import ScalarBuilder

_SQRT_HALF = math.sqrt(0.5)
_GELU_BETA = math.sqrt(2.0) * (2.0 / math.sqrt(math.pi)) * 0.5
_GELU_KAPPA = 0.044715


def gelu(s: ScalarBuilder, x: Scalar, approximate: str) -> Scalar:
    """x times the normal distribution function of x, exactly or by tanh."""
    if approximate == "tanh":
        inner = (x + x * x * x * _GELU_KAPPA) * _GELU_BETA
        return x * 0.5 * (s.tanh(inner) + 1.0)
    return x * 0.5 * (s.erf(x * _SQRT_HALF) + 1.0)


def gelu_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar, approximate: str) -> Scalar:
    """grad times the derivative of `gelu`."""
    if approximate == "tanh":
        square = x * x
        tanh = s.tanh((x + square * x * _GELU_KAPPA) * _GELU_BETA)
        left = (tanh + 1.0) * 0.5
        inner = (square * (3.0 * _GELU_KAPPA) + 1.0) * _GELU_BETA
        return grad * (left + x * 0.5 * (1.0 - tanh * tanh) * inner)
    distribution = (s.erf(x * _SQRT_HALF) + 1.0) * 0.5
    density = s.exp(x * x * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
    return grad * (distribution + x * density)


def zero_where(s: ScalarBuilder, condition: Scalar, value: Scalar) -> Scalar:
    """0 where the condition holds, else the value."""
    return s.where(condition, s.constant(0, value.element), value)


def elu(s: ScalarBuilder, x: Scalar, alpha: float, scale: float, input_scale: float) -> Scalar:
    """scale * x for positive x, else scale * alpha * expm1(input_scale * x)."""
    return s.where(x > 0, x * scale, s.expm1(x * input_scale) * (alpha * scale))


def elu_gradient(
    s: ScalarBuilder, grad: Scalar, x: Scalar, alpha: float, scale: float, input_scale: float, is_result: bool
) -> Scalar:
    """The gradient of `elu` from its input or from its result."""
    negative, inner = alpha * scale, input_scale
    if is_result:
        below = grad * inner * (x + negative)
    else:
        below = grad * (inner * negative) * s.exp(x * inner)
    return s.where(x <= 0, below, grad * scale)


def softshrink(s: ScalarBuilder, x: Scalar, lambd: float) -> Scalar:
    """x moved towards 0 by lambd, 0 within; NaN stays."""
    inside = s.where(s.isnan(x), x, s.constant(0, x.element))
    return s.where(x > lambd, x - lambd, s.where(x < -lambd, x + lambd, inside))


def softplus(s: ScalarBuilder, x: Scalar, beta: float, threshold: float) -> Scalar:
    """log(1 + exp(beta * x)) / beta, x itself above the threshold."""
    scaled = x * beta
    return s.where(scaled > threshold, x, s.log1p(s.exp(scaled)) / beta)


def softplus_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar, beta: float, threshold: float) -> Scalar:
    """The gradient of `softplus`."""
    scaled = x * beta
    exponential = s.exp(scaled)
    return s.where(scaled > threshold, grad, grad * exponential / (exponential + 1.0))


def mish_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar) -> Scalar:
    """The gradient of x * tanh(softplus(x))."""
    tanh = s.tanh(s.log1p(s.exp(x)))
    return grad * (tanh + x * s.sigmoid(x) * (1.0 - tanh * tanh))


def silu_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar) -> Scalar:
    """The gradient of x * sigmoid(x)."""
    sigmoid = s.sigmoid(x)
    return grad * sigmoid * (x * (1.0 - sigmoid) + 1.0)


def hardswish_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar) -> Scalar:
    """0 below -3, grad above 3, linear between."""
    between = s.where(x < 3.0, grad * (x / 3.0 + 0.5), grad)
    return zero_where(s, x <= -3.0, between)


def log_sigmoid_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar) -> Scalar:
    """grad * sigmoid(-x), from exp(-|x|)."""
    exponential = s.exp(-s.abs(x))
    ratio = exponential / (exponential + 1.0)
    return grad * s.where(x < 0, 1.0 - ratio, ratio)


def logit_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar, eps: float | None) -> Scalar:
    """grad / (x * (1 - x)); outside of [eps, 1 - eps] 0; without eps, or a negative one, NaN outside of [0, 1]."""
    low, outside = (0.0, float("nan")) if eps is None or eps < 0 else (eps, 0.0)
    is_outside = (x < low) | (x > 1.0 - low)
    return s.where(is_outside, s.constant(outside, x.element), grad / (x * (1.0 - x)))


@lowers("log_sigmoid_forward")
def _log_sigmoid_forward(b: LoopBuilder, call: Call) -> Replacement:
    """The result and, on the CPU, a buffer of exp(-|x|) that the gradient reads."""
    s = b.s
    x = call.tensor("self")
    type_, buffer_type = call.types
    output = b.pointwise(lambda v: s.min(v, 0.0) - s.log1p(s.exp(-s.abs(v))), type_, x)
    if buffer_type.shape != type_.shape:
        return [output, b.empty(buffer_type)]
    return [output, b.pointwise(lambda v: s.exp(-s.abs(v)), buffer_type, x)]


@lowers("_prelu_kernel_backward")
def _prelu_kernel_backward(b: LoopBuilder, call: Call) -> Replacement:
    s = b.s
    tensors = [call.tensor(name) for name in ("grad_output", "self", "weight")]
    grad_type, weight_type = call.types

    def input_gradient(grad: Scalar, x: Scalar, weight: Scalar) -> Scalar:
        return s.where(x > 0, grad, operand_as(s, weight, grad_type.element) * grad)

    return [
        b.pointwise(input_gradient, grad_type, *tensors),
        b.pointwise(lambda grad, x, _: zero_where(s, x > 0, x * grad), weight_type, *tensors),
    ]


@lowers("glu")
def _glu(b: LoopBuilder, call: Call) -> Replacement:
    """The first half along a dimension times the sigmoid of the second."""
    s = b.s
    x = call.tensor("self")
    dim = normalize_dim(call["dim"], len(call.type.shape))
    half = call.type.shape[dim]

    def body(index: tuple[Expr, ...]) -> Scalar:
        gate = (*index[:dim], index[dim] + half, *index[dim + 1 :])
        return b.at(x, index) * s.sigmoid(b.at(x, gate))

    return b.generate(body, call.type)


@lowers("glu_backward")
def _glu_backward(b: LoopBuilder, call: Call) -> Replacement:
    s = b.s
    grad, x = call.tensor("grad_output"), call.tensor("self")
    dim = normalize_dim(call["dim"], len(call.type.shape))
    half = shape_of(grad)[dim]

    def body(index: tuple[Expr, ...]) -> Scalar:
        place = (*index[:dim], index[dim] % half, *index[dim + 1 :])
        gate = (*index[:dim], index[dim] % half + half, *index[dim + 1 :])
        sigmoid = s.sigmoid(b.at(x, gate))
        scaled = b.at(grad, place) * sigmoid
        first = s.index(index[dim]) < s.index(half)
        return s.where(first, scaled, scaled * (1.0 - sigmoid) * b.at(x, place))

    return b.generate(body, call.type)


add_pointwise({
    "relu": lambda s, self: s.clamp(self, 0, None),
    "relu6": lambda s, self: s.clamp(self, 0, 6),
    "hardtanh": lambda s, self, min_val, max_val: s.clamp(self, min_val, max_val),
    "sigmoid": lambda s, self: s.sigmoid(self),
    "silu": lambda s, self: self / (s.exp(-self) + 1.0),
    "mish": lambda s, self: self * s.tanh(s.log1p(s.exp(self))),
    "gelu": lambda s, self, approximate: gelu(s, self, approximate),
    "elu": lambda s, self, alpha, scale, input_scale: elu(s, self, alpha, scale, input_scale),
    "celu": lambda s, self, alpha: elu(s, self, alpha, 1.0, 1.0 / alpha),
    "selu": lambda s, self: elu(s, self, 1.6732632423543772, 1.0507009873554805, 1.0),
    "leaky_relu": lambda s, self, negative_slope: s.where(self > 0, self, self * negative_slope),
    "hardsigmoid": lambda s, self: s.clamp(self + 3.0, 0, 6) / 6.0,
    "hardswish": lambda s, self: self * s.clamp(self + 3.0, 0, 6) / 6.0,
    "hardshrink": lambda s, self, lambd: zero_where(s, (self >= -lambd) & (self <= lambd), self),
    "softshrink": lambda s, self, lambd: softshrink(s, self, lambd),
    "softplus": lambda s, self, beta, threshold: softplus(s, self, beta, threshold),
    "threshold": lambda s, self, threshold, value: s.where(self <= threshold, value, self),
    "_prelu_kernel": lambda s, self, weight: s.where(self > 0, self, weight * self),
    "gelu_backward": lambda s, grad_output, self, approximate: gelu_gradient(s, grad_output, self, approximate),
    "sigmoid_backward": lambda s, grad_output, output: grad_output * (1.0 - output) * output,
    "tanh_backward": lambda s, grad_output, output: grad_output * (1.0 - output * output),
    "silu_backward": lambda s, grad_output, self: silu_gradient(s, grad_output, self),
    "mish_backward": lambda s, grad_output, self: mish_gradient(s, grad_output, self),
    "elu_backward": lambda s, grad_output, alpha, scale, input_scale, is_result, self_or_result:
        elu_gradient(s, grad_output, self_or_result, alpha, scale, input_scale, is_result),
    "leaky_relu_backward": lambda s, grad_output, self, negative_slope:
        s.where(self > 0, grad_output, grad_output * negative_slope),
    "hardtanh_backward": lambda s, grad_output, self, min_val, max_val:
        s.where((self > min_val) & (self < max_val), grad_output, 0),
    "hardsigmoid_backward": lambda s, grad_output, self:
        s.where((self > -3.0) & (self < 3.0), grad_output / 6.0, 0.0),
    "hardswish_backward": lambda s, grad_output, self: hardswish_gradient(s, grad_output, self),
    "hardshrink_backward": lambda s, grad_out, self, lambd:
        s.where((self > lambd) | (self < -lambd), grad_out, 0),
    "softshrink_backward": lambda s, grad_output, self, lambd:
        s.where((self > lambd) | (self < -lambd), grad_output, 0),
    "softplus_backward": lambda s, grad_output, self, beta, threshold:
        softplus_gradient(s, grad_output, self, beta, threshold),
    "threshold_backward": lambda s, grad_output, self, threshold: zero_where(s, self <= threshold, grad_output),
    "log_sigmoid_backward": lambda s, grad_output, self: log_sigmoid_gradient(s, grad_output, self),
    "logit_backward": lambda s, grad_output, self, eps: logit_gradient(s, grad_output, self, eps),
    "native_dropout_backward": lambda s, grad_output, mask, scale:
        grad_output * mask.to(grad_output.element) * scale,
    "_masked_scale": lambda s, self, mask, scale: self * mask.to(self.element) * scale,
})  # fmt: skip
