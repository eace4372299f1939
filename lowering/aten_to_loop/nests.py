"""Builds tensor-valued nests of the loop level from functions that build element bodies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import loop
from ...dialects.aten.types import TensorType, type_of
from ...dialects.machine import TargetsAttr
from ...dialects.sym import ONE, ZERO, AxesAttr, Expr, MapAttr, Ranges, as_expr
from .scalar import Scalar
from .scalar_builder import Body, Index, ScalarBuilder, axis

Shape = tuple[Expr, ...]


@lru_cache(maxsize=64)
def axes_of_rank(rank: int) -> tuple[Expr, ...]:
    """The axes `i0, i1, ...` of a nest as index expressions."""
    return tuple(axis(f"i{k}") for k in range(rank))


@lru_cache(maxsize=4096)
def domain(shape: Shape) -> AxesAttr:
    """`(i0 in n, i1 in m, ...)`"""
    return AxesAttr.of(*((f"i{k}", size) for k, size in enumerate(shape)))


def broadcast_index(source: Shape, index: Sequence[Index]) -> tuple[Index, ...]:
    """The part of an index that an operand of shape `source` sees: trailing dimensions, 0 where its size is 1."""
    skipped = len(index) - len(source)
    return tuple(ZERO if size is ONE else index[skipped + k] for k, size in enumerate(source))


@lru_cache(maxsize=8192)
def broadcast_map(source: Shape, rank: int) -> MapAttr:
    """The index map of an operand of shape `source` in a nest with `rank` axes."""
    axes = axes_of_rank(rank)
    skipped = rank - len(source)
    return MapAttr.of(*(ZERO if size is ONE else axes[skipped + k] for k, size in enumerate(source)))


def shape_of(value: SSAValue) -> Shape:
    """The sizes of a tensor value."""
    return type_of(value).shape


class LoopBuilder:
    """Appends nests to a function's block. `s` builds their bodies; its `location` is that of the current op.

    `ranges` is what the function's declarations say of its symbols, `targets` what its module is compiled for.
    """

    def __init__(
        self, block: Block, ranges: Ranges, targets: TargetsAttr, emulate_precision_casts: bool = False
    ) -> None:
        self.block = block
        self.ranges = ranges
        self.targets = targets
        self.s = ScalarBuilder(emulate_precision_casts)

    def append(self, op: Operation) -> SSAValue:
        """Append a finished op; its first result."""
        self.block.add_op(op)
        return op.results[0]

    def generate(self, body: Body, *types: TensorType) -> list[SSAValue]:
        """Tensors of one shape; `body` maps the index to a scalar for each, converted to its element type.

        What has no elements needs no nest.
        """
        s = self.s
        if ZERO in types[0].shape:
            return [self.empty(type_) for type_ in types]
        axes = axes_of_rank(len(types[0].shape))

        def stored() -> list[Scalar]:
            result = body(axes)
            values = (result,) if isinstance(result, Scalar) else result
            return [s.store(v, type_.element) for v, type_ in zip(values, types, strict=True)]

        if any(type_.shape != types[0].shape for type_ in types):  # equal sizes, spelled in other ways
            return [self.generate(partial(_only, body, k), type_)[0] for k, type_ in enumerate(types)]
        region, _ = s.region(stored)
        op = s.make(loop.GenerateOp, (), types, {"axes": domain(types[0].shape)}, (region,))
        self.block.add_op(op)
        return list(op.results)

    def pointwise(self, function: Callable[..., Scalar], type_: TensorType, *tensors: SSAValue | None) -> SSAValue:
        """A tensor of a function of elements, broadcast; each comes in its type of computation, None as None."""
        rank = len(type_.shape)

        def body(_: tuple[Expr, ...]) -> Scalar:
            values = [None if t is None else self.element(t, rank) for t in tensors]
            return function(*values)

        return self.generate(body, type_)[0]

    def element(self, tensor: SSAValue, rank: int) -> Scalar:
        """The element that broadcasting reads in a nest of `rank` axes, in its type of computation."""
        type_ = type_of(tensor)
        return self.s.widen(self.s.load_map(tensor, broadcast_map(type_.shape, rank)))

    def at(self, tensor: SSAValue, index: Sequence[Index]) -> Scalar:
        """The element that broadcasting reads at an index, in its type of computation."""
        return self.s.widen(self.s.load(tensor, broadcast_index(shape_of(tensor), index)))

    def view(self, source: SSAValue, exprs: Sequence[Expr], type_: TensorType) -> SSAValue:
        """A view by the source index of each index of the result."""
        return self.view_map(source, MapAttr.of(*exprs), type_)

    def view_map(self, source: SSAValue, index_map: MapAttr, type_: TensorType) -> SSAValue:
        """As `view`, with a finished map. Nothing is read through a view without elements."""
        if ZERO in type_.shape:
            return self.empty(type_)
        properties = {"axes": domain(type_.shape), "map": index_map}
        return self.append(self.s.make(loop.ViewOp, (source,), (type_,), properties))

    def copy(self, source: SSAValue, exprs: Sequence[Index], type_: TensorType) -> SSAValue:
        """A new tensor with the elements at the given source index of each index of the result."""
        return self.generate(lambda _: self.s.load(source, exprs), type_)[0]

    def reduce(
        self,
        combiners: Sequence[str],
        shape: Shape,
        dims: Sequence[int],
        body: Body,
        *types: TensorType,
        finish: Callable[..., Scalar | Sequence[Scalar]] | None = None,
    ) -> list[SSAValue]:
        """Reduce over dimensions of a domain of the given shape.

        `body` maps an index of the domain to the yielded scalars; `finish` maps the reduced ones to those of the
        results. The result types have the reduced dimensions left out or of size 1.
        """
        s = self.s
        reduced = sorted(dims)
        keepdim = len(types[0].shape) == len(shape)

        def outer(index: tuple[Expr, ...]) -> Scalar | Sequence[Scalar]:
            def inner(reduce_index: tuple[Expr, ...]) -> Scalar | Sequence[Scalar]:
                return body(_merge_index(len(shape), index, reduced, reduce_index, keepdim))

            values = s.reduce(combiners, [shape[d] for d in reduced], inner) if reduced else _listed(body(index))
            return values if finish is None else finish(*values)

        return self.generate(outer, *types)

    def scan(self, combiners: Sequence[str], shape: Shape, dim: int, body: Body, *types: TensorType) -> list[SSAValue]:
        """An inclusive scan along a dimension; the yielded values have the result's element types."""
        s = self.s
        if ZERO in shape:
            return [self.empty(type_) for type_ in types]
        axes = axes_of_rank(len(shape))
        region, _ = s.region(lambda: body(axes))
        properties: dict[str, Attribute] = {
            "axes": domain(shape), "along": StringAttr(f"i{dim}"), "combiners": loop.combiner_attr(*combiners),
        }  # fmt: skip
        op = s.make(loop.ScanOp, (), types, properties, (region,))
        self.block.add_op(op)
        return list(op.results)

    def scatter(
        self,
        dest: SSAValue,
        shape: Shape,
        body: Callable[[tuple[Expr, ...]], tuple[Scalar, Sequence[Index]]],
        type_: TensorType,
        kind: str = "set",
        mask: Callable[[], Scalar] | None = None,
        flags: Sequence[str] = (),
    ) -> SSAValue:
        """Write a domain of the given shape into a copy of `dest`.

        `body` maps an index of the domain to the value and the index in `dest`, whose parts may be int64 scalars.
        `mask`, called behind it, says whether the element is written.
        """
        s = self.s
        if ZERO in shape:
            return self.copy(dest, axes_of_rank(len(type_.shape)), type_)
        axes = axes_of_rank(len(shape))
        exprs: list[Expr] = []

        def yielded() -> list[Scalar]:
            value, target = body(axes)
            values = [s.store(value, type_.element)]
            for part in target:
                if isinstance(part, Scalar):
                    exprs.append(axis(f"d{len(values) - 1}"))
                    values.append(part)
                else:
                    exprs.append(as_expr(part))
            return values if mask is None else [*values, mask()]

        region, _ = s.region(yielded)
        set_flags = (*flags, "masked") if mask is not None else flags
        properties: dict[str, Attribute] = {
            "axes": domain(shape), "map": MapAttr.of(*exprs), "kind": StringAttr(kind),
        }  # fmt: skip
        properties.update((flag, UnitAttr()) for flag in set_flags)
        return self.append(s.make(loop.ScatterOp, (dest,), (type_,), properties, (region,)))

    def empty(self, type_: TensorType) -> SSAValue:
        """Undefined content for scatters to fill."""
        return self.append(self.s.make(loop.EmptyOp, (), (type_,)))


def _listed(values: Scalar | Sequence[Scalar]) -> list[Scalar]:
    return [values] if isinstance(values, Scalar) else list(values)


def _only(body: Body, number: int, index: tuple[Expr, ...]) -> Scalar:
    """One of the scalars that a body gives; what it takes to make the others dies unused."""
    return _listed(body(index))[number]


def _merge_index(
    rank: int,
    outer: Sequence[Expr],
    reduced: Sequence[int],
    inner: Sequence[Expr],
    keepdim: bool,
) -> tuple[Expr, ...]:
    """The index in the reduced domain from that of the result and that of the reduction."""
    merged: list[Expr] = []
    kept = iter(outer)
    position = {d: k for k, d in enumerate(reduced)}
    for d in range(rank):
        if d in position:
            merged.append(inner[position[d]])
            if keepdim:
                next(kept)
        else:
            merged.append(next(kept))
    return tuple(merged)


def row_of(index: Sequence[Expr], dims: Sequence[int]) -> tuple[Expr, ...]:
    """The part of an index that dimensions dropped by a reduction leave."""
    return tuple(part for d, part in enumerate(index) if d not in dims)


def row_major(shape: Shape, element: Attribute, device: str) -> TensorType:
    """A contiguous type, for intermediate results."""
    return TensorType.get(shape, element, None, device)


def drop_dims(shape: Shape, dims: Sequence[int], keepdim: bool = False) -> Shape:
    """The shape after a reduction over dimensions."""
    if keepdim:
        return tuple(ONE if d in dims else size for d, size in enumerate(shape))
    return tuple(size for d, size in enumerate(shape) if d not in dims)


def normalize_dim(dim: int, rank: int) -> int:
    """A dimension counted from the front; a 0-d tensor has dimension 0 too."""
    return dim % max(rank, 1)


def normalize_dims(dims: Sequence[int] | int | None, rank: int) -> list[int]:
    """Dimensions counted from the front, ascending; None and () mean all."""
    if dims is None or dims == () or dims == []:
        return list(range(rank))
    listed = [dims] if isinstance(dims, int) else list(dims)
    return sorted({normalize_dim(d, rank) for d in listed}) if rank else []
