"""Losses and their gradients.

An elementwise loss is one line of `LOSSES`; `reduction` 0 keeps the elements, 1 takes the mean, 2 the sum. Its
gradient is that of an element times the incoming one, divided by the number of elements for the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ....dialects.parametric import parametric
from ....dialects.sym import Expr
from ..dtypes import I64, computation_type
from ..nests import LoopBuilder, Shape, broadcast_index, row_major, shape_of
from ..pointwise import operand_as
from ..rules import Call, Replacement, add_rule, lowers
from ..scalar import Scalar
from ..scalar_builder import ScalarBuilder
from .gather import in_range
from .reductions import size_of

NONE, MEAN, SUM = 0, 1, 2

Elementwise = Callable[..., Scalar]


def _binary_cross_entropy(s: ScalarBuilder, x: Scalar, target: Scalar) -> Scalar:
    """-(t * log(x) + (1 - t) * log(1 - x)), the logarithms at least -100."""
    s.check((x >= 0.0) & (x <= 1.0), "all elements of input should be between 0 and 1", "RuntimeError")
    low = s.constant(-100, x.element)
    return (target - 1.0) * s.max(s.log1p(-x), low) - target * s.max(s.log(x), low)


def _binary_cross_entropy_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar, target: Scalar) -> Scalar:
    return grad * (x - target) / s.max((1.0 - x) * x, 1e-12)


def _smooth_l1(s: ScalarBuilder, x: Scalar, target: Scalar, beta: float) -> Scalar:
    distance = s.abs(x - target)
    return s.where(distance < beta, distance * 0.5 * distance / beta, distance - 0.5 * beta)


def _smooth_l1_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar, target: Scalar, beta: float) -> Scalar:
    difference = x - target
    return s.where(s.abs(difference) < beta, grad * difference / beta, grad * s.sign(difference))


def _huber(s: ScalarBuilder, x: Scalar, target: Scalar, delta: float) -> Scalar:
    distance = s.abs(x - target)
    return s.where(distance <= delta, distance * 0.5 * distance, (distance - 0.5 * delta) * delta)


def _huber_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar, target: Scalar, delta: float) -> Scalar:
    difference = x - target
    return s.where(s.abs(difference) < delta, grad * difference, grad * s.sign(difference) * delta)


def _soft_margin_gradient(s: ScalarBuilder, grad: Scalar, x: Scalar, target: Scalar) -> Scalar:
    power = s.exp(-target * x)
    return -grad * target * power / (power + 1.0)


def _squared(s: ScalarBuilder, x: Scalar, target: Scalar) -> Scalar:
    difference = x - target
    return difference * difference


#: packet -> (loss of an element, its gradient, name of the option that both take)
LOSSES: dict[str, tuple[Elementwise, Elementwise, str | None]] = {
    "mse_loss": (_squared, lambda s, grad, x, target: grad * (x - target) * 2.0, None),
    "smooth_l1_loss": (_smooth_l1, _smooth_l1_gradient, "beta"),
    "huber_loss": (_huber, _huber_gradient, "delta"),
    "soft_margin_loss": (lambda s, x, target: s.log1p(s.exp(-target * x)), _soft_margin_gradient, None),
    "binary_cross_entropy": (_binary_cross_entropy, _binary_cross_entropy_gradient, None),
}


def _options(call: Call, option: str | None) -> tuple[float, ...]:
    return () if option is None else (float(call[option]),)


def _reject_option(call: Call) -> str | None:
    """Eager raises for them, which meta functions do not."""
    wrong = (call.has("beta") and call["beta"] < 0) or (call.has("delta") and call["delta"] <= 0)
    return "an option out of range" if wrong else None


def _weight(call: Call) -> SSAValue | None:
    return call.optional("weight") if call.has("weight") else None


@parametric
def _loss(b: LoopBuilder, call: Call, function: Elementwise, option: str | None) -> Replacement:
    x, target, weight = call.tensor("self"), call.tensor("target"), _weight(call)
    shape = _broadcast(shape_of(x), shape_of(target))
    element = call.type.element

    def body(index: tuple[Expr, ...]) -> Scalar:
        values = [_at(b, tensor, index, element) for tensor in (x, target)]
        value = function(b.s, *values, *_options(call, option))
        return value if weight is None else value * _at(b, weight, index, element)

    if call["reduction"] == NONE:
        return b.generate(body, call.type)
    dims = list(range(len(shape)))
    size = size_of(shape, dims)

    def finish(total: Scalar) -> Scalar:
        return total / b.s.number(size, total.element) if call["reduction"] == MEAN else total

    return b.reduce(["sum"], shape, dims, body, call.type, finish=finish)


@parametric
def _gradient(b: LoopBuilder, call: Call, function: Elementwise, option: str | None) -> Replacement:
    tensors = [call.tensor(name) for name in ("grad_output", "self", "target")]
    weight = _weight(call)
    shape = call.type.shape
    element = call.type.element
    size = size_of(shape, list(range(len(shape))))

    def body(index: tuple[Expr, ...]) -> Scalar:
        values = [_at(b, tensor, index, element) for tensor in tensors]
        value = function(b.s, *values, *_options(call, option))
        if weight is not None:
            value = value * _at(b, weight, index, element)
        return value / b.s.number(size, value.element) if call["reduction"] == MEAN else value

    return b.generate(body, call.type)


def _broadcast(left: Shape, right: Shape) -> Shape:
    """The shape that both are broadcast to."""
    long, short = (left, right) if len(left) >= len(right) else (right, left)
    skipped = len(long) - len(short)
    return tuple(size if k < skipped or size.as_int() != 1 else short[k - skipped] for k, size in enumerate(long))


def _at(b: LoopBuilder, tensor: SSAValue, index: tuple[Expr, ...], element: object) -> Scalar:
    return operand_as(b.s, b.s.load(tensor, broadcast_index(shape_of(tensor), index)), element)  # pyright: ignore


for _packet, (_function, _derivative, _option) in LOSSES.items():
    add_rule(_packet, _loss(_function, _option), _reject_option)
    add_rule(f"{_packet}_backward", _gradient(_derivative, _option), _reject_option)


# negative log likelihood: the class is dimension 1, or the only one


def _reject_targets(call: Call) -> str | None:
    """Eager takes a list of targets for one row, and reads the first."""
    row, targets = shape_of(call.tensor("self")), shape_of(call.tensor("target"))
    return "several targets for one row" if len(row) == 1 and len(targets) == 1 else None


def _reject_shapes(call: Call) -> str | None:
    """Eager takes a gradient of one element, or a total of one, for a number."""
    rows = len(shape_of(call.tensor("self"))) - 1 if call["reduction"] == NONE else 0
    if len(shape_of(call.tensor("grad_output"))) not in (0, rows) or shape_of(call.tensor("total_weight")):
        return "a list of one number"
    return _reject_targets(call)


class _Classes:
    """Targets of a negative log likelihood loss."""

    def __init__(self, b: LoopBuilder, call: Call) -> None:
        self.b = b
        self.call = call
        shape = shape_of(call.tensor("self"))
        self.dim = 1 if len(shape) > 1 else 0
        self.classes = shape[self.dim]
        self.domain = (*shape[: self.dim], *shape[self.dim + 1 :])

    def target(self, index: tuple[Expr, ...]) -> tuple[Scalar, Scalar]:
        """The class at an index of the domain, 0 where it is ignored, and whether it counts."""
        s = self.b.s
        raw = s.load(self.call.tensor("target"), index if shape_of(self.call.tensor("target")) else ()).to(I64)
        counts = raw.ne(self.call["ignore_index"])
        position = s.where(counts, raw, 0)
        s.check(in_range(self.b, position, self.classes), "Target is out of bounds.", "IndexError")
        return position, counts

    def weight(self, position: Scalar, element: object) -> Scalar:
        """The weight of a class."""
        s = self.b.s
        weight = self.call.optional("weight")
        if weight is None:
            return s.constant(1, element)  # pyright: ignore[reportArgumentType]
        return s.widen(s.load(weight, (position,)))


@lowers("nll_loss_forward nll_loss2d_forward", _reject_targets)
def _nll_loss(b: LoopBuilder, call: Call) -> Replacement:
    """The loss and the sum of the weights that counted.

    The losses of rows are a nest of their own: it can join one that makes rows, say their logarithm of softmax.
    """
    s = b.s
    x = call.tensor("self")
    classes = _Classes(b, call)
    type_, weight_type = call.types
    wide = computation_type(type_.element)

    def body(index: tuple[Expr, ...]) -> list[Scalar]:
        position, counts = classes.target(index)
        dim = classes.dim
        weight = s.where(counts, classes.weight(position, wide), 0)
        value = s.widen(s.load(x, (*index[:dim], position, *index[dim:])))
        return [s.where(counts, -value * weight, 0), weight]

    if call["reduction"] == NONE:
        (result,) = b.generate(lambda index: body(index)[0], type_)
        return [result, *b.generate(lambda _: s.constant(0, weight_type.element), weight_type)]

    def finish(total: Scalar, weight: Scalar) -> list[Scalar]:
        return [total / weight if call["reduction"] == MEAN else total, weight]

    kept = row_major(classes.domain, wide, type_.device)
    losses, weights = b.generate(body, kept, kept)
    dims = list(range(len(classes.domain)))

    def total(index: tuple[Expr, ...]) -> list[Scalar]:
        return [s.load(losses, index), s.load(weights, index)]

    return b.reduce(["sum", "sum"], classes.domain, dims, total, type_, weight_type, finish=finish)


@lowers("nll_loss_backward nll_loss2d_backward", _reject_shapes)
def _nll_loss_backward(b: LoopBuilder, call: Call) -> Replacement:
    """-weight * grad at the target's class, 0 elsewhere.

    Where a row has its classes side by side, what is the same for all of them is a nest of its own, of rows: loops over
    a row neither compute nor check it again.
    """
    s = b.s
    grad, total = call.tensor("grad_output"), call.tensor("total_weight")
    classes = _Classes(b, call)
    wide = computation_type(call.type.element)

    def of_row(row: tuple[Expr, ...]) -> list[Scalar]:
        position, counts = classes.target(row)
        value = -classes.weight(position, wide) * s.widen(s.load(grad, row if shape_of(grad) else ()))
        if call["reduction"] == MEAN:
            value = value / s.widen(s.load(total, ()))
        return [position, s.where(counts, value, 0)]

    def body(index: tuple[Expr, ...]) -> Scalar:
        row = (*index[: classes.dim], *index[classes.dim + 1 :])
        position, value = of_row(row) if rows is None else [s.load(each, row) for each in rows]
        return s.where(position.eq(s.index(index[classes.dim])), value, 0)

    rows: Sequence[SSAValue] | None = None
    if classes.dim == len(call.type.shape) - 1:
        kept = row_major(classes.domain, wide, call.type.device)
        rows = b.generate(of_row, kept.with_(element=I64), kept)
    return b.generate(body, call.type)
