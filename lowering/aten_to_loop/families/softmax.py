"""Softmax, its logarithm, their masked variant and gradients."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import SSAValue

from ....dialects.sym import Expr
from ..dtypes import accumulation_type
from ..nests import LoopBuilder, drop_dims, normalize_dims, row_major, row_of, shape_of
from ..rules import Call, Replacement, add_rule, lowers
from ..scalar import Scalar


class _Rows:
    """What the lowerings of this family share: rows along one dimension, computed in a wide type."""

    def __init__(self, b: LoopBuilder, call: Call, name: str) -> None:
        self.b = b
        self.shape = shape_of(call.tensor(name))
        self.dims = normalize_dims(call["dim"], len(self.shape))
        device = call.type.device
        # Results may be wider than the input: softmax(x, dtype = float32).
        self.element = accumulation_type(call.type.element, device)
        self.row = row_major(drop_dims(self.shape, self.dims), self.element, device)
        self.whole = call.type.with_(element=self.element)

    def load(self, tensor: SSAValue, index: tuple[Expr, ...]) -> Scalar:
        """An element in the type of computation."""
        return self.b.at(tensor, index).to(self.element)

    def of_row(self, rows: SSAValue, index: tuple[Expr, ...]) -> Scalar:
        """The value of the row that an index lies in."""
        return self.b.s.load(rows, row_of(index, self.dims))

    def reduce(self, combiner: str, body: Callable[[tuple[Expr, ...]], Scalar]) -> SSAValue:
        """One value a row."""
        return self.b.reduce([combiner], self.shape, self.dims, body, self.row)[0]


def _softmax(b: LoopBuilder, call: Call) -> Replacement:
    """exp(x - max) / sum(exp(x - max)); `_safe_softmax` gives 0 for a row of -inf, `_softmax` NaN.

    A row is divided once: the sum lies between 1 and the length of the row, so that its reciprocal is a normal number,
    and a product with it is within 1.5 units in the last place of the quotient.
    """
    s = b.s
    x = call.tensor("self")
    rows = _Rows(b, call, "self")
    most = rows.reduce("max", lambda i: rows.load(x, i))
    (powers,) = b.generate(lambda i: s.exp(rows.load(x, i) - rows.of_row(most, i)), rows.whole)
    total = rows.reduce("sum", lambda i: rows.load(powers, i))

    def body(index: tuple[Expr, ...]) -> Scalar:
        value = rows.load(powers, index) * (s.constant(1, rows.element) / rows.of_row(total, index))
        if call.op.name != "aten._safe_softmax":
            return value
        masked = rows.of_row(most, index).eq(float("-inf"))
        return s.where(masked, s.constant(0, rows.element), value)

    return b.generate(body, call.type)


add_rule("_softmax _safe_softmax", _softmax)


@lowers("_log_softmax")
def _log_softmax(b: LoopBuilder, call: Call) -> Replacement:
    s = b.s
    x = call.tensor("self")
    rows = _Rows(b, call, "self")
    most = rows.reduce("max", lambda i: rows.load(x, i))
    total = rows.reduce("sum", lambda i: s.exp(rows.load(x, i) - rows.of_row(most, i)))
    return b.generate(lambda i: rows.load(x, i) - rows.of_row(most, i) - s.log(rows.of_row(total, i)), call.type)


@lowers("_softmax_backward_data")
def _softmax_backward(b: LoopBuilder, call: Call) -> Replacement:
    """(grad - sum(grad * output)) * output"""
    grad, output = call.tensor("grad_output"), call.tensor("output")
    rows = _Rows(b, call, "output")
    total = rows.reduce("sum", lambda i: rows.load(grad, i) * rows.load(output, i))
    return b.generate(lambda i: (rows.load(grad, i) - rows.of_row(total, i)) * rows.load(output, i), call.type)


@lowers("_log_softmax_backward_data")
def _log_softmax_backward(b: LoopBuilder, call: Call) -> Replacement:
    """grad - exp(output) * sum(grad)"""
    grad, output = call.tensor("grad_output"), call.tensor("output")
    rows = _Rows(b, call, "output")
    total = rows.reduce("sum", lambda i: rows.load(grad, i))
    return b.generate(lambda i: rows.load(grad, i) - b.s.exp(rows.load(output, i)) * rows.of_row(total, i), call.type)
