"""`loop-join-moments`: a mean and the squares of deviations from it are one reduction, where both would be cut."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, OpResult, Region, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, IndexOp, LoadOp, ReduceOp, YieldOp, yielded
from ...dialects.scalar import CastOp, number_of
from ...dialects.sym import ONE, Expr, MapAttr, Ranges, SymAttr, bounds, symbol
from ..analysis.functions import symbol_ranges
from ..analysis.memory import Mutations
from ..analysis.sizes import Sizes
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import loads_in, map_of
from ._bodies import outside_values
from ._devices import target_of
from ._identities import constant
from .dce import sweep
from .split_reductions import SplitReductions


@dataclass(frozen=True)
class JoinMoments(LoopPass):
    """Compute a mean and the sum of squares of deviations from it by one reduction, on a GPU.

    level:         loop
    precondition:  `loop-inline` before, `loop-split-reductions` behind; no `loop.fusion` yet
    guarantee:     the same values but for rounding. A sum of squares of deviations of values from their mean is taken
                   by a `welford` reduction, whose error grows no faster with the number of values (Chan, Golub,
                   LeVeque 1979), beside the sum in that mean. The squares are those of deviations from the mean m that
                   the program has, m2 + n * (m - mean) ** 2: with an infinity, or a sum that overflows, both are what
                   they were. Only where `loop-split-reductions` would cut both: in parts they are
                   four kernels that read the values twice, and one reduction is two that read them once. A program
                   that does a reduction as a whole keeps the values at hand for the second one.

        %m = loop.generate (i0 in 64) {
          %s = loop.reduce sum (r0 in 65536) { %v = loop.load %x[r0, i0] ... }  %d = arith.divf %s, %n ... } : T
        %q = loop.generate (i0 in 64) {
          %s = loop.reduce sum (r0 in 65536) { ... %d = arith.subf %v, %mean  %p = arith.mulf %d, %d ... } ... } : T
    becomes
        %w, %q2 = loop.generate (i0 in 64) {
          %s, %mean, %m2, %n = loop.reduce [sum, welford] (r0 in 65536) {
            %v = loop.load %x[r0, i0] ... yield %v, %v, %zero, %one }
          ...  loop.yield %s, %squares } : T, T
    with nests that load %w and %q2 in the place of the sums.
    """

    name = "loop-join-moments"

    min_length: int = SplitReductions.min_length
    max_outer: int = SplitReductions.max_outer
    parts: int = SplitReductions.parts
    programs: int = SplitReductions.programs
    """The options of `loop-split-reductions`, which is asked what it would cut."""

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        splitter = SplitReductions(
            min_length=self.min_length, max_outer=self.max_outer, parts=self.parts, programs=self.programs
        )
        joiner = _Joiner(block, Sizes.of_function(function), symbol_ranges(function), splitter)
        for nest in list(block.ops):
            if type(nest) is GenerateOp and target_of(nest).needs_many_rows:
                for reduce in [each for each in nest.body.block.ops if type(each) is ReduceOp]:
                    joiner.visit(nest, reduce)


@dataclass(frozen=True)
class _Mean:
    """A quotient that is a mean: `total` over the number of its elements, in the generate `nest`."""

    nest: GenerateOp
    total: ReduceOp
    quotient: arith.DivfOp


class _Joiner:
    """The state for one function."""

    def __init__(self, block: Block, estimates: Sizes, ranges: Ranges, splitter: SplitReductions) -> None:
        self.estimates = estimates
        self.ranges = ranges
        self.mutations = Mutations(block)
        self.splitter = splitter

    def visit(self, nest: GenerateOp, reduce: ReduceOp) -> None:
        """Join a reduction with that of the mean from which it sums squared deviations, if it does."""
        parts = _deviation(reduce)
        mean = self._mean_of(parts[1], nest) if parts is not None else None
        if parts is None or mean is None or not self._is_over_the_same(parts[0], nest, reduce, mean):
            return
        sources = [load.operands[0] for load in loads_in(mean.total)]
        if self.mutations.moves_past_write(sources, mean.nest, nest) or not self._would_be_cut(mean):
            return
        if counter("loop-join-moments"):
            remark("passed", "loop-join-moments", nest, "mean and squared deviations in one reduction")
            _join(nest, reduce, mean)

    def _mean_of(self, value: SSAValue, nest: GenerateOp) -> _Mean | None:
        """The mean that a scalar of a nest is, loaded for the nest's own element."""
        load, element = value.owner, tuple(map(symbol, nest.axes.names))
        if type(load) is not LoadOp or len(load.operands) != 1 or map_of(load).data != element:
            return None
        owner = load.operands[0].owner
        if type(owner) is not GenerateOp or owner.parent is not nest.parent or owner.axes.sizes != nest.axes.sizes:
            return None
        quotient = yielded(owner.body)[cast(OpResult, load.operands[0]).index].owner
        total = quotient.operands[0].owner if type(quotient) is arith.DivfOp else None
        if type(quotient) is not arith.DivfOp or type(total) is not ReduceOp or total.parent is not owner.body.block:
            return None
        alone = _is_plain_sum(total) and total.results[0].has_one_use() and not outside_values(total)
        return _Mean(owner, total, quotient) if alone and self._counts(quotient.operands[1], total) else None

    def _counts(self, value: SSAValue, total: ReduceOp) -> bool:
        """Whether a scalar is the number of elements of a reduction, which has some."""
        elements: Expr = ONE
        for size in total.axes.sizes:
            elements = elements * size
        least, _ = bounds(elements, self.ranges)
        if least is None or least < 1:
            return False
        owner = value.owner
        if type(owner) is arith.ConstantOp:
            return number_of(value) == elements.as_int()
        index = owner.operands[0].owner if type(owner) is CastOp else None
        return type(index) is IndexOp and cast(SymAttr, index.properties["expr"]).data is elements

    def _is_over_the_same(self, value: SSAValue, nest: GenerateOp, reduce: ReduceOp, mean: _Mean) -> bool:
        """Whether a value of a reduction is what the mean's reduction adds up, element by element."""
        if reduce.axes.sizes != mean.total.axes.sizes:
            return False
        own, others = ((*n.axes.names, *r.axes.names) for n, r in ((nest, reduce), (mean.nest, mean.total)))
        renaming = {name: symbol(other) for name, other in zip(own, others, strict=True)}
        return _is_same(value, yielded(mean.total.body)[0], renaming)

    def _would_be_cut(self, mean: _Mean) -> bool:
        length = self.estimates.product(mean.total.axes.sizes)
        if self.splitter.parts_beside_rows(mean.nest, mean.total, length, self.estimates):
            return False  # another kernel has the rows at hand
        return self.splitter.wanted_parts(mean.nest, mean.total, length, self.estimates) > 1


def _deviation(reduce: ReduceOp) -> tuple[SSAValue, SSAValue] | None:
    """(v, m) of a sum of (v - m) * (v - m)."""
    square = yielded(reduce.body)[0].owner if _is_plain_sum(reduce) else None
    if type(square) is not arith.MulfOp or square.operands[0] is not square.operands[1]:
        return None
    difference = square.operands[0].owner
    return (difference.operands[0], difference.operands[1]) if type(difference) is arith.SubfOp else None


def _is_plain_sum(reduce: ReduceOp) -> bool:
    """Whether a reduction is one sum of float32, without an initial value."""
    if len(reduce.results) != 1 or reduce.operands or reduce.combiners.data[0].data != "sum":
        return False
    return isinstance(reduce.results[0].type, Float32Type)


def _is_same(value: SSAValue, other: SSAValue, renaming: Mapping[str, Expr]) -> bool:
    """Whether two scalars are computed alike from the same tensors, the axes of the first renamed."""
    one, two = value.owner, other.owner
    if value is other:
        return True
    if type(one) is not type(two) or isinstance(one, Block) or isinstance(two, Block) or one.regions:
        return False
    if isinstance(one, LoadOp) and isinstance(two, LoadOp):
        index = MapAttr.of(*(each.subs(renaming) for each in map_of(one).data))
        if len(one.operands) != 1 or len(two.operands) != 1 or one.operands[0] is not two.operands[0]:
            return False
        return index == map_of(two)
    alike = one.properties == two.properties and one.attributes == two.attributes and type(one) is not IndexOp
    pairs = zip(one.operands, two.operands, strict=False)
    return alike and len(one.operands) == len(two.operands) and all(_is_same(a, b, renaming) for a, b in pairs)


def _join(nest: GenerateOp, reduce: ReduceOp, mean: _Mean) -> None:
    """Insert the one reduction in front of the mean's nest, and let both nests read what it leaves."""
    moments = _moments(mean)
    block = cast(Block, mean.nest.parent)
    block.insert_op_before(moments, mean.nest)
    _replace(mean.total, mean.nest, moments.results[0])
    _replace(reduce, nest, moments.results[1])
    for each in (mean.nest, nest):
        sweep(each.body.block)


def _moments(mean: _Mean) -> GenerateOp:
    total = mean.total
    body = total.body.clone()
    last = cast(YieldOp, body.block.last_op)
    rest: list[Operation] = [constant(0, Float32Type()), constant(1, Float32Type())]
    body.block.insert_ops_before(rest, last)
    value = last.operands[0]
    last.operands = [value, value, *(each.results[0] for each in rest)]
    reduce = ReduceOp.of(total.axes, ["sum", "welford"], body, [], None)
    reduce.location = total.location
    ops: list[Operation] = [reduce, *_squares(*reduce.results)]
    ops.append(YieldOp.create(operands=[reduce.results[0], ops[-1].results[0]]))
    device = cast(TensorType, mean.nest.results[0].type).device
    type_ = TensorType.get(mean.nest.axes.sizes, Float32Type(), device=device)
    return GenerateOp.of(mean.nest.axes, Region(Block(ops)), [type_, type_], location=mean.nest.location)


def _squares(total: SSAValue, mean: SSAValue, m2: SSAValue, count: SSAValue) -> list[Operation]:
    """The ops of the sum of squared deviations from total / count."""
    quotient = arith.DivfOp(total, count)
    difference = arith.SubfOp(quotient.result, mean)
    square = arith.MulfOp(difference.result, difference.result)
    scaled = arith.MulfOp(square.result, count)
    return [quotient, difference, square, scaled, arith.AddfOp(m2, scaled.result)]


def _replace(op: Operation, nest: GenerateOp, tensor: SSAValue) -> None:
    """Let a nest read its element of a tensor where an op of its body computed it."""
    load = LoadOp.of(tensor, MapAttr.of(*map(symbol, nest.axes.names)), location=op.location)
    block = cast(Block, op.parent)
    block.insert_op_before(load, op)
    op.results[0].replace_all_uses_with(load.results[0])
