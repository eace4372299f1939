"""Reading at computed indices: embedding, index, gather, take, and pads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ....dialects.parametric import parametric
from ....dialects.sym import ONE, ZERO, Expr, Ranges, as_expr, prove_nonneg, smax, smin
from ..dtypes import BOOL, I64, U8, kind
from ..nests import (
    LoopBuilder,
    Shape,
    broadcast_index,
    normalize_dim,
    shape_of,
    type_of,
)
from ..rules import Call, Replacement, add_rule, lowers
from ..scalar import Scalar
from ..scalar_builder import Index
from .reductions import size_of


def in_range(b: LoopBuilder, position: Scalar, size: Expr) -> Scalar:
    """Whether an int64 position lies in 0 .. size - 1."""
    return (position >= 0) & (position < b.s.index(size))


def checked_index(b: LoopBuilder, value: Scalar, size: Expr, message: str, error: str = "IndexError") -> Scalar:
    """An index that must not be negative, as int64, with the check that eager makes."""
    position = value.to(I64)
    b.s.check(in_range(b, position, size), message, error)
    return position


def wrapped_index(b: LoopBuilder, value: Scalar, size: Expr, dim: int, check: bool = True) -> Scalar:
    """An index that may count from the end, as an int64 one that counts from the front."""
    position = value.to(I64)
    if value.element != BOOL and kind(value.element) != "unsigned":
        position = b.s.where(position < 0, position + b.s.index(size), position)
    if check:
        message = f"index is out of bounds for dimension {dim} with size {size}"
        b.s.check(in_range(b, position, size), message, "IndexError")
    return position


@lowers("embedding")
def _embedding(b: LoopBuilder, call: Call) -> Replacement:
    weight, indices = call.tensor("weight"), call.tensor("indices")
    rows = shape_of(weight)[0]

    def body(index: tuple[Expr, ...]) -> Scalar:
        row = b.s.load(indices, index[:-1])
        return b.s.load(weight, (checked_index(b, row, rows, "index out of range in self"), index[-1]))

    return b.generate(body, call.type)


class AdvancedIndex:
    """How a list of index tensors, with None for whole dimensions, addresses a tensor.

    The index tensors are broadcast to one shape, whose dimensions stand where the first of them stood when they are
    adjacent, else in front.
    """

    def __init__(self, tensors: Sequence[SSAValue | None], rank: int, shape: Shape) -> None:
        self.tensors = [*tensors, *[None] * (rank - len(tensors))]
        self.shape = shape
        places = [d for d, t in enumerate(self.tensors) if t is not None]
        self.rank = max((len(shape_of(t)) for t in tensors if t is not None), default=0)
        adjacent = places == list(range(places[0], places[-1] + 1)) if places else True
        self.begin = places[0] if places and adjacent else 0

    def domain(self) -> Shape:
        """The shape of the indexed result."""
        kept = [size for size, t in zip(self.shape, self.tensors, strict=True) if t is None]
        common = [ONE] * self.rank
        for tensor in self.tensors:
            sizes = () if tensor is None else shape_of(tensor)
            for k, size in enumerate(sizes, self.rank - len(sizes)):
                common[k] = common[k] if size is ONE else size
        return (*kept[: self.begin], *common, *kept[self.begin :])

    def target(self, b: LoopBuilder, index: Sequence[Expr], check: bool = True) -> list[Index]:
        """The index in the addressed tensor for an index of the domain."""
        common = index[self.begin : self.begin + self.rank]
        kept = iter([*index[: self.begin], *index[self.begin + self.rank :]])
        parts: list[Index] = []
        for d, tensor in enumerate(self.tensors):
            if tensor is None:
                parts.append(next(kept))
                continue
            value = b.s.load(tensor, broadcast_index(shape_of(tensor), common))
            parts.append(wrapped_index(b, value, self.shape[d], d, check))
        return parts


def reject_masks(call: Call) -> str | None:
    """Masks select a number of elements that only the data tell."""
    for tensor in call.tensors("indices"):
        if tensor is not None and type_of(tensor).element in (BOOL, U8):
            return "a mask as index gives a size that depends on data"
    return None


@parametric
def _index(b: LoopBuilder, call: Call, check: bool) -> Replacement:
    source = call.tensor("self")
    shape = shape_of(source)
    advanced = AdvancedIndex(call.tensors("indices"), len(shape), shape)
    return b.generate(lambda i: b.s.load(source, advanced.target(b, i, check)), call.type)


add_rule("index.Tensor", _index(check=True), reject_masks)
add_rule("_unsafe_index.Tensor", _index(check=False), reject_masks)


@lowers("_unsafe_masked_index", reject_masks)
def _masked_index(b: LoopBuilder, call: Call) -> Replacement:
    """Elements at indices where the mask holds, else the fill value."""
    source, mask = call.tensor("self"), call.tensor("mask")
    shape = shape_of(source)
    advanced = AdvancedIndex(call.tensors("indices"), len(shape), shape)

    def body(index: tuple[Expr, ...]) -> Scalar:
        keep = b.s.truthy(b.at(mask, index))
        return b.s.load(source, advanced.target(b, index, check=False), keep, call["fill"])

    return b.generate(body, call.type)


def place_in_list(indices: Shape, index: Sequence[Expr], dim: int) -> tuple[Expr, ...]:
    """Where the position for an index of the result stands in a list of positions; one position may be 0-d, and a
    0-d tensor takes a list of one."""
    if not indices:
        return ()
    return (index[dim] if index else ZERO,)


@lowers("index_select")
def _index_select(b: LoopBuilder, call: Call) -> Replacement:
    source, indices = call.tensor("self"), call.tensor("index")
    shape = shape_of(source)
    dim = normalize_dim(call["dim"], len(shape))
    # Eager has two kernels, which raise different errors.
    first = ("index out of range in self", "IndexError")
    message, error = first if dim == 0 else ("INDICES element is out of DATA bounds", "RuntimeError")

    def body(index: tuple[Expr, ...]) -> Scalar:
        chosen = b.s.load(indices, place_in_list(shape_of(indices), index, dim))
        size = shape[dim] if shape else ONE
        position = checked_index(b, chosen, size, message, error)
        return b.s.load(source, (*index[:dim], position, *index[dim + 1 :]) if shape else ())

    return b.generate(body, call.type)


def reject_ranks(call: Call) -> str | None:
    """A 0-d tensor may stand for one with a single element; that is rare enough for ATen."""
    if len(shape_of(call.tensor("self"))) != len(shape_of(call.tensor("index"))):
        return "a 0-d tensor together with one that has dimensions"
    return None


@lowers("gather", reject_ranks)
def _gather(b: LoopBuilder, call: Call) -> Replacement:
    source, indices = call.tensor("self"), call.tensor("index")
    shape = shape_of(source)
    dim = normalize_dim(call["dim"], len(shape))

    def body(index: tuple[Expr, ...]) -> Scalar:
        if not shape:
            checked_index(b, b.s.load(indices, ()), ONE, "index is out of bounds", "RuntimeError")
            return b.s.load(source, ())
        message = f"index is out of bounds for dimension {dim} with size {shape[dim]}"
        position = checked_index(b, b.s.load(indices, index), shape[dim], message, "RuntimeError")
        return b.s.load(source, (*index[:dim], position, *index[dim + 1 :]))

    return b.generate(body, call.type)


def _constant_sizes(call: Call) -> str | None:
    if any(not size.is_constant for size in shape_of(call.tensor("self"))):
        return "a flat index into a tensor of symbolic size"
    return None


@lowers("take", _constant_sizes)
def _take(b: LoopBuilder, call: Call) -> Replacement:
    """Elements by their row-major position."""
    s = b.s
    source, indices = call.tensor("self"), call.tensor("index")
    shape = shape_of(source)
    total = size_of(shape, list(range(len(shape))))

    def body(index: tuple[Expr, ...]) -> Scalar:
        position = wrapped_index(b, s.load(indices, index), total, 0)
        parts: list[Index] = []
        for size in reversed(shape[1:]):
            divisor = max(size.as_int() or 1, 1)
            parts.append(s.binary("rest", position, divisor))
            position = s.binary("quotient", position, divisor)
        return s.load(source, [position, *reversed(parts)] if shape else ())

    return b.generate(body, call.type)


# pads


def _pads(call: Call, rank: int) -> list[int | Expr]:
    """The padding in front of each dimension."""
    before: list[int | Expr] = [0] * rank
    flat = call["pad"] if call.has("pad") else call["padding"]
    for k in range(len(flat) // 2):
        before[rank - 1 - k] = flat[2 * k]
    return before


def _reject_crops(call: Call) -> str | None:
    """Eager crops before it adds, and raises where it crops more than there is."""
    flat, ranges = [as_expr(amount) for amount in call["pad"]], call.ranges or Ranges()
    for number, size in enumerate(reversed(shape_of(call.tensor("self"))[-(len(flat) // 2) :] if flat else ())):
        sides = flat[2 * number : 2 * number + 2]
        if ZERO in sides:
            continue  # the other side crops, or none does: the size of the result says enough
        if not all(prove_nonneg(side, ranges) or prove_nonneg(size + side, ranges) for side in sides):
            return f"a dimension of size {size} may be smaller than what its padding crops"
    return None


@lowers("constant_pad_nd", _reject_crops)
def _constant_pad(b: LoopBuilder, call: Call) -> Replacement:
    s = b.s
    source = call.tensor("self")
    shape = shape_of(source)
    before = _pads(call, len(shape))

    def body(index: tuple[Expr, ...]) -> Scalar:
        parts = [axis - pad for axis, pad in zip(index, before, strict=True)]
        mask: Scalar | None = None
        for part, size, result, pad in zip(parts, shape, call.type.shape, before, strict=True):
            if result is size and pad == 0:
                continue
            inside = in_range(b, s.index(part), size)
            mask = inside if mask is None else mask & inside
        return s.load(source, parts, mask, call["value"])

    return b.generate(body, call.type)


def reflected(position: Expr, size: Expr) -> Expr:
    """The position mirrored at both ends: n - 1 - |n - 1 - |i||."""
    inner = smax(position, -position)
    outer = size - 1 - inner
    return size - 1 - smax(outer, -outer)


def replicated(position: Expr, size: Expr) -> Expr:
    """The nearest position in range."""
    return smin(smax(position, as_expr(0)), size - 1)


PAD_INDEX = {"reflection": reflected, "replication": replicated}


def pad_target(call: Call, shape: Shape, index: Sequence[Expr], place: Callable[[Expr, Expr], Expr]) -> list[Expr]:
    """The source index of an index of the padded tensor."""
    before = _pads(call, len(shape))
    padded = len(call["padding"]) // 2
    first = len(shape) - padded
    return [
        place(part - pad, size) if d >= first else part
        for d, (part, size, pad) in enumerate(zip(index, shape, before, strict=True))
    ]


@parametric
def _pad(b: LoopBuilder, call: Call, place: Callable[[Expr, Expr], Expr]) -> Replacement:
    source = call.tensor("self")
    return b.generate(lambda i: b.s.load(source, pad_target(call, shape_of(source), i, place)), call.type)


for _kind, _place in PAD_INDEX.items():
    add_rule(" ".join(f"{_kind}_pad{n}d" for n in (1, 2, 3)), _pad(_place))
