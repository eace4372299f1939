"""The recompute cost model of `loop-inline`: what one evaluation of a body costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, math
from xdsl.ir import Block, Operation

from ...dialects import scalar
from ...dialects.loop import AssertOp, IndexOp, LoadOp, ReduceOp, YieldOp
from ...dialects.sym import AxesAttr
from ._accesses import map_of

#: scalar operations that an op counts for; 1 for the rest of arith, 16 for the rest of math and scalar (a polynomial)
WEIGHTS: dict[type[Operation], int] = {
    arith.ConstantOp: 0,
    arith.DivfOp: 4,
    arith.DivSIOp: 8,
    arith.DivUIOp: 8,
    arith.RemSIOp: 8,
    arith.RemUIOp: 8,
    math.AbsFOp: 1,
    math.CeilOp: 1,
    math.CopySignOp: 1,
    math.FloorOp: 1,
    math.FmaOp: 1,
    math.RoundEvenOp: 1,
    math.RsqrtOp: 4,
    math.SqrtOp: 4,
    math.TruncOp: 1,
    scalar.CastOp: 1,
    scalar.NarrowOp: 1,
    scalar.PhiloxOp: 64,
    scalar.WidenOp: 1,
    IndexOp: 1,
    **{scalar.FUNCTION_OPS[f.name]: 1 for f in scalar.FUNCTIONS if f.predicate},
}
_FUNCTION = 16
_DIVIDES = frozenset((
    arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.CeilDivSIOp, arith.CeilDivUIOp,
    arith.FloorDivSIOp, scalar.FUNCTION_OPS["floordivi"], scalar.FUNCTION_OPS["remainderi"],
))  # fmt: skip


@dataclass
class BodyCost:
    """What a body does for one element.

    arithmetic: scalar operations, weighted
    reads:      loads that touch a new element at each point; one indexed by a value counts twice. Loads that stay
                put along an axis are served by the cache and do not count
    loads, ops: all loads and all ops of the body
    """

    arithmetic: int = 0
    reads: int = 0
    loads: int = 0
    ops: int = 0
    has_reduce: bool = False
    has_assert: bool = False
    divides: bool = False


def body_cost(nest: Operation) -> BodyCost:
    """The cost of one element of a nest."""
    axes = cast(AxesAttr, nest.properties["axes"])
    moving = frozenset(name for name, size in axes.data if size.as_int() != 1)
    cost = BodyCost()
    _count(nest.regions[0].blocks.first, moving, cost)
    return cost


def _count(block: Block | None, moving: frozenset[str], cost: BodyCost) -> None:
    op = block.first_op if block is not None else None
    while op is not None:
        kind = type(op)
        cost.ops += 1
        if kind is LoadOp:
            cost.loads += 1
            cost.reads += _reads(op, moving)
        elif kind is ReduceOp:
            cost.has_reduce = True
            for region in op.regions:
                _count(region.blocks.first, moving, cost)
        elif kind is AssertOp:
            cost.has_assert = True
        elif kind is not YieldOp:
            cost.arithmetic += weight(op)
            cost.divides = cost.divides or kind in _DIVIDES
        op = op.next_op


def weight(op: Operation) -> int:
    """Scalar operations that an op of a body counts for."""
    found = WEIGHTS.get(type(op))
    if found is None:
        found = WEIGHTS[type(op)] = 1 if op.name.startswith("arith.") else _FUNCTION
    return found


def _reads(load: Operation, moving: frozenset[str]) -> int:
    assert isinstance(load, LoadOp)
    exprs = map_of(load).data
    if len(load.operands) > 1:
        return 2
    seen = frozenset().union(*(e.free_symbols for e in exprs))
    return 1 if moving <= seen else 0
