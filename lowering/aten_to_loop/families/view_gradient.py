"""Gradients of views: the incoming gradient where the view reads, 0 elsewhere, as one masked read an element."""

from __future__ import annotations

from ....dialects.sym import Expr
from ..nests import LoopBuilder, normalize_dim, shape_of
from ..rules import Call, Replacement, lowers
from ..scalar import Scalar
from .gather import in_range
from .views import slice_start, wrapped


@lowers("slice_backward")
def _slice_backward(b: LoopBuilder, call: Call) -> Replacement:
    s = b.s
    grad = call.tensor("grad_output")
    shape = call.type.shape
    dim = normalize_dim(call["dim"], len(shape))
    start, step = slice_start(b, call["start"], shape[dim]), call["step"]
    length = shape_of(grad)[dim]
    if length is shape[dim]:
        return b.generate(lambda index: s.load(grad, index), call.type)

    def body(index: tuple[Expr, ...]) -> Scalar:
        distance = index[dim] - start
        place = distance // step
        mask = in_range(b, s.index(place), length)
        if step != 1:
            mask = mask & s.index(distance % step).eq(0)
        return s.load(grad, (*index[:dim], place, *index[dim + 1 :]), mask)

    return b.generate(body, call.type)


@lowers("select_backward")
def _select_backward(b: LoopBuilder, call: Call) -> Replacement:
    s = b.s
    grad = call.tensor("grad_output")
    shape = call.type.shape
    dim = normalize_dim(call["dim"], len(shape))
    chosen = wrapped(b, call["index"], shape[dim])

    def body(index: tuple[Expr, ...]) -> Scalar:
        mask = s.index(index[dim] - chosen).eq(0)
        return s.load(grad, (*index[:dim], *index[dim + 1 :]), mask)

    return b.generate(body, call.type)


@lowers("diagonal_backward")
def _diagonal_backward(b: LoopBuilder, call: Call) -> Replacement:
    s = b.s
    grad = call.tensor("grad_output")
    shape = call.type.shape
    first, second = normalize_dim(call["dim1"], len(shape)), normalize_dim(call["dim2"], len(shape))
    offset = call["offset"]

    def body(index: tuple[Expr, ...]) -> Scalar:
        mask = s.index(index[second] - index[first] - offset).eq(0)
        others = [part for d, part in enumerate(index) if d not in (first, second)]
        return s.load(grad, (*others, index[first] - max(-offset, 0)), mask)

    return b.generate(body, call.type)
