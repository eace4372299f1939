"""Concatenations that are taken apart, parts that are put together again, and rows looked up in order."""

from __future__ import annotations

from typing import Any

from xdsl.ir import Block, SSAValue

from ....dialects.aten import AtenOp
from ....dialects.sym import ZERO, Expr, as_expr
from ...analysis.memory import escapes, possibly_written
from .._pattern import Pattern, PatternBuilder, PatternCall
from .._replacement import ReplacementBuilder, type_of

_END = 2**62
"""Ends of slices from here on mean the end of the dimension."""
_NO_MATCH = ""


def _bounds(start: Any, end: Any, size: Expr) -> tuple[Expr, Expr] | None:
    """Start and end of a slice, as they are counted from the front; None when that is not known."""
    first = ZERO if start is None else as_expr(start)
    last = size if end is None or (isinstance(end, int) and end >= _END) else as_expr(end)
    known = [e for e in (first, last) if (value := e.as_int()) is not None and value < 0]
    return None if known else (first, last)


def _is_private(value: SSAValue) -> bool:
    """Whether nobody keeps the memory of a value and nobody writes it."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    assert block is not None
    return not escapes(value) and value not in possibly_written(block)


# slice(cat([a, b]), from a's end) == b


def _slice_of_cat(aten: PatternBuilder, parts: Any, cat_dim: Any, dim: Any, start: Any, end: Any) -> PatternCall:
    return aten.slice(aten.cat(parts, cat_dim), dim, start, end)


def _part(parts: tuple[SSAValue, ...], cat_dim: int, dim: int, start: Any, end: Any) -> SSAValue | None:
    rank = len(type_of(parts[0]).shape)
    sizes = [type_of(part).shape for part in parts]
    if rank == 0 or cat_dim % rank != dim % rank or any(len(size) != rank for size in sizes):
        return None
    total = sum((size[dim % rank] for size in sizes), ZERO)
    bounds = _bounds(start, end, total)
    position = ZERO
    for part, size in zip(parts, sizes, strict=True):
        if bounds == (position, position + size[dim % rank]):
            return part
        position += size[dim % rank]
    return None


def _is_part(parts: tuple[SSAValue, ...], cat_dim: int, dim: int, start: Any, end: Any, root: SSAValue) -> str | None:
    part = _part(parts, cat_dim, dim, start, end)
    if part is None or type_of(part).element != type_of(root).element:
        return _NO_MATCH
    return None if _is_private(root) and _is_private(part) else "its memory is written or returned"


def _take_part(
    aten: ReplacementBuilder, parts: tuple[SSAValue, ...], cat_dim: int, dim: int, start: Any, end: Any, root: SSAValue
) -> SSAValue:
    part = _part(parts, cat_dim, dim, start, end)
    assert part is not None
    return part if part.type == root.type else aten.clone(part, types=[root.type])


SLICE_OF_CAT = Pattern("slice_of_cat", _slice_of_cat, _take_part, guard=_is_part, is_exact=True, may_repeat=True)


# cat([x[:k], x[k:]]) == x


def _cat(aten: PatternBuilder, parts: Any, dim: Any) -> PatternCall:
    return aten.cat(parts, dim)


def _whole(parts: tuple[SSAValue, ...], dim: int) -> SSAValue | None:
    """The tensor whose parts along `dim`, in order, are concatenated."""
    source: SSAValue | None = None
    position = ZERO
    for part in parts:
        op = part.owner
        if not isinstance(op, AtenOp) or op.packet not in ("slice", "split", "split_with_sizes", "narrow"):
            return None
        base = op.arg("self")
        rank = len(type_of(base).shape)
        if (source is not None and base is not source) or op.arg("dim") % rank != dim % rank:
            return None
        source = base
        size = type_of(part).shape[dim % rank]
        if _start_of(op, part) is not position:
            return None
        position += size
    return source if source is not None and type_of(source).shape[dim] is position else None


def _start_of(op: AtenOp, part: SSAValue) -> Expr | None:
    """Where a part begins in the tensor that it is of."""
    axis = op.arg("dim") % len(type_of(part).shape)
    if op.packet == "slice":
        bounds = _bounds(op.arg("start"), op.arg("end"), type_of(op.arg("self")).shape[axis])
        return bounds[0] if bounds is not None and op.arg("step") == 1 else None
    if op.packet == "narrow":
        return as_expr(op.arg("start")) if isinstance(op.arg("start"), int | Expr) else None
    before = list(op.results)[: list(op.results).index(part)]  # pyright: ignore[reportArgumentType]
    return sum((type_of(each).shape[axis] for each in before), ZERO)


def _is_whole(parts: tuple[SSAValue, ...], dim: int, root: SSAValue) -> str | None:
    return _NO_MATCH if len(parts) < 2 or _whole(parts, dim) is None else None


def _take_whole(aten: ReplacementBuilder, parts: tuple[SSAValue, ...], dim: int, root: SSAValue) -> SSAValue:
    return aten.clone(_whole(parts, dim), types=[root.type])


CAT_OF_PARTS = Pattern("cat_of_parts", _cat, _take_whole, guard=_is_whole, is_exact=True)


# embedding(w, arange(n)) == w[:n]


def _embedding(aten: PatternBuilder, weight: Any, indices: Any) -> PatternCall:
    return aten.embedding(weight, indices, ..., ..., ...)


def _range(indices: SSAValue) -> tuple[Expr, Expr] | None:
    """First and last but one of the indices, where they are a range of step 1 with at most sizes of 1 around it."""
    while isinstance(indices.owner, AtenOp) and indices.owner.packet in ("unsqueeze", "view"):
        if sum(size.as_int() != 1 for size in type_of(indices).shape) > 1:
            return None
        indices = indices.owner.operands[0]
    op = indices.owner
    if not isinstance(op, AtenOp) or op.packet != "arange":
        return None
    args = op.args()
    start, end, step = args.get("start", 0), args["end"], args.get("step", 1)
    if step != 1 or not all(isinstance(each, int | Expr) for each in (start, end)):
        return None
    return as_expr(start), as_expr(end)


def _is_in_order(weight: SSAValue, indices: SSAValue, root: SSAValue) -> str | None:
    bounds = _range(indices)
    if bounds is None:
        return _NO_MATCH
    first, last = (each.as_int() for each in bounds)
    rows = type_of(weight).shape[0].as_int()
    if first is None or last is None or rows is None or not 0 <= first <= last <= rows:
        return "the rows may be too few: eager would report the index"
    return None


def _rows(aten: ReplacementBuilder, weight: SSAValue, indices: SSAValue, root: SSAValue) -> SSAValue:
    bounds = _range(indices)
    assert bounds is not None
    type_ = type_of(weight)
    rows = type_.with_(shape=(bounds[1] - bounds[0], *type_.shape[1:]), strides=type_.strides)
    part = aten.slice.Tensor(weight, dim=0, start=bounds[0], end=bounds[1], types=[rows])
    return aten.view(aten.clone(part), size=type_of(root).shape)


EMBEDDING_OF_RANGE = Pattern(
    "embedding_of_range", _embedding, _rows, guard=_is_in_order, is_exact=True, may_repeat=True
)
