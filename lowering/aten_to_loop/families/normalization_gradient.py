"""Gradients of layer, RMS, group and batch normalization: one formula over different domains.

With x^ = (x - mean) * rstd, g = grad * weight, and means taken over the normalized dimensions,

    grad of x       rstd * (g - mean(g) - x^ * mean(g * x^))      (RMS: without mean(g))
    grad of weight  sum(grad * x^)
    grad of bias    sum(grad)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ....dialects.aten.types import TensorType
from ....dialects.sym import Expr, as_expr
from ....records import dataclass
from ..dtypes import computation_type
from ..nests import LoopBuilder, Shape, drop_dims, row_major, row_of, shape_of
from ..rules import Call, Replacement, lowers
from ..scalar import Scalar
from .reductions import size_of

Index = tuple[Expr, ...]
Element = Callable[[Index], Scalar]


def same_index(index: Index) -> Index:
    """The domain is that of the tensor."""
    return index


@dataclass
class Normalized:
    """A normalization to differentiate, by what it reads at an index of its domain.

    `dims` are the normalized dimensions of `domain`; `domain_index` maps an index of the input into the domain.
    """

    b: LoopBuilder
    domain: Shape
    dims: list[int]
    grad: Element
    normal: Element
    """x^"""
    rstd: Element
    weight: Element | None
    centred: bool = True
    domain_index: Callable[[Index], Index] = same_index

    def scaled(self, index: Index) -> Scalar:
        """g"""
        grad = self.grad(index)
        return grad if self.weight is None else grad * self.weight(index)

    def input_gradient(self, type_: TensorType) -> SSAValue:
        """The gradient of the input."""
        b = self.b
        wide = computation_type(type_.element)
        rows = row_major(drop_dims(self.domain, self.dims), wide, type_.device)
        size = size_of(self.domain, self.dims)

        def products(index: Index) -> list[Scalar]:
            scaled = self.scaled(index)
            product = scaled * self.normal(index)
            return [product, scaled] if self.centred else [product]

        count = 2 if self.centred else 1
        sums = b.reduce(
            ["sum"] * count, self.domain, self.dims, products, *[rows] * count,
            finish=lambda *totals: [total / b.s.number(size, wide) for total in totals],
        )  # fmt: skip

        def body(index: Index) -> Scalar:
            place = self.domain_index(index)
            row = row_of(place, self.dims)
            rest = self.scaled(place) - self.normal(place) * b.s.load(sums[0], row)
            if self.centred:
                rest = rest - b.s.load(sums[1], row)
            return rest * self.rstd(place)

        return b.generate(body, type_)[0]


def parameter_gradients(
    b: LoopBuilder, shape: Shape, dims: Sequence[int], grad: Element, normal: Element, *types: TensorType | None
) -> list[SSAValue | None]:
    """Gradients of weight and bias, of the given types, None where one is not wanted; one pass over the domain."""
    wanted = [type_ for type_ in types if type_ is not None]
    if not wanted:
        return [None] * len(types)

    def body(index: Index) -> list[Scalar]:
        element = grad(index)
        both = [lambda: element * normal(index), lambda: element]
        return [make() for make, type_ in zip(both, types, strict=False) if type_ is not None]

    sums = iter(b.reduce(["sum"] * len(wanted), shape, dims, body, *wanted))
    return [None if type_ is None else next(sums) for type_ in types]


def _masked_types(call: Call) -> list[TensorType | None]:
    """The result types, None for gradients that `output_mask` leaves out."""
    types = iter(call.types)
    return [next(types) if wanted else None for wanted in call["output_mask"]]


def _reject_mask(call: Call) -> str | None:
    return None if sum(call["output_mask"]) == len(call.types) else "a wanted gradient that eager does not compute"


def _present(*gradients: SSAValue | None) -> list[SSAValue]:
    return [each for each in gradients if each is not None]


def _layer(b: LoopBuilder, call: Call, centred: bool) -> Replacement:
    """The statistics have the input's rank, with size 1 in the normalized dimensions."""
    grad_out, x, rstd = call.tensor("grad_out"), call.tensor("input"), call.tensor("rstd")
    mean = call.tensor("mean") if centred else None
    weight = call.optional("weight")
    shape = shape_of(x)
    first = len(shape) - len(call["normalized_shape"])
    input_type, *parameter_types = _masked_types(call)

    def normal(index: Index) -> Scalar:
        value = b.at(x, index)
        return (value if mean is None else value - b.at(mean, index)) * b.at(rstd, index)

    def grad(index: Index) -> Scalar:
        return b.at(grad_out, index)

    how = Normalized(
        b, shape, list(range(first, len(shape))), grad, normal,
        rstd=lambda i: b.at(rstd, i),
        weight=None if weight is None else lambda i: b.at(weight, i[first:]),
        centred=centred,
    )  # fmt: skip
    result = None if input_type is None else how.input_gradient(input_type)
    return _present(result, *parameter_gradients(b, shape, range(first), grad, normal, *parameter_types))


@lowers("native_layer_norm_backward", _reject_mask)
def _layer_norm_backward(b: LoopBuilder, call: Call) -> Replacement:
    return _layer(b, call, centred=True)


@lowers("_fused_rms_norm_backward", _reject_mask)
def _rms_norm_backward(b: LoopBuilder, call: Call) -> Replacement:
    return _layer(b, call, centred=False)


@lowers("native_group_norm_backward", _reject_mask)
def _group_norm_backward(b: LoopBuilder, call: Call) -> Replacement:
    """Over (N, group, channels of a group, spatial sizes ...); the statistics are (N, group)."""
    grad_out, x, mean, rstd = (call.tensor(name) for name in ("grad_out", "input", "mean", "rstd"))
    weight = call.optional("weight")
    shape = shape_of(x)
    groups = as_expr(call["group"])
    channels = shape[1] // groups
    domain = (shape[0], groups, channels, *shape[2:])
    input_type, *parameter_types = _masked_types(call)

    def tensor_index(index: Index) -> Index:
        return (index[0], index[1] * channels + index[2], *index[3:])

    def domain_index(index: Index) -> Index:
        return (index[0], index[1] // channels, index[1] % channels, *index[2:])

    def grad(index: Index) -> Scalar:
        return b.at(grad_out, tensor_index(index))

    def normal(index: Index) -> Scalar:
        return (b.at(x, tensor_index(index)) - b.at(mean, index[:2])) * b.at(rstd, index[:2])

    how = Normalized(
        b, domain, list(range(2, len(domain))), grad, normal,
        rstd=lambda i: b.at(rstd, i[:2]),
        weight=None if weight is None else lambda i: b.at(weight, tensor_index(i)[1:2]),
        domain_index=domain_index,
    )  # fmt: skip
    result = None if input_type is None else how.input_gradient(input_type)
    dims = [d for d in range(len(shape)) if d != 1]
    parameters = parameter_gradients(
        b, shape, dims, lambda i: b.at(grad_out, i), lambda i: normal(domain_index(i)), *parameter_types
    )
    return _present(result, *parameters)


@lowers("native_batch_norm_backward", _reject_mask)
def _batch_norm_backward(b: LoopBuilder, call: Call) -> Replacement:
    """In inference the statistics are constants: the gradient of x is then grad * weight * rstd."""
    s = b.s
    grad_out, x, weight = call.tensor("grad_out"), call.tensor("input"), call.optional("weight")
    train = call["train"]
    mean = call.tensor("save_mean" if train else "running_mean")
    scale = call.tensor("save_invstd" if train else "running_var")
    shape = shape_of(x)
    wide = computation_type(call.type.element)
    input_type, *parameter_types = _masked_types(call)

    def grad(index: Index) -> Scalar:
        return b.at(grad_out, index).to(wide)

    def rstd(index: Index) -> Scalar:
        value = b.at(scale, index[1:2]).to(wide)
        return value if train else s.rsqrt(value + call["eps"])

    def normal(index: Index) -> Scalar:
        return (b.at(x, index).to(wide) - b.at(mean, index[1:2]).to(wide)) * rstd(index)

    dims = [d for d in range(len(shape)) if d != 1]
    how = Normalized(
        b, shape, dims, grad, normal, rstd, None if weight is None else lambda i: b.at(weight, i[1:2]).to(wide)
    )
    result = None
    if input_type is not None:
        constant = lambda i: how.scaled(i) * rstd(i)  # noqa: E731
        result = how.input_gradient(input_type) if train else b.generate(constant, input_type)[0]
    return _present(result, *parameter_gradients(b, shape, dims, grad, normal, *parameter_types))
