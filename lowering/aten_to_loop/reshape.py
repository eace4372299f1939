"""Index maps of reshapes: which source index each result index has."""

from __future__ import annotations

from functools import lru_cache

from ...dialects.sym import ONE, ZERO, Expr, MapAttr
from .nests import Shape, axes_of_rank


@lru_cache(maxsize=8192)
def reshape_map(source: Shape, result: Shape) -> MapAttr:
    """The index map of a view of `source` with the shape `result`, of as many elements.

    Dimensions are taken in groups of equal products, so that `(b, s, h*d) -> (b, s, h, d)` only splits the last one.
    """
    exprs = [ZERO] * len(source)
    if any(size.as_int() == 0 for size in (*source, *result)):
        return MapAttr.of(*exprs)
    axes = axes_of_rank(len(result))
    inputs = [k for k, size in enumerate(source) if size is not ONE]
    outputs = [k for k, size in enumerate(result) if size is not ONE]
    for group_in, group_out in _groups(source, inputs, result, outputs):
        linear = linearize([axes[k] for k in group_out], [result[k] for k in group_out])
        for k, expr in zip(group_in, delinearize(linear, [source[k] for k in group_in]), strict=True):
            exprs[k] = expr
    return MapAttr.of(*exprs)


def linearize(index: list[Expr], sizes: list[Expr]) -> Expr:
    """The row-major position of an index."""
    linear = ZERO
    for part, size in zip(index, sizes, strict=True):
        linear = linear * size + part
    return linear


def delinearize(linear: Expr, sizes: list[Expr]) -> list[Expr]:
    """The index of a row-major position, outermost first; the position must be in range."""
    parts: list[Expr] = []
    for size in reversed(sizes[1:]):
        parts.append(linear % size)
        linear = linear // size
    if sizes:
        parts.append(linear)
    return parts[::-1]


def _groups(source: Shape, inputs: list[int], result: Shape, outputs: list[int]) -> list[tuple[list[int], list[int]]]:
    """Split both lists of dimensions into the shortest runs whose sizes have equal products."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(inputs) or j < len(outputs):
        group: tuple[list[int], list[int]] = ([], [])
        products = [ONE, ONE]
        while True:
            take_source = j >= len(outputs) or (i < len(inputs) and not _is_larger(*products))
            if take_source:
                products[0] = products[0] * source[inputs[i]]
                group[0].append(inputs[i])
                i += 1
            else:
                products[1] = products[1] * result[outputs[j]]
                group[1].append(outputs[j])
                j += 1
            if products[0] is products[1] or (i >= len(inputs) and j >= len(outputs)):
                break
        groups.append(group)
    return groups


def _is_larger(left: Expr, right: Expr) -> bool:
    """Whether the left product should wait for the right one to grow; a guess where sizes are symbolic."""
    known_left, known_right = left.as_int(), right.as_int()
    if known_left is not None and known_right is not None:
        return known_left > known_right
    return _magnitude(left) > _magnitude(right)


def _magnitude(expr: Expr) -> tuple[int, int]:
    monomial, coefficient = expr.terms[0]
    return len(monomial), abs(coefficient)
