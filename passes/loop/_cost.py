"""The recompute cost model of `loop-inline`: what one evaluation of a body costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import scalar
from ...dialects.loop import AssertOp, IndexOp, LoadOp, ReduceOp, YieldOp
from ...dialects.raw import op_behind, operands_of
from ...dialects.sym import AxesAttr
from ...machines.costs import cost_of
from ...records import dataclass
from ._accesses import map_of

#: length from which on what an axis leaves alone costs nothing for each of its points
_LONG = 16
_DIVIDES = frozenset((
    arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.CeilDivSIOp, arith.CeilDivUIOp,
    arith.FloorDivSIOp, scalar.FUNCTION_OPS["floordivi"], scalar.FUNCTION_OPS["remainderi"],
))  # fmt: skip


@dataclass
class BodyCost:
    """What a body does for one element.

    arithmetic: scalar operations, weighted by `machines/costs.py`, without those of `still`
    still:      those whose operands stay put along the last axis, and that are taken out of its loop
    reads:      loads that touch a new element at each point; one indexed by a value counts twice. Loads that stay
                put along an axis are served by the cache and do not count
    loads, ops: all loads and all ops of the body
    """

    arithmetic: int = 0
    still: int = 0
    reads: int = 0
    loads: int = 0
    ops: int = 0
    has_reduce: bool = False
    has_assert: bool = False
    divides: bool = False


def body_cost(nest: Operation) -> BodyCost:
    """The cost of one element of a nest."""
    axes = cast(AxesAttr, nest.properties["axes"])
    moving = [(name, size.as_int()) for name, size in axes.data if size.as_int() != 1]
    last, length = moving[-1] if moving else ("", 1)
    counter = _Counter(frozenset(name for name, _ in moving), last if length is None or length >= _LONG else None)
    counter.count(nest.regions[0].blocks.first)
    return counter.cost


class _Counter:
    """Adds up what a body does. `last` is the axis that values may stay put along; None: all of them count."""

    def __init__(self, moving: frozenset[str], last: str | None) -> None:
        self.moving = moving
        self.last = last
        self.cost = BodyCost()
        self.still: set[SSAValue] = set()
        """Values that stay put along the last axis."""

    def count(self, block: Block | None, inside: bool = False) -> None:
        """Count the ops of a block, which may be `inside` a reduction."""
        cost = self.cost
        op = block.first_op if block is not None else None
        while op is not None:
            kind = type(op)
            cost.ops += 1
            if kind is LoadOp:
                cost.loads += 1
                cost.reads += _reads(op, self.moving)
            elif kind is ReduceOp:
                cost.has_reduce = True
                for region in op.regions:
                    self.count(region.blocks.first, inside=True)
            elif kind is AssertOp:
                cost.has_assert = True
            elif kind is not YieldOp:
                cost.divides = cost.divides or kind in _DIVIDES
                if inside or not self.is_still(op):
                    cost.arithmetic += cost_of(op.name).weight
                else:
                    cost.still += cost_of(op.name).weight
            if not inside and self.is_still(op):
                self.still.update(op.results)
            op = op_behind(op)

    def is_still(self, op: Operation) -> bool:
        """Whether an op outside of reductions gives one value for all of the last axis."""
        if self.last is None or op.regions or not self.still.issuperset(_scalars(op)):
            return False
        return self.last not in _symbols(op)


def _scalars(op: Operation) -> Sequence[SSAValue]:
    """The operands that are scalars of the body."""
    return operands_of(op)[1:] if type(op) is LoadOp else operands_of(op)


def _symbols(op: Operation) -> frozenset[str]:
    if isinstance(op, LoadOp):
        return frozenset().union(*(e.free_symbols for e in map_of(op).data))
    return op.expr.data.free_symbols if isinstance(op, IndexOp) else frozenset()


def _reads(load: Operation, moving: frozenset[str]) -> int:
    assert isinstance(load, LoadOp)
    exprs = map_of(load).data
    if len(load.operands) > 1:
        return 2
    seen = frozenset().union(*(e.free_symbols for e in exprs))
    return 1 if moving <= seen else 0
