"""Writing at computed indices: pieces of a cat, slice updates, index_put, scatter and their relatives."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ....dialects.aten.types import TensorType
from ....dialects.parametric import parametric
from ....dialects.sym import ONE, ZERO, Expr, as_expr
from ..dtypes import BOOL, I64, highest, is_float, lowest
from ..nests import (
    LoopBuilder,
    Shape,
    axes_of_rank,
    broadcast_index,
    normalize_dim,
    row_major,
    shape_of,
    type_of,
)
from ..reshape import linearize, reshape_map
from ..rules import Call, Reject, Replacement, add_rule, lowers
from ..scalar import Number, Scalar
from ..scalar_builder import Index
from .creation import converted
from .gather import (
    PAD_INDEX,
    AdvancedIndex,
    checked_index,
    in_range,
    pad_target,
    place_in_list,
    reject_masks,
    reject_ranks,
    wrapped_index,
)
from .views import Mapping, diagonal_index, selected, sliced


def filled_with(b: LoopBuilder, value: Number, type_: TensorType) -> SSAValue:
    """A tensor of one number, to scatter into."""
    return b.generate(lambda _: b.s.constant(value, type_.element), type_)[0]  # pyright: ignore[reportArgumentType]


# pieces


def _place(b: LoopBuilder, dest: SSAValue, piece: SSAValue, target: Sequence[Expr], type_: TensorType) -> SSAValue:
    """Write a whole tensor into `dest` at an index map."""
    shape = shape_of(piece)
    axes = axes_of_rank(len(shape))

    def body(_: tuple[Expr, ...]) -> tuple[Scalar, Sequence[Index]]:
        return converted(b, b.s.load(piece, axes), type_.element), target

    return b.scatter(dest, shape, body, type_, flags=("unique",))


@lowers("cat concat concatenate")
def _cat(b: LoopBuilder, call: Call) -> Replacement:
    """Pieces written into an undefined tensor; a 1-d empty tensor fits everywhere and adds nothing."""
    type_ = call.type
    rank = len(type_.shape)
    dim = normalize_dim(call["dim"], rank)
    result = b.empty(type_)
    begin = ZERO
    for piece in call.tensors("tensors"):
        assert piece is not None
        shape = shape_of(piece)
        if len(shape) != rank or any(size.as_int() == 0 for size in shape):
            continue
        target = list(axes_of_rank(rank))
        target[dim] = target[dim] + begin
        result = _place(b, result, piece, target, type_)
        begin = begin + shape[dim]
    return result


@lowers("stack")
def _stack(b: LoopBuilder, call: Call) -> Replacement:
    type_ = call.type
    axes = axes_of_rank(len(type_.shape) - 1)
    dim = normalize_dim(call["dim"], len(type_.shape))
    result = b.empty(type_)
    for position, piece in enumerate(call.tensors("tensors")):
        assert piece is not None
        result = _place(b, result, piece, [*axes[:dim], as_expr(position), *axes[dim:]], type_)
    return result


@parametric
def _update(b: LoopBuilder, call: Call, target: Mapping) -> Replacement:
    """A copy of `self` with `src` written at an index map."""
    dest, piece = call.tensor("self"), call.tensor("src")
    shape = shape_of(dest)
    axes = axes_of_rank(len(shape_of(piece)))
    return _place(b, dest, piece, target(b, call, shape, axes), call.type)


add_rule("slice_scatter", _update(sliced))
add_rule("select_scatter", _update(selected))
add_rule(
    "diagonal_scatter",
    _update(lambda b, call, shape, axes: diagonal_index(len(shape), axes, call["offset"], call["dim1"], call["dim2"])),
)


@lowers("diag_embed")
def _diag_embed(b: LoopBuilder, call: Call) -> Replacement:
    """Zeros with `self` on a diagonal."""
    source = call.tensor("self")
    rank = len(call.type.shape)
    axes = axes_of_rank(rank - 1)
    target = diagonal_index(rank, axes, call["offset"], call["dim1"], call["dim2"])
    return _place(b, filled_with(b, 0, call.type), source, target, call.type)


# index_put


@parametric
def _index_put(b: LoopBuilder, call: Call, check: bool) -> Replacement:
    if reject_masks(call) is not None:
        return _masked_put(b, call)
    dest, values = call.tensor("self"), call.tensor("values")
    shape = shape_of(dest)
    advanced = AdvancedIndex(call.tensors("indices"), len(shape), shape)

    def body(index: tuple[Expr, ...]) -> tuple[Scalar, Sequence[Index]]:
        value = b.s.load(values, broadcast_index(shape_of(values), index))
        return value, advanced.target(b, index, check)

    kind = "add" if call["accumulate"] else "set"
    return b.scatter(dest, advanced.domain(), body, call.type, kind)


def _masked_put(b: LoopBuilder, call: Call) -> Replacement:
    """One value written where masks hold: a choice for each element."""
    s = b.s
    dest, values = call.tensor("self"), call.tensor("values")
    zeros = [ZERO] * len(shape_of(values))

    def body(index: tuple[Expr, ...]) -> Scalar:
        keep: Scalar | None = None
        position = 0
        for tensor in call.tensors("indices"):
            rank = 1 if tensor is None else len(shape_of(tensor))
            if tensor is not None:
                mask = s.truthy(s.load(tensor, index[position : position + rank]))
                keep = mask if keep is None else keep & mask
            position += rank
        old = s.load(dest, index)
        new = s.load(values, zeros)
        if call["accumulate"]:
            new = s.store(s.widen(old) + s.widen(new), old.element)
        assert keep is not None
        return s.where(keep, new, old)

    return b.generate(body, call.type)


def _reject_index_put(call: Call) -> str | None:
    """Masks are fine for one value; several masks then apply together."""
    reason = reject_masks(call)
    if reason is None:
        return None
    masks = [t for t in call.tensors("indices") if t is not None]
    if any(size is not ONE for size in shape_of(call.tensor("values"))) or len(masks) != 1:
        return reason
    return None


add_rule("index_put", _index_put(check=True), _reject_index_put)
add_rule("_unsafe_index_put", _index_put(check=False), _reject_index_put)


@lowers("_unsafe_masked_index_put_accumulate", reject_masks)
def _masked_index_put(b: LoopBuilder, call: Call) -> Replacement:
    """Values added at indices where the mask holds."""
    dest, mask, values = call.tensor("self"), call.tensor("mask"), call.tensor("values")
    shape = shape_of(dest)
    advanced = AdvancedIndex(call.tensors("indices"), len(shape), shape)
    axes = axes_of_rank(len(advanced.domain()))

    def body(index: tuple[Expr, ...]) -> tuple[Scalar, Sequence[Index]]:
        value = b.s.load(values, broadcast_index(shape_of(values), index))
        return value, advanced.target(b, index, check=False)

    return b.scatter(dest, advanced.domain(), body, call.type, "add", mask=lambda: b.s.truthy(b.at(mask, axes)))


def _reject_bytes(call: Call) -> str | None:
    """Eager wants a mask of bools; a call lets it say so."""
    return None if type_of(call.tensor("mask")).element == BOOL else "a mask that is not bool"


@lowers("masked_scatter", _reject_bytes)
def _masked_scatter(b: LoopBuilder, call: Call) -> Replacement:
    """The next element of `source` at each place where the mask holds: the place counts the ones before it."""
    s = b.s
    dest, mask, source = call.tensor("self"), call.tensor("mask"), call.tensor("source")
    shape = call.type.shape
    total = math.prod(shape, start=ONE)  # `dest` too is broadcast against the mask
    length = math.prod(shape_of(source), start=ONE)
    flat = row_major((total,), I64, call.type.device)
    flat_mask = b.generate(lambda i: s.truthy(b.at(mask, i)), row_major(shape, BOOL, call.type.device))[0]
    ones = reshape_map(shape, (total,))
    (counts,) = b.scan(["sum"], (total,), 0, lambda _: s.load_map(flat_mask, ones).to(I64), flat)
    values = b.view_map(
        source, reshape_map(shape_of(source), (length,)), row_major((length,), call.type.element, call.type.device)
    )

    def body(index: tuple[Expr, ...]) -> Scalar:
        keep = s.load(flat_mask, index)
        position = s.load(counts, (linearize(list(index), list(shape)),)) - 1
        s.check(~keep | in_range(b, position, length), "source has fewer elements than the mask", "RuntimeError")
        return s.where(keep, s.load(values, (position,), keep), s.load(dest, broadcast_index(shape_of(dest), index)))

    return b.generate(body, call.type)


# scatter along a dimension: (indices, source) of the index's shape, or of the source's with a 1-d index

Target = Callable[[tuple[Expr, ...]], Sequence[Index]]


def _along(b: LoopBuilder, call: Call, error: str = "RuntimeError") -> Target:
    """The target of `scatter`: the index with the element of `index` in the place of `dim`."""
    indices = call.tensor("index")
    shape = shape_of(call.tensor("self"))
    dim = normalize_dim(call["dim"], len(shape))

    def target(index: tuple[Expr, ...]) -> Sequence[Index]:
        if not shape:
            checked_index(b, b.s.load(indices, ()), ONE, "index is out of bounds", error)
            return ()
        text = f"index is out of bounds for dimension {dim} with size {shape[dim]}"
        position = checked_index(b, b.s.load(indices, index), shape[dim], text, error)
        return (*index[:dim], position, *index[dim + 1 :])

    return target


def _along_list(b: LoopBuilder, call: Call, wrap: bool = False, error: str = "IndexError") -> Target:
    """The target of `index_add` and the like: `index` is a list of positions along `dim`."""
    indices = call.tensor("index")
    shape = shape_of(call.tensor("self"))
    dim = normalize_dim(call["dim"], len(shape))

    def target(index: tuple[Expr, ...]) -> Sequence[Index]:
        size = shape[dim] if shape else ONE
        chosen = b.s.load(indices, place_in_list(shape_of(indices), index, dim))
        if wrap:
            position = wrapped_index(b, chosen, size, dim)
        else:
            position = checked_index(b, chosen, size, "index out of range in self", error)
        return (*index[:dim], position, *index[dim + 1 :]) if shape else ()

    return target


def _written(
    b: LoopBuilder, call: Call, shape: Shape, target: Target, value: Callable[..., Scalar], kind: str = "set"
) -> SSAValue:
    return b.scatter(call.tensor("self"), shape, lambda i: (value(i), target(i)), call.type, kind)


def _source(b: LoopBuilder, call: Call, name: str) -> Callable[[tuple[Expr, ...]], Scalar]:
    """Elements of a tensor argument or a number, in the element type of the result."""
    value = call.argument(name)
    element = call.type.element
    if not isinstance(value, SSAValue):
        return lambda _: b.s.number(value, element)
    rank = len(shape_of(value))
    return lambda i: converted(b, b.s.load(value, i if rank else ()), element)


_SCATTER_KINDS = {"add": "add", "multiply": "mul", "sum": "add", "prod": "mul", "amax": "amax", "amin": "amin"}


@parametric
def _scatter(b: LoopBuilder, call: Call, source: str, kind: str | None = "set") -> Replacement:
    shape = shape_of(call.tensor("index"))
    how = _SCATTER_KINDS[call["reduce"]] if kind is None else kind
    return _written(b, call, shape, _along(b, call), _source(b, call, source), how)


add_rule("scatter.src", _scatter("src"), reject_ranks)
add_rule("scatter.value", _scatter("value"), reject_ranks)
add_rule("scatter.reduce", _scatter("src", None), reject_ranks)
add_rule("scatter.value_reduce", _scatter("value", None), reject_ranks)
add_rule("scatter_add", _scatter("src", "add"), reject_ranks)


def _reduced(b: LoopBuilder, call: Call, shape: Shape, target: Target, source: str) -> SSAValue:
    """`scatter_reduce` and `index_reduce`: where not `include_self`, what is written over starts from the identity."""
    element = call.type.element
    how = call["reduce"]
    identity: Number = {"prod": 1, "amax": lowest(element), "amin": highest(element)}.get(how, 0)
    kind = "add" if how == "mean" else _SCATTER_KINDS[how]
    dest = call.tensor("self")
    if not call["include_self"]:
        dest = b.scatter(dest, shape, lambda i: (b.s.constant(identity, element), target(i)), call.type)  # pyright: ignore
    value = _source(b, call, source)
    result = b.scatter(dest, shape, lambda i: (value(i), target(i)), call.type, kind)
    return _divided(b, call, result, shape, target) if how == "mean" else result


def _divided(b: LoopBuilder, call: Call, total: SSAValue, shape: Shape, target: Target) -> SSAValue:
    """Sums divided by how many values each has."""
    s = b.s
    counts = row_major(call.type.shape, I64, call.type.device)
    start = filled_with(b, 1 if call["include_self"] else 0, counts)
    count = b.scatter(start, shape, lambda i: (s.constant(1, I64), target(i)), counts, "add")

    def mean(value: Scalar, n: Scalar) -> Scalar:
        divisor = s.max(n, 1).to(value.element)
        if is_float(value.element):
            return value / divisor
        return s.integer_quotient(value, divisor, floor=True)

    return b.pointwise(mean, call.type, total, count)


@parametric
def _reject_reduce(call: Call, also: Reject | None = None) -> str | None:
    if call.type.element == BOOL:
        return "reductions of bool into indices"
    return None if also is None else also(call)


@lowers("scatter_reduce.two", _reject_reduce(reject_ranks))
def _scatter_reduce(b: LoopBuilder, call: Call) -> Replacement:
    return _reduced(b, call, shape_of(call.tensor("index")), _along(b, call), "src")


@lowers("index_reduce", _reject_reduce())
def _index_reduce(b: LoopBuilder, call: Call) -> Replacement:
    return _reduced(b, call, shape_of(call.tensor("source")), _along_list(b, call), "source")


@lowers("index_add")
def _index_add(b: LoopBuilder, call: Call) -> Replacement:
    value = _source(b, call, "source")
    alpha = call["alpha"]
    error = "IndexError" if len(call.type.shape) <= 1 else "RuntimeError"  # eager has two kernels

    def scaled(index: tuple[Expr, ...]) -> Scalar:
        loaded = b.s.widen(value(index))
        return loaded if alpha == 1 else loaded * alpha

    return _written(b, call, shape_of(call.tensor("source")), _along_list(b, call, error=error), scaled, "add")


@lowers("index_copy")
def _index_copy(b: LoopBuilder, call: Call) -> Replacement:
    return _written(b, call, shape_of(call.tensor("source")), _along_list(b, call), _source(b, call, "source"))


@lowers("index_fill.int_Scalar index_fill.int_Tensor")
def _index_fill(b: LoopBuilder, call: Call) -> Replacement:
    shape = list(shape_of(call.tensor("self")))
    if shape:
        count = shape_of(call.tensor("index"))
        shape[normalize_dim(call["dim"], len(shape))] = count[0] if count else ONE
    return _written(b, call, tuple(shape), _along_list(b, call, wrap=True), _source(b, call, "value"))


# gradients of reads


def _reject_frequency(call: Call) -> str | None:
    return "a gradient scaled by how often each row is read" if call["scale_grad_by_freq"] else None


@lowers("embedding_dense_backward", _reject_frequency)
def _embedding_backward(b: LoopBuilder, call: Call) -> Replacement:
    """Rows of the gradient added up in the weight's rows, but for the padding row."""
    s = b.s
    grad, indices = call.tensor("grad_output"), call.tensor("indices")
    shape = shape_of(grad)
    axes = axes_of_rank(len(shape))
    padding = call["padding_idx"]

    def row() -> Scalar:
        return s.load(indices, axes[:-1]).to(I64)

    def body(index: tuple[Expr, ...]) -> tuple[Scalar, Sequence[Index]]:
        return s.load(grad, index), (row(), index[-1])

    mask = (lambda: row().ne(padding)) if not isinstance(padding, int) or padding >= 0 else None
    return b.scatter(filled_with(b, 0, call.type), shape, body, call.type, "add", mask=mask)


@parametric
def _pad_backward(b: LoopBuilder, call: Call, place: Callable[[Expr, Expr], Expr]) -> Replacement:
    grad = call.tensor("grad_output")
    shape = shape_of(call.tensor("self"))

    def body(index: tuple[Expr, ...]) -> tuple[Scalar, Sequence[Index]]:
        return b.s.load(grad, index), pad_target(call, shape, index, place)

    return b.scatter(filled_with(b, 0, call.type), shape_of(grad), body, call.type, "add")


for _kind, _place_of in PAD_INDEX.items():
    add_rule(" ".join(f"{_kind}_pad{n}d_backward" for n in (1, 2, 3)), _pad_backward(_place_of))
