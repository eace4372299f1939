"""Windows over the last dimensions: max and average pools, adaptive ones, and their gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ....dialects.aten.types import ELEMENT_TYPES
from ....dialects.parametric import parametric
from ....dialects.sym import ONE, Expr, as_expr, ceildiv, const, smax, smin
from ..dtypes import I32, I64, is_float, lowest
from ..nests import LoopBuilder, Shape, shape_of, type_of
from ..reshape import linearize
from ..rules import Call, Replacement, add_rule
from ..scalar import Scalar
from ..scalar_builder import Index, ScalarBuilder
from .gather import in_range
from .reductions import comparable, compared, ordered, reject_wide_unsigned
from .scatter import filled_with

_FAR = (1 << 63) - 1


def per_dim(values: Sequence[int] | int, dims: int, default: Sequence[int] = ()) -> list[int]:
    """A setting for each pooled dimension; one number stands for all, none for `default`."""
    listed = [values] if isinstance(values, int) else list(values)
    return list(default) if not listed else listed * dims if len(listed) == 1 else listed


class Windows:
    """The windows of a pool over the last `dims` dimensions of the input."""

    def __init__(self, call: Call, shape: Shape, dims: int) -> None:
        self.call = call
        self.first = len(shape) - dims
        self.sizes = shape[self.first :]
        self.kernel = per_dim(call["kernel_size"], dims)
        self.stride = per_dim(call["stride"], dims, self.kernel)
        self.padding = per_dim(call["padding"], dims)
        self.dilation = per_dim(call["dilation"] if call.has("dilation") else 1, dims)

    @property
    def window(self) -> list[Expr]:
        """Sizes of a window."""
        return [const(k) for k in self.kernel]

    def places(self, output: Sequence[Expr], inner: Sequence[Expr]) -> list[Expr]:
        """Where element `inner` of the window of output element `output` lies."""
        parts = zip(output, inner, self.stride, self.padding, self.dilation, strict=True)
        return [o * stride - padding + i * dilation for o, i, stride, padding, dilation in parts]

    def mask(self, b: LoopBuilder, output: Sequence[Expr], places: Sequence[Expr]) -> Scalar | None:
        """Whether a place is in the input."""
        return inside(b, places, self.sizes) if self.is_padded else None

    @property
    def is_padded(self) -> bool:
        """Whether a window may leave the input."""
        return any(self.padding) or bool(self.call["ceil_mode"])

    def count(self, output: Sequence[Expr]) -> Expr:
        """How many elements a window's sum is divided by."""
        override = self.call["divisor_override"] if self.call.has("divisor_override") else None
        if override is not None:
            return as_expr(override)
        count = ONE
        for o, kernel, stride, padding, size in zip(
            output, self.kernel, self.stride, self.padding, self.sizes, strict=True
        ):
            if not self.is_padded:
                count = count * kernel
                continue
            begin = o * stride - padding
            end = smin(begin + kernel, size + padding)
            if not self.call["count_include_pad"]:
                begin, end = smax(begin, as_expr(0)), smin(end, size)
            count = count * (end - begin)
        return count


def inside(b: LoopBuilder, positions: Sequence[Expr], sizes: Sequence[Expr]) -> Scalar:
    """Whether a place lies in the input."""
    mask: Scalar | None = None
    for position, size in zip(positions, sizes, strict=True):
        each = in_range(b, b.s.index(position), size)
        mask = each if mask is None else mask & each
    assert mask is not None
    return mask


#: makes the windows of a pool over the last dimensions of a shape, so many of them
Pool: TypeAlias = Callable[[Call, Shape, int], "Windows | Adaptive"]
Element: TypeAlias = Callable[[Shape], tuple[Scalar, Scalar]]


def _largest(s: ScalarBuilder, window: Sequence[Expr], element: Element) -> list[Scalar]:
    """The largest of (value, place) in a window: the first of equal numbers, but the last NaN, as eager has it.

    A reduction takes the lowest of equal places, so that the place of a NaN is one inverted, below all others.
    """

    def ranked(inner: Shape) -> list[Scalar]:
        value, place = element(inner)
        return [value, s.where(s.isnan(value), ~place, place) if is_float(value.element) else place]

    value, rank = s.reduce(["argmax"], window, ranked)
    return [value, s.where(rank < 0, ~rank, rank) if is_float(value.element) else rank]


def _wide(s: ScalarBuilder, value: Scalar) -> Scalar:
    """In a type whose signed order is that of the value; bytes in one that has as many lanes as a float."""
    return value.to(I32) if value.element == ELEMENT_TYPES["uint8"] else ordered(s, value)


@parametric
def _max_pool(b: LoopBuilder, call: Call, kind: Pool, dims: int) -> Replacement:
    """The maximum of each window and its row-major position in the pooled dimensions."""
    s = b.s
    source = call.tensor("self")
    pool = kind(call, shape_of(source), dims)
    # beside positions, of 64 bits, bytes are no faster
    is_alone = call.op.results[1].first_use is None
    prepare, finish = (comparable, compared) if is_alone else (_wide, lambda value, element: value.to(element))

    def body(index: tuple[Expr, ...]) -> list[Scalar]:
        outer, output = index[: pool.first], index[pool.first :]

        def element(inner: tuple[Expr, ...]) -> tuple[Scalar, Scalar]:
            place = pool.places(output, inner)
            where = s.index(linearize(place, list(pool.sizes)))
            mask = pool.mask(b, output, place)
            value = prepare(s, s.load(source, (*outer, *place), mask))
            if mask is None:
                return value, where
            low = s.constant(lowest(value.element), value.element)
            return s.where(mask, value, low), s.where(mask, where, s.constant(_FAR, I64))

        value, position = _largest(s, pool.window, element)
        return [finish(value, type_of(source).element), position]

    return b.generate(body, *call.types)


@parametric
def _max_pool_backward(b: LoopBuilder, call: Call, dims: int) -> Replacement:
    """Each gradient is added at the position that gave the maximum."""
    s = b.s
    grad, indices = call.tensor("grad_output"), call.tensor("indices")
    sizes = call.type.shape[len(call.type.shape) - dims :]

    def body(index: tuple[Expr, ...]) -> tuple[Scalar, Sequence[Index]]:
        position = s.load(indices, index).to(I64)
        parts: list[Index] = []
        for size in reversed(sizes[1:]):
            parts.append(s.binary("rest", position, s.index(size)))
            position = s.binary("quotient", position, s.index(size))
        return s.load(grad, index), [*index[: len(index) - dims], position, *reversed(parts)]

    return b.scatter(filled_with(b, 0, call.type), shape_of(grad), body, call.type, "add")


add_rule("max_pool2d_with_indices_backward adaptive_max_pool2d_backward", _max_pool_backward(2))
add_rule("max_pool3d_with_indices_backward adaptive_max_pool3d_backward", _max_pool_backward(3))


@parametric
def _avg_pool(b: LoopBuilder, call: Call, kind: Pool, dims: int) -> Replacement:
    """The mean of each window."""
    s = b.s
    source = call.tensor("self")
    pool = kind(call, shape_of(source), dims)

    def body(index: tuple[Expr, ...]) -> Scalar:
        outer, output = index[: pool.first], index[pool.first :]

        def element(inner: tuple[Expr, ...]) -> Scalar:
            places = pool.places(output, inner)
            return s.widen(s.load(source, (*outer, *places), pool.mask(b, output, places)))

        (total,) = s.reduce(["sum"], pool.window, element)
        return quotient(b, total, pool.count(output))

    return b.generate(body, call.type)


def quotient(b: LoopBuilder, total: Scalar, count: Expr) -> Scalar:
    """total / count; integers round to zero."""
    divisor = b.s.number(count, total.element)
    return total / divisor if is_float(total.element) else b.s.integer_quotient(total, divisor, floor=False)


@parametric
def _avg_pool_backward(b: LoopBuilder, call: Call, dims: int) -> Replacement:
    """Each element of the input sums the gradients of the windows that hold it: at most ceil(kernel / stride)."""
    s = b.s
    grad = call.tensor("grad_output")
    windows = Windows(call, call.type.shape, dims)
    outputs = shape_of(grad)[windows.first :]
    reach = [const(-(-k // st)) for k, st in zip(windows.kernel, windows.stride, strict=True)]

    def body(index: tuple[Expr, ...]) -> Scalar:
        outer, place = index[: windows.first], index[windows.first :]

        def element(inner: tuple[Expr, ...]) -> Scalar:
            output = [
                (p + padding) // stride - i
                for p, i, stride, padding in zip(place, inner, windows.stride, windows.padding, strict=True)
            ]
            mask = inside(b, output, outputs)
            for o, p, kernel, stride, padding in zip(
                output, place, windows.kernel, windows.stride, windows.padding, strict=True
            ):
                mask = mask & (s.index(p + padding - o * stride) < kernel)
            value = s.widen(s.load(grad, (*outer, *output), mask))
            divisor = s.index(windows.count(output))
            return value / s.where(mask, divisor, 1).to(value.element)

        return s.reduce(["sum"], reach, element)[0]

    return b.generate(body, call.type)


add_rule("avg_pool2d_backward", _avg_pool_backward(2))
add_rule("avg_pool3d_backward", _avg_pool_backward(3))


# adaptive pools: window o of a dimension is [floor(o * size / outputs), ceil((o + 1) * size / outputs))


def _bounds(o: Expr, size: Expr, outputs: Expr) -> tuple[Expr, Expr]:
    return o * size // outputs, ceildiv((o + 1) * size, outputs)


def _window_sizes(size: Expr, outputs: Expr) -> frozenset[int]:
    """The sizes of all windows; none where that is not known, or there are too many to look at."""
    known, parts = size.as_int(), outputs.as_int()
    if known is None or parts is None or not 0 < parts <= MOST_WINDOWS:
        return frozenset()
    return frozenset(-(-(o + 1) * known // parts) - o * known // parts for o in range(parts))


#: most windows of a dimension whose sizes are looked at
MOST_WINDOWS = 1024


def _common_size(size: Expr, outputs: Expr) -> Expr | None:
    """The size of every window, as 10 where 56 points become 6, though they overlap; None where they differ."""
    if _divides(size, outputs):
        return size // outputs
    sizes = _window_sizes(size, outputs)
    return const(*sizes) if len(sizes) == 1 else None


def _longest(size: Expr, outputs: Expr) -> Expr:
    """An upper bound of the windows' sizes; exact where these are known."""
    common, sizes = _common_size(size, outputs), _window_sizes(size, outputs)
    if common is not None:
        return common
    return const(max(sizes)) if sizes else ceildiv(size, outputs) + 1


def _divides(size: Expr, outputs: Expr) -> bool:
    known, parts = size.as_int(), outputs.as_int()
    return outputs is ONE or (known is not None and bool(parts) and known % parts == 0)


class Adaptive:
    """The windows of an adaptive pool from `sizes` to `outputs`."""

    def __init__(self, call: Call, shape: Shape, dims: int, result: Shape = ()) -> None:
        self.first = len(shape) - dims
        result = result or call.type.shape
        self.sizes = shape[self.first :]
        # where the result has no elements there is no window, whose size would be one of parts of 0
        self.outputs = [ONE if size.as_int() == 0 else size for size in result[len(result) - dims :]]
        pairs = list(zip(self.sizes, self.outputs, strict=True))
        self.window = [_longest(size, out) for size, out in pairs]
        self.exact = all(_divides(size, out) for size, out in pairs)

    def places(self, output: Sequence[Expr], inner: Sequence[Expr]) -> list[Expr]:
        """Where an element of a window lies."""
        parts = zip(output, inner, self.sizes, self.outputs, strict=True)
        return [_bounds(o, size, out)[0] + i for o, i, size, out in parts]

    def mask(self, b: LoopBuilder, output: Sequence[Expr], places: Sequence[Expr]) -> Scalar | None:
        """Whether a place is in the window."""
        mask: Scalar | None = None
        for place, o, size, out in zip(places, output, self.sizes, self.outputs, strict=True):
            if _common_size(size, out) is None:
                each = b.s.index(place) < b.s.index(_bounds(o, size, out)[1])
                mask = each if mask is None else mask & each
        return mask

    def count(self, output: Sequence[Expr]) -> Expr:
        """The number of elements of a window."""
        count = ONE
        for o, size, out in zip(output, self.sizes, self.outputs, strict=True):
            begin, end = _bounds(o, size, out)
            common = _common_size(size, out)
            count = count * (end - begin if common is None else common)
        return count


for _dims in (1, 2, 3):
    add_rule(f"avg_pool{_dims}d", _avg_pool(Windows, _dims))
for _dims in (2, 3):
    add_rule(f"max_pool{_dims}d_with_indices", _max_pool(Windows, _dims), reject_wide_unsigned)
    add_rule(f"adaptive_max_pool{_dims}d", _max_pool(Adaptive, _dims), reject_wide_unsigned)
    add_rule(f"_adaptive_avg_pool{_dims}d adaptive_avg_pool{_dims}d", _avg_pool(Adaptive, _dims))


@parametric
def _divisible(call: Call, dims: int) -> str | None:
    pool = Adaptive(call, shape_of(call.tensor("self")), dims, shape_of(call.tensor("grad_output")))
    return None if pool.exact else "windows of an adaptive pool that overlap"


@parametric
def _adaptive_avg_backward(b: LoopBuilder, call: Call, dims: int) -> Replacement:
    """Windows that do not overlap: each element takes its share of one gradient."""
    grad = call.tensor("grad_output")
    pool = Adaptive(call, shape_of(call.tensor("self")), dims, shape_of(grad))

    def body(index: tuple[Expr, ...]) -> Scalar:
        places = index[pool.first :]
        output = [p // (size // out) for p, size, out in zip(places, pool.sizes, pool.outputs, strict=True)]
        value = b.s.widen(b.s.load(grad, (*index[: pool.first], *output)))
        return value / b.s.number(pool.count(output), value.element)

    return b.generate(body, call.type)


add_rule("_adaptive_avg_pool2d_backward", _adaptive_avg_backward(2), _divisible(2))
add_rule("_adaptive_avg_pool3d_backward", _adaptive_avg_backward(3), _divisible(3))
