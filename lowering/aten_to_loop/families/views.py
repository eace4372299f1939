"""Views as index maps, and the copies that are views of one source."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ....dialects.parametric import parametric
from ....dialects.sym import ONE, ZERO, Expr, as_expr, prove_nonneg, smax
from ..nests import (
    LoopBuilder,
    Shape,
    axes_of_rank,
    broadcast_map,
    normalize_dim,
    shape_of,
)
from ..reshape import delinearize, linearize, reshape_map
from ..rules import Call, Replacement, add_rule, lowers

#: the source index for each index of the result, given by its axes
Mapping = Callable[[LoopBuilder, Call, Shape, tuple[Expr, ...]], Sequence[Expr]]


def add_views(table: dict[str, Mapping]) -> None:
    """Enter views by their index mapping; for each a `_copy` overload is entered that is a new tensor."""
    for names, mapping in table.items():
        add_rule(names, _view(mapping), any_dtype=True)
        add_rule(_copy_names(names), _copy(mapping))


def _copy_names(names: str) -> str:
    """`slice.Tensor` -> `slice_copy.Tensor`"""
    parts = [name.partition(".") for name in names.split()]
    return " ".join(f"{packet}_copy{dot}{overload}" for packet, dot, overload in parts)


@parametric
def _view(b: LoopBuilder, call: Call, mapping: Mapping) -> Replacement:
    source = call.tensor("self")
    axes = axes_of_rank(len(call.type.shape))
    return b.view(source, mapping(b, call, shape_of(source), axes), call.type)


@parametric
def _copy(b: LoopBuilder, call: Call, mapping: Mapping) -> Replacement:
    source = call.tensor("self")
    axes = axes_of_rank(len(call.type.shape))
    return b.copy(source, mapping(b, call, shape_of(source), axes), call.type)


def _reshape(b: LoopBuilder, call: Call) -> Replacement:
    source = call.tensor("self")
    return b.view_map(source, reshape_map(shape_of(source), call.type.shape), call.type)


def _reshape_copy(b: LoopBuilder, call: Call) -> Replacement:
    source = call.tensor("self")
    index_map = reshape_map(shape_of(source), call.type.shape)
    return b.generate(lambda _: b.s.load_map(source, index_map), call.type)


add_rule(
    "view _unsafe_view reshape _reshape_alias flatten.using_ints unflatten.int view_as reshape_as squeeze squeeze.dim "
    "squeeze.dims unsqueeze alias detach lift_fresh lift",
    _reshape,
    any_dtype=True,
)
add_rule(
    "view_copy squeeze_copy squeeze_copy.dim squeeze_copy.dims unsqueeze_copy alias_copy detach_copy",
    _reshape_copy,
)


def wrapped(b: LoopBuilder, index: int | Expr, size: Expr) -> Expr:
    """An index or a bound that may count from the end, as one that counts from the front."""
    known = size.as_int()
    if isinstance(index, int):
        if index >= 0:
            return as_expr(index)
        return as_expr(max(index + known, 0)) if known is not None else smax(size + index, ZERO)
    if prove_nonneg(index, b.ranges):
        return index
    if prove_nonneg(-1 - index, b.ranges):
        return index + size
    return index % size


def _permuted(axes: Sequence[Expr], order: Sequence[int]) -> list[Expr]:
    """The source index when dimension k of the result is dimension order[k] of the source."""
    exprs = [ZERO] * len(order)
    for axis, dim in zip(axes, order, strict=True):
        exprs[normalize_dim(dim, len(order))] = axis
    return exprs


def _swapped(axes: Sequence[Expr], first: int, second: int) -> list[Expr]:
    exprs = list(axes)
    if exprs:
        a, c = normalize_dim(first, len(exprs)), normalize_dim(second, len(exprs))
        exprs[a], exprs[c] = exprs[c], exprs[a]
    return exprs


def slice_start(b: LoopBuilder, start: int | Expr | None, size: Expr) -> Expr:
    """Where a slice begins; one that begins behind the end is empty."""
    return ZERO if start is None else wrapped(b, start, size)


def sliced(b: LoopBuilder, call: Call, shape: Shape, axes: tuple[Expr, ...]) -> list[Expr]:
    """Where the elements of a slice lie."""
    dim = normalize_dim(call["dim"], len(shape))
    exprs = list(axes)
    exprs[dim] = slice_start(b, call["start"], shape[dim]) + exprs[dim] * call["step"]
    return exprs


def selected(b: LoopBuilder, call: Call, shape: Shape, axes: tuple[Expr, ...]) -> list[Expr]:
    """Where the elements lie at one index of a dimension."""
    dim = normalize_dim(call["dim"], len(shape))
    return [*axes[:dim], wrapped(b, call["index"], shape[dim]), *axes[dim:]]


def diagonal_index(rank: int, axes: Sequence[Expr], offset: int, dim1: int, dim2: int) -> list[Expr]:
    """The index of element `axes` of a diagonal: its last axis runs along the diagonal of dim1 and dim2."""
    first, second = normalize_dim(dim1, rank), normalize_dim(dim2, rank)
    others = iter(axes)
    along = axes[-1]
    places = {first: along + max(-offset, 0), second: along + max(offset, 0)}
    return [places[d] if d in places else next(others) for d in range(rank)]


def _unfolded(b: LoopBuilder, call: Call, shape: Shape, axes: tuple[Expr, ...]) -> list[Expr]:
    if not shape:
        return []
    dim = normalize_dim(call["dimension"], len(shape))
    exprs = list(axes[:-1])
    exprs[dim] = exprs[dim] * call["step"] + axes[-1]
    return exprs


add_views({
    "permute": lambda b, call, shape, axes: _permuted(axes, call["dims"]),
    "transpose.int": lambda b, call, shape, axes: _swapped(axes, call["dim0"], call["dim1"]),
    "t": lambda b, call, shape, axes: axes[::-1],
    "expand": lambda b, call, shape, axes: broadcast_map(shape, len(axes)).data,
    "slice.Tensor": sliced,
    "select.int": selected,
    "diagonal": lambda b, call, shape, axes:
        diagonal_index(len(shape), axes, call["offset"], call["dim1"], call["dim2"]),
    "unfold": _unfolded,
})  # fmt: skip


def _pieces(b: LoopBuilder, call: Call) -> Replacement:
    """Pieces of a tensor along a dimension, one behind the other."""
    source = call.tensor("self")
    results: list[SSAValue] = []
    dim = normalize_dim(call["dim"], len(shape_of(source)))
    begin = ZERO
    for type_ in call.types:
        exprs = list(axes_of_rank(len(type_.shape)))
        exprs[dim] = exprs[dim] + begin
        results.append(b.view(source, exprs, type_))
        begin = begin + type_.shape[dim]
    return results


def _unbind(b: LoopBuilder, call: Call) -> Replacement:
    source = call.tensor("self")
    dim = normalize_dim(call["dim"], len(shape_of(source)))
    axes = axes_of_rank(len(shape_of(source)) - 1)
    return [
        b.view(source, [*axes[:dim], as_expr(position), *axes[dim:]], type_)
        for position, type_ in enumerate(call.types)
    ]


add_rule(
    "split.Tensor split.sizes split_with_sizes chunk unsafe_chunk unsafe_split.Tensor unsafe_split_with_sizes "
    "tensor_split.sections tensor_split.indices",
    _pieces,
    any_dtype=True,
)
add_rule("unbind.int", _unbind, any_dtype=True)


@lowers("flip")
def _flip(b: LoopBuilder, call: Call) -> Replacement:
    shape = call.type.shape
    exprs = list(axes_of_rank(len(shape)))
    for dim in {normalize_dim(d, len(shape)) for d in call["dims"]} if shape else ():
        exprs[dim] = shape[dim] - 1 - exprs[dim]
    return b.copy(call.tensor("self"), exprs, call.type)


@lowers("roll")
def _roll(b: LoopBuilder, call: Call) -> Replacement:
    """Without dimensions the flattened tensor is rolled."""
    shape = call.type.shape
    axes = list(axes_of_rank(len(shape)))
    if any(size.as_int() == 0 for size in shape):
        return b.copy(call.tensor("self"), axes, call.type)
    if not call["dims"]:
        linear = (linearize(axes, list(shape)) - call["shifts"][0]) % math.prod(shape, start=ONE)
        return b.copy(call.tensor("self"), delinearize(linear, list(shape)), call.type)
    for shift, d in zip(call["shifts"], call["dims"], strict=True):
        dim = normalize_dim(d, len(shape))
        axes[dim] = (axes[dim] - shift) % shape[dim]
    return b.copy(call.tensor("self"), axes, call.type)


@lowers("repeat")
def _repeat(b: LoopBuilder, call: Call) -> Replacement:
    source = call.tensor("self")
    shape = shape_of(source)
    axes = axes_of_rank(len(call.type.shape))[len(call.type.shape) - len(shape) :]
    exprs = [
        axis if repeat == 1 else axis % size if size.as_int() != 0 else axis
        for axis, size, repeat in zip(axes, shape, call["repeats"][-len(shape) :] if shape else (), strict=True)
    ]
    return b.copy(source, exprs, call.type)
