"""`loop-split-axes`: axes that others see as two become two, so that reshapes do not stand between nests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, IndexOp, LoadOp, ReduceOp, ScatterOp, ViewOp
from ...dialects.sym import ONE, Atom, AxesAttr, Expr, MapAttr, Ranges, SymAttr, const, simplify, symbol
from ..analysis.functions import symbol_ranges
from ..analysis.memory import NESTS
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import loads_in, map_of, redirect
from ._bodies import axes_around, substitute_axes
from ._splice import fresh_names
from .simplify_indices import simplify_nest


class SplitAxes(LoopPass):
    """Split axes where `x floordiv k` and `x mod k`, or readers' `k*a + b`, say that they are two.

    level:         loop
    precondition:  `loop-eliminate-views`; no `loop.fusion` yet
    guarantee:     the same values. An axis of a reduction or scatter whose floordiv and mod by a divisor k of its
                   size are used is split into two, and these go. So is a dimension of a generate, when a nest reads it
                   at `k*a + b` with b in k, or its body reads results of nests at floordiv and mod, and no other
                   reader's index gets a floordiv or mod by it; what is no load then sees the result through a
                   `loop.view` of the same memory.

        %p = loop.generate (i0 in 256) { ... } : !aten.tensor<256xf32>
        %y = loop.generate (i0 in 2, i1 in 128) { ... %p[128*i0 + i1] ... } : ...
    becomes
        %p = loop.generate (i0 in 2, i1 in 128) { ... } : !aten.tensor<2x128xf32>
        %y = loop.generate (i0 in 2, i1 in 128) { ... %p[i0, i1] ... } : ...
    """

    name = "loop-split-axes"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        _Splitter(symbol_ranges(function)).run(block)


class _Splitter:
    """Splits the axes of one function: first those that cost nothing, then by readers, then by what is read."""

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def run(self, block: Block) -> None:
        for op in block.ops:
            if type(op) in NESTS and has_quotients(op):
                self.split_free(op)
        for op in reversed(list(block.ops)):
            while type(op) is GenerateOp and (found := self.wanted_by_readers(op)) is not None:
                op = self.split_dimension(op, *found)
        while self.split_by_sources(block):
            pass

    def split_by_sources(self, block: Block) -> bool:
        """One sweep; whether it split anything: a nest whose readers are split may be welcome in the next."""
        changed = False
        for op in list(block.ops):
            while type(op) is GenerateOp and (found := self.wanted_by_sources(op)) is not None:
                op, changed = self.split_dimension(op, *found), True
        return changed

    def split_free(self, nest: Operation) -> None:
        """Split axes that no result has."""
        changed = False
        for op in [nest, *_reduces_in(nest)]:
            if type(op) not in (ReduceOp, ScatterOp):
                continue
            while (found := next(_quotient_axes(op, self.ranges), None)) is not None and counter("loop-split-axes"):
                _split_axis(op, *found, _names_in(nest), self.ranges)
                changed = True
        if changed:
            simplify_nest(nest, self.ranges)

    def wanted_by_readers(self, nest: GenerateOp) -> tuple[int, Expr] | None:
        """A dimension of a generate and the factor that some reader splits it by."""
        reads = [use.operation for result in nest.results for use in result.uses]
        for load in reads:
            if type(load) is not LoadOp or len(load.operands) > 1:
                continue
            for dimension, expr in enumerate(map_of(load).data):
                factor = _factor_of_sum(expr, load, nest.axes.sizes[dimension], self.ranges)
                if factor is not None and self.is_welcome(nest, dimension, factor):
                    return dimension, factor
        return None

    def wanted_by_sources(self, nest: GenerateOp) -> tuple[int, Expr] | None:
        """A dimension of a generate and a factor by which its body reads results of nests."""
        for load in loads_in(nest):
            if type(load.operands[0].owner) not in NESTS:
                continue
            for name, factor in _quotients(map_of(load).data, nest.axes, self.ranges):
                dimension = nest.axes.names.index(name)
                if self.is_welcome(nest, dimension, factor):
                    return dimension, factor
        return None

    def is_welcome(self, nest: GenerateOp, dimension: int, factor: Expr) -> bool:
        """Whether no reader's index becomes harder, and the counter allows the split."""
        for result in nest.results:
            for use in result.uses:
                load = use.operation
                if type(load) is not LoadOp or use.index != 0:
                    continue
                expr = map_of(load).data[dimension]
                if expr.free_symbols and _divisions(self.divided(load, expr, factor)) > _divisions((expr,)):
                    return False
        return counter("loop-split-axes")

    def divided(self, load: LoadOp, expr: Expr, factor: Expr) -> tuple[Expr, Expr]:
        """Quotient and remainder of an index by a factor, simplified at the load."""
        block = load.parent
        assert block is not None
        ranges = Ranges.of_axes(tuple(reversed(axes_around(block))), self.ranges)
        return simplify(expr // factor, ranges), simplify(expr % factor, ranges)

    def split_dimension(self, nest: GenerateOp, dimension: int, factor: Expr) -> GenerateOp:
        """Rebuild a generate with one dimension as two, and its readers."""
        remark("passed", "loop-split-axes", nest, f"dimension {dimension} split by {factor}")
        _split_axis(nest, nest.axes.names[dimension], factor, _names_in(nest), self.ranges)
        types = [_split_type(cast(TensorType, r.type), dimension, nest.axes) for r in nest.results]
        body = nest.detach_region(0)
        new = GenerateOp.of(nest.axes, body, types, location=nest.location)
        block = nest.parent
        assert block is not None
        block.insert_op_before(new, nest)
        for old, result in zip(nest.results, new.results, strict=True):
            for use in tuple(old.uses):
                load = use.operation
                if type(load) is LoadOp and use.index == 0:
                    exprs = map_of(load).data
                    pair = self.divided(load, exprs[dimension], factor)
                    redirect(load, result, (*exprs[:dimension], *pair, *exprs[dimension + 1 :]))
            if old.first_use is not None:
                view = _merged_view(result, cast(TensorType, old.type), dimension, factor, nest)
                block.insert_op_after(view, new)
                old.replace_all_uses_with(view.results[0])
            result.name_hint = old.name_hint
        block.erase_op(nest)
        simplify_nest(new, self.ranges)
        return new


def has_quotients(nest: Operation) -> bool:
    """Whether the index of some load of a nest, or of what a scatter writes, divides."""
    return any(e.depth for load in loads_in(nest) for e in map_of(load).data) or any(e.depth for e in _written(nest))


def _reduces_in(op: Operation) -> Iterator[ReduceOp]:
    for region in op.regions:
        for inner in region.block.ops:
            if type(inner) is ReduceOp:
                yield inner
                yield from _reduces_in(inner)


def _names_in(nest: Operation) -> frozenset[str]:
    axes = [nest, *_reduces_in(nest)]
    return frozenset(name for op in axes for name in cast(AxesAttr, op.properties["axes"]).names)


def _exprs_in(region: Region) -> Iterator[Expr]:
    for op in region.block.ops:
        if type(op) is LoadOp:
            yield from map_of(op).data
        elif type(op) is IndexOp:
            yield cast(SymAttr, op.properties["expr"]).data
        for inner in op.regions:
            yield from _exprs_in(inner)


def _quotient_axes(op: Operation, ranges: Ranges) -> Iterator[tuple[str, Expr]]:
    return _quotients([*_exprs_in(op.regions[0]), *_written(op)], cast(AxesAttr, op.properties["axes"]), ranges)


def _written(op: Operation) -> Sequence[Expr]:
    """The index of what a scatter writes; none for other ops."""
    return op.map.data if type(op) is ScatterOp else ()


def _quotients(exprs: Sequence[Expr], axes: AxesAttr, ranges: Ranges) -> Iterator[tuple[str, Expr]]:
    """Axes whose floordiv or mod by a divisor of their size occurs, each with the divisor."""
    sizes = dict(axes.data)
    for atom in _atoms(exprs):
        if atom.kind in ("floordiv", "mod") and (inner := atom.args[0].as_atom) is not None:
            size = sizes.get(inner.name)
            if size is not None and _quotient(size, atom.args[1], ranges) is not None:
                yield inner.name, atom.args[1]


def _atoms(exprs: Iterable[Expr]) -> Iterator[Atom]:
    for expr in exprs:
        if not expr.depth:
            continue
        for monomial, _ in expr.terms:
            for atom in monomial:
                yield atom
                yield from _atoms(atom.args)


def _divisions(exprs: tuple[Expr, ...]) -> int:
    return sum(atom.kind in ("floordiv", "mod") for atom in _atoms(exprs))


def _quotient(size: Expr, factor: Expr, ranges: Ranges) -> Expr | None:
    """size / factor where that is an integer expression other than 1, and so is the factor."""
    quotient = simplify(size // factor, ranges)
    exact = simplify(quotient * factor, ranges) is size and not quotient.depth
    return quotient if exact and quotient is not ONE and factor is not ONE else None


def _factor_of_sum(expr: Expr, load: LoadOp, size: Expr, ranges: Ranges) -> Expr | None:
    """k where an index is `k*a + b` with axes a in size/k and b in k."""
    if len(expr.terms) < 2 or load.parent is None:
        return None
    sizes = dict(axes_around(load.parent))
    parts = expr.split(sizes)
    if parts is None or len(parts[0]) != 2 or parts[1] is not const(0):
        return None
    for outer, inner in (tuple(parts[0]), tuple(reversed(parts[0]))):
        factor = parts[0][outer]
        if parts[0][inner] is ONE and sizes[inner] is factor and _quotient(size, factor, ranges) is sizes[outer]:
            return factor
    return None


def _split_axis(op: Operation, name: str, factor: Expr, taken: frozenset[str], ranges: Ranges) -> None:
    """Make an axis of an op two in its `axes` and in all index expressions."""
    axes: list[tuple[str, Expr]] = []
    (inner,) = fresh_names(name[0], 1, taken)
    for axis, size in cast(AxesAttr, op.properties["axes"]).data:
        axes += [(axis, simplify(size // factor, ranges)), (inner, factor)] if axis == name else [(axis, size)]
    op.properties["axes"] = AxesAttr.of(*axes)
    substitution = {name: symbol(name) * factor + symbol(inner)}
    for region in op.regions:
        substitute_axes(region.block, substitution)
    if type(op) is ScatterOp:
        op.properties["map"] = MapAttr.of(*(e.subs(substitution) for e in op.map.data))


def _split_type(old: TensorType, dimension: int, axes: AxesAttr) -> TensorType:
    """The same memory with one dimension as two."""
    strides = list(old.strides)
    strides[dimension : dimension + 1] = [strides[dimension] * axes.sizes[dimension + 1], strides[dimension]]
    return TensorType.get(axes.sizes, old.element, tuple(strides), old.device)


def _merged_view(source: SSAValue, old: TensorType, dimension: int, factor: Expr, nest: Operation) -> ViewOp:
    """A view of the split tensor that has the old shape."""
    names = [f"i{k}" for k in range(len(old.shape))]
    index = [symbol(n) for n in names]
    index[dimension : dimension + 1] = [index[dimension] // factor, index[dimension] % factor]
    axes = AxesAttr.of(*zip(names, old.shape, strict=True))
    return ViewOp.of(source, axes, MapAttr.of(*index), old, location=nest.location)
