"""`loop-expand-moments`: a mean and the squares of deviations from it are two reductions, where neither is cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.loop import GenerateOp, LoadOp, ReduceOp, YieldOp, yielded
from ...dialects.raw import ops_of
from ...dialects.sym import ONE, ZERO, MapAttr, symbol
from ...records import dataclass
from ..analysis.sizes import Sizes
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._bodies import copy_slice
from .dce import sweep
from .split_reductions import SplitReductions


@dataclass(frozen=True)
class ExpandMoments(LoopPass):
    """Compute a mean, and then the squares of deviations from it, unless both would be cut into parts.

    level:         loop
    precondition:  `loop-assign-layouts` before, `loop-inline` behind
    guarantee:     the same values but for rounding. `lower-aten-to-loop` makes one reduction of both for a GPU, of a
                   `sum` and `welford`, whose error grows no faster with the number of values (Chan, Golub, LeVeque
                   1979). It stays where `loop-split-reductions` would cut it: in parts two are four kernels that read
                   the values twice, and one is two that read them once. A program that does a reduction as a whole
                   keeps the values at hand for the second one, which is more exact and takes fewer steps.

        %m, %q = loop.generate (i0 in 64) {
          %s, %mean, %m2, %n = loop.reduce [sum, welford] (r0 in 512) {
            %v = loop.load %x[i0, r0] ... yield %v, %v, %zero, %one }
          ...  loop.yield %d, %squares } : T, T
    becomes
        %m = loop.generate (i0 in 64) {
          %s = loop.reduce sum (r0 in 512) { %v = loop.load %x[i0, r0] ... }  %d = arith.divf %s, %number ... } : T
        %q = loop.generate (i0 in 64) {
          %s = loop.reduce sum (r0 in 512) { ... %d = arith.subf %v, %mean  %p = arith.mulf %d, %d ... } ... } : T
    """

    name = "loop-expand-moments"

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
        found = [op for op in block.ops if type(op) is GenerateOp and _moments(op) is not None]
        estimates = Sizes.of_function(function) if found else None
        for nest in found:
            assert estimates is not None
            mean = _mean_nest(nest)
            block.insert_op_before(mean, nest)
            is_cut = self._is_cut(mean, splitter, estimates)
            if is_cut or not counter(self.name):
                block.erase_op(mean)
            else:
                _expand(nest, mean)
            if is_cut:
                remark("passed", self.name, nest, "mean and squared deviations stay one reduction")

    def _is_cut(self, mean: GenerateOp, splitter: SplitReductions, estimates: Sizes) -> bool:
        """Whether a reduction would be cut, and not because another kernel has the rows at hand."""
        (reduce,) = (op for op in mean.body.block.ops if type(op) is ReduceOp)
        length = estimates.product(reduce.axes.sizes)
        beside = splitter.parts_beside_rows(mean, reduce, length, estimates)
        return not beside and splitter.wanted_parts(mean, reduce, length, estimates) > 1


def _moments(nest: GenerateOp) -> tuple[ReduceOp, arith.DivfOp] | None:
    """The reduction of a sum and of moments in a nest, and the mean that is made of the sum."""
    for reduce in ops_of(nest.body.block):
        if type(reduce) is ReduceOp and [each.data for each in reduce.combiners] == ["sum", "welford"]:
            means = (use.operation for use in reduce.results[0].uses)
            return reduce, next(op for op in means if type(op) is arith.DivfOp)
    return None


def _mean_nest(nest: GenerateOp) -> GenerateOp:
    """A nest that computes the mean alone."""
    found = _moments(nest)
    assert found is not None
    reduce, mean = found
    total = _sum(reduce, reduce.body.clone())
    ops: list[Operation] = [total]
    number = copy_slice([mean.rhs], nest.body.block, ops).get(mean.rhs, mean.rhs)
    quotient = arith.DivfOp(total.results[0], number)
    return _nest(nest, [*ops, quotient], quotient.result)


def _expand(nest: GenerateOp, mean: GenerateOp) -> None:
    """Let a nest of its own sum the squares of deviations from the mean that another one computes."""
    found = _moments(nest)
    assert found is not None
    body = found[0].body.clone()
    last = cast(YieldOp, body.block.last_op)
    element = [ZERO if size is ONE else symbol(name) for name, size in nest.axes.data]
    load = LoadOp.of(mean.results[0], MapAttr.of(*element), location=nest.location)
    difference = arith.SubfOp(last.operands[0], load.results[0])
    square = arith.MulfOp(difference.result, difference.result)
    body.block.insert_ops_before([load, difference, square], last)
    last.operands = [square.result, *last.operands[1:]]
    total = _sum(found[0], body)
    squares = _nest(nest, [total], total.results[0])
    block = cast(Block, nest.parent)
    block.insert_op_before(squares, nest)
    for result, value in zip(nest.results, yielded(nest.body), strict=True):
        new = mean if value is found[1].result else squares
        new.results[0].name_hint = result.name_hint
        result.replace_all_uses_with(new.results[0])
    block.erase_op(nest)


def _sum(reduce: ReduceOp, body: Region) -> ReduceOp:
    """A sum of the first of the values that a body yields."""
    last = cast(YieldOp, body.block.last_op)
    last.operands = last.operands[:1]
    total = ReduceOp.of(reduce.axes, ["sum"], body, [], None)
    total.location = reduce.location
    return total


def _nest(nest: GenerateOp, ops: Sequence[Operation], value: SSAValue) -> GenerateOp:
    """A nest of the same axes with one result."""
    region = Region(Block([*ops, YieldOp.create(operands=[value])]))
    new = GenerateOp.of(nest.axes, region, nest.result_types[:1], location=nest.location)
    sweep(region.block)
    return new
