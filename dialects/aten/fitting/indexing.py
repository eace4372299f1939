"""Loads and writes at indices of data, and padding."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from ...parametric import parametric
from ...sym import ONE, Expr, as_expr
from ..types import TensorType
from .sizes import (
    Arguments,
    Results,
    Rule,
    Size,
    Sizes,
    UnknownError,
    broadcast,
    known,
    replaced,
    require,
    require_broadcast_to,
    require_same,
    same_as,
    text,
)


def _embedding(a: Arguments) -> Results:
    weight = a.shape("weight")
    require(len(weight) == 2, f"a table of {text(weight)}")
    return [(*a.shape("indices"), weight[1])]


def _embedding_backward(a: Arguments) -> Results:
    grad = a.shape("grad_output")
    indices = a.shape("indices")
    require(len(grad) == len(indices) + 1, f"a gradient of {text(grad)} for indices of {text(indices)}")
    require_same(grad[:-1], indices, "the gradient, but for its last dimension,")
    return [(as_expr(a["num_weights"]), grad[-1])]


def _indexed(a: Arguments) -> Sizes:
    """The sizes of what a list of index tensors, some of which may be left out, picks.

    The dimensions that they make stand where the first of them does, or first where others are between them.
    """
    shape, indices = a.shape("self"), a.shapes("indices")
    values = a.op.arg("indices")
    assert isinstance(values, tuple)
    if any(map(_is_mask, values)):
        raise UnknownError  # data decides how many elements there are
    require(len(indices) <= len(shape), f"{len(indices)} indices of a tensor with {len(shape)} dimensions")
    places = [place for place, index in enumerate(indices) if index is not None]
    if not places:
        return shape
    made = broadcast(*(index for index in indices if index is not None))
    kept = [size for place, size in enumerate(shape) if place not in places]
    together = places == list(range(places[0], places[-1] + 1))
    first = places[0] if together else 0
    return (*kept[:first], *made, *kept[first:])


def _is_mask(value: object) -> bool:
    type_ = value.type if isinstance(value, SSAValue) else None
    return isinstance(type_, TensorType) and isinstance(type_.element, IntegerType) and (
        type_.element.width.data == 1 or type_.element == IntegerType(8)
    )  # fmt: skip


def _index(a: Arguments) -> Results:
    return [_indexed(a)]


def _masked_index(a: Arguments) -> Results:
    found = _indexed(a)
    require_broadcast_to(a.shape("mask"), found, "the mask")
    return [found]


def _index_put(a: Arguments) -> Results:
    require_broadcast_to(a.shape("values"), _indexed(a), "what is put")
    return [a.shape("self")]


def _row(a: Arguments) -> tuple[int, Size]:
    """The dimension of `self` that a 1-d index picks from, and the length of the index."""
    index = a.shape("index")
    require(len(index) < 2, f"an index of {text(index)}")
    return a.dim(len(a.shape("self"))), index[0] if index else ONE


def _index_select(a: Arguments) -> Results:
    shape = a.shape("self")
    dim, count = _row(a)
    return [replaced(shape, dim, count) if shape else ()]


@parametric
def _index_source(a: Arguments, name: str) -> Results:
    shape, source = a.shape("self"), a.shape(name)
    dim, count = _row(a)
    if shape and source:
        require_same(source, replaced(shape, dim, count), "the source")
    return [shape]


def _index_fill(a: Arguments) -> Results:
    _row(a)
    if "value" in a.op.schema.by_name and a.op.schema.by_name["value"].is_tensor:
        require(not a.shape("value"), "what is filled in is no single number")
    return [a.shape("self")]


def _at_least(larger: Sequence[Expr], smaller: Sequence[Expr], but: int | None, what: str) -> None:
    """Raise MisfitError where a size is known to be smaller than one that must fit in."""
    for dim, (most, size) in enumerate(zip(larger, smaller, strict=True)):
        numbers = most.as_int(), size.as_int()
        if dim != but and numbers[0] is not None and numbers[1] is not None:
            require(numbers[1] <= numbers[0], f"the index is {text(smaller)}, and {what} {text(larger)}")


def _per_element(a: Arguments, others: Sequence[str]) -> int:
    """The dimension along which each element of an index says a place; the index fits into all that it goes with."""
    shape, index = a.shape("self") or (ONE,), a.shape("index") or (ONE,)
    dim = a.dim(len(a.shape("self")))
    empty = any(size.as_int() == 0 for size in index)
    require(empty or len(shape) == len(index), f"an index of {text(index)} into {text(shape)}")
    if not empty:
        _at_least(shape, index, dim, "the tensor is")
        for name in others:
            source = a.shape(name) or (ONE,)
            require(len(source) == len(index), f"an index of {text(index)} for a source of {text(source)}")
            _at_least(source, index, None, "the source is")
    return dim


def _gather(a: Arguments) -> Results:
    _per_element(a, ())
    return [a.shape("index")]


def _scatter(a: Arguments) -> Results:
    tensors = [x.name for x in a.op.schema.tensors if x.name not in ("self", "index")]
    _per_element(a, tensors)
    return [a.shape("self")]


def _masked_scatter(a: Arguments) -> Results:
    return [broadcast(a.shape("self"), a.shape("mask"))]


def _padded(shape: Sizes, amounts: Sequence[Size]) -> Sizes:
    """The sizes of a padded tensor; amounts are for the last dimension first."""
    require(len(amounts) % 2 == 0 and len(amounts) // 2 <= len(shape), f"{len(amounts)} amounts of padding")
    result = list(shape)
    for number, (front, back) in enumerate(zip(amounts[::2], amounts[1::2], strict=True)):
        size = result[-1 - number]
        if size is not None and front is not None and back is not None:
            result[-1 - number] = size + front + back
    for size in result:
        number = None if size is None else size.as_int()
        require(number is None or number >= 0, f"padding makes {text(result)} of {text(shape)}")
    return tuple(result)


def _constant_pad(a: Arguments) -> Results:
    return [_padded(a.shape("self"), a.sizes("pad"))]


def _edge_padded(a: Arguments, count: int) -> Sizes:
    shape, amounts = a.shape("self"), a.sizes("padding")
    require(len(amounts) == 2 * count, f"{len(amounts)} amounts of padding for {count} dimensions")
    require(len(shape) in (count + 1, count + 2), f"{text(shape)} is no image of {count} dimensions")
    if a.op.packet.startswith("reflection"):
        for place, amount in enumerate(amounts):
            try:
                size, most = known(shape[-1 - place // 2]), known(amount)
            except UnknownError:
                continue
            require(most < size, f"{most} elements are reflected of a dimension of size {size}")
    return _padded(shape, amounts)


def _edge_pad(count: int) -> Rule:
    return lambda a: [_edge_padded(a, count)]


@parametric
def _edge_pad_backward(a: Arguments, count: int) -> Results:
    require_same(a.shape("grad_output"), _edge_padded(a, count), "the gradient")
    return [a.shape("self")]


RULES: dict[str, Rule] = {
    "embedding": _embedding, "embedding_dense_backward": _embedding_backward, "index.Tensor": _index,
    "_unsafe_index.Tensor": _index, "_unsafe_masked_index": _masked_index, "index_put": _index_put,
    "_unsafe_index_put": _index_put, "_unsafe_masked_index_put_accumulate": _index_put,
    "index_select": _index_select, "index_add": _index_source("source"), "index_copy": _index_source("source"),
    "index_reduce": _index_source("source"), "index_fill": _index_fill, "gather": _gather, "take": same_as("index"),
    "scatter": _scatter, "scatter_add": _scatter, "scatter_reduce.two": _scatter, "masked_scatter": _masked_scatter,
    "constant_pad_nd": _constant_pad,
    **{
        f"{kind}_pad{count}d{back}": (_edge_pad_backward if back else _edge_pad)(count)
        for kind in ("reflection", "replication") for count in (1, 2, 3) for back in ("", "_backward")
    },
}  # fmt: skip
