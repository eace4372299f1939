"""When is an index map over a tensor a strided view of its memory?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce

from ...dialects.aten.types import TensorType
from ...dialects.sym import ONE, ZERO, AxesAttr, Expr, MapAttr, Ranges, prove_eq, prove_le, simplify, smax, symbol


def linear_index(index_map: MapAttr, strides: Sequence[Expr]) -> Expr:
    """Distance in elements, from the first one, of the element at `index_map` in a tensor of the given strides."""
    return reduce(lambda total, term: total + term[0] * term[1], zip(index_map.data, strides, strict=True), ZERO)


@lru_cache(maxsize=4096)
def extent(tensor: TensorType) -> Expr:
    """Number of elements between the first and the last one, both included; 0 for an empty tensor."""
    total = ONE
    for size, stride in zip(tensor.shape, tensor.strides, strict=True):
        if size is ZERO:
            return ZERO
        total = total + (size - 1) * stride
    return total


def strides_and_offset(
    source: TensorType, axes: AxesAttr, index_map: MapAttr, ranges: Ranges
) -> tuple[tuple[Expr, ...], Expr] | None:
    """Strides of each axis and offset, in elements, of a view; None when the map is not linear in memory.

    `k*(x floordiv k) + x mod k == x` on the linear index makes most reshapes strided.
    """
    linear = linear_index(index_map, source.strides)
    parts = linear.split(axes.names)
    if parts is None:
        parts = simplify(linear, Ranges.of_axes(axes.data, ranges)).split(axes.names)
    if parts is None:
        parts = _split_by_sizes(source, axes, linear, ranges)
    if parts is None:
        return None
    coefficients, offset = parts
    return tuple(coefficients.get(name, ZERO) for name in axes.names), offset


def _split_by_sizes(
    source: TensorType, axes: AxesAttr, linear: Expr, ranges: Ranges
) -> tuple[dict[str, Expr], Expr] | None:
    """Coefficients of the axes and the rest, found with names for those sizes of the source that are sums.

    A convolution's result has a size `h = s0 - s1 + 3` and strides that are multiples of `max(h, 1)`. With `h` for the
    sum, which is `s0 = h + s1 - 3`, divisions by it are seen through. `h` is at least 1 wherever there is an element;
    without one, any strides will do.
    """
    named: dict[str, Expr] = {}
    values: list[dict[str, Expr]] = []
    for size in source.shape:
        name = f"size_{len(named)}"
        value = _solve(_substituted(size, values), name)
        if value is not None:
            named[name] = smax(size, ONE)
            values.append(value)
    if not named:
        return None
    known = Ranges(
        {**ranges.intervals, **dict.fromkeys(named, (1, None))}, ranges.divisors, ranges.sizes, ranges.positive
    )
    domain = Ranges.of_axes([(name, _substituted(size, values)) for name, size in axes.data], known)
    parts = simplify(_substituted(linear, values), domain).split(axes.names)
    return parts and ({axis: each.subs(named) for axis, each in parts[0].items()}, parts[1].subs(named))


def _solve(size: Expr, name: str) -> dict[str, Expr] | None:
    """What a symbol of a sum is when the sum is called `name`; None where none occurs in it once, as it is."""
    for free in sorted(size.free_symbols) if len(size.terms) > 1 else ():
        coefficient = size.coefficient(free)
        if coefficient is not None and coefficient.as_int() in (1, -1):
            return {free: coefficient * (symbol(name) - (size - coefficient * symbol(free)))}
    return None


def _substituted(expr: Expr, values: Sequence[dict[str, Expr]]) -> Expr:
    """An expression with symbols replaced, step by step."""
    return reduce(Expr.subs, values, expr)


def strides_agree(sizes: Sequence[Expr], left: Sequence[Expr], right: Sequence[Expr], ranges: Ranges) -> bool:
    """Whether strides are equal where they count: as in torch, not in dimensions of size 0 or 1.

    With dynamic shapes such a size need not be a number: `(s0 + 4) floordiv 5` for an `s0` of at most 5.
    """
    return all(
        size.as_int() in (0, 1) or a is b or prove_eq(a, b, ranges) or prove_le(size, ONE, ranges)
        for size, a, b in zip(sizes, left, right, strict=True)
    )


def is_strided_view(source: TensorType, axes: AxesAttr, index_map: MapAttr, result: TensorType, ranges: Ranges) -> bool:
    """Whether the map is linear in the memory of `source` with exactly the strides of `result`."""
    found = strides_and_offset(source, axes, index_map, ranges)
    return found is not None and strides_agree(axes.sizes, found[0], result.strides, ranges)
