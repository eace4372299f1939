"""Sums of products of which one factor is exp(x - max x): taking summands apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.loop import GenerateOp, IndexOp, LoadOp, ReduceOp, yielded
from ...dialects.scalar import CONVERSIONS, INSERTED_CONVERSIONS, number_of
from ...dialects.sym import AxesAttr, Expr, SymAttr, symbol
from ...records import dataclass
from ._accesses import access_of, map_of

Factor = tuple[SSAValue, bool]
"""A factor, and whether it divides."""


Guard = tuple[SSAValue, bool]
"""A condition, and what it is where the product is 0."""


@dataclass(frozen=True)
class Term:
    """A product with one factor exp(x - m).

    outer:  the factors that do not depend on the axis; inner: the others
    guards: conditions that do not depend on the axis, and whether the product is 0 where they hold, or where not
    """

    weight: SSAValue | None = None
    outer: tuple[Factor, ...] = ()
    inner: tuple[Factor, ...] = ()
    negative: bool = False
    operands: tuple[SSAValue, SSAValue] | None = field(default=None)
    guards: tuple[Guard, ...] = ()

    @property
    def x(self) -> SSAValue:
        """Of what the weight is the exponential, without the maximum."""
        assert self.operands is not None
        return self.operands[0]

    @property
    def highest(self) -> SSAValue:
        """The load of the maximum."""
        assert self.operands is not None
        return self.operands[1]


def weighs(producer: GenerateOp) -> bool:
    """Whether a pointwise nest computes exp(x - max x), or something from what such a nest computes."""
    block = producer.body.block
    if any(op.regions for op in block.ops):
        return False
    if any(type(op) is math.ExpOp and _difference(op) is not None for op in block.ops):
        return True
    sources = [op.operands[0].owner for op in block.ops if type(op) is LoadOp]
    return any(isinstance(source, GenerateOp) and weighs(source) for source in dict.fromkeys(sources))


def is_weight(op: Operation) -> bool:
    """Whether an op is exp(x - m) with a maximum m."""
    return _difference(op) is not None


def _difference(op: Operation) -> tuple[SSAValue, LoadOp] | None:
    """x and the load of a maximum, of exp(x - m)."""
    if type(op) is not math.ExpOp:
        return None
    minus = op.operand.owner
    if type(minus) is not arith.SubfOp or type(minus.rhs.owner) is not LoadOp:
        return None
    return (minus.lhs, minus.rhs.owner) if _row_of(minus.rhs.owner, "max") is not None else None


def _row_of(load: LoadOp, combiner: str) -> ReduceOp | None:
    """The reduction along one axis whose result a load reads, if it is all that the nest computes."""
    producer, access = load.operands[0].owner, access_of(load)
    if not isinstance(producer, GenerateOp) or access.mask is not None or access.dynamic:
        return None
    (value, *rest) = yielded(producer.body)
    reduce = value.owner
    if rest or type(reduce) is not ReduceOp or [c.data for c in reduce.combiners] != [combiner]:
        return None
    return reduce if len(reduce.axes.data) == 1 else None


def is_alike_along(value: SSAValue, axis: str, block: Block) -> bool:
    """Whether a scalar of a body does not depend on an axis."""
    op = value.owner
    if not isinstance(op, Operation) or op.parent is not block:
        return True
    if op.regions:
        return False
    if type(op) is LoadOp and any(axis in e.free_symbols for e in map_of(op).data):
        return False
    if type(op) is IndexOp and axis in cast(SymAttr, op.properties["expr"]).data.free_symbols:
        return False
    return all(is_alike_along(operand, axis, block) for operand in op.operands)


def expand(value: SSAValue, axis: str, block: Block) -> list[Term] | str:
    """A summand as a sum of products with one weight each; or why it is none."""
    found = _Expansion(axis, block).of(value)
    if isinstance(found, str):
        return found
    return found if all(term.weight is not None for term in found) else "a summand has no factor exp(x - max x)"


class _Expansion:
    def __init__(self, axis: str, block: Block) -> None:
        self.axis = axis
        self.block = block

    def has_weight(self, value: SSAValue) -> bool:
        op = value.owner
        if not isinstance(op, Operation) or op.parent is not self.block or op.regions:
            return False
        return _difference(op) is not None or any(map(self.has_weight, op.operands))

    def of(self, value: SSAValue) -> list[Term] | str:
        op = value.owner
        if not self.has_weight(value):
            return [self.factor(value, False)]
        assert isinstance(op, Operation)
        pair = _difference(op)
        if pair is not None:
            return [Term(weight=value, operands=(pair[0], pair[1].results[0]))]
        kind = type(op)
        if kind is arith.MulfOp:
            return self.product(op.operands[0], op.operands[1])
        if kind is arith.DivfOp and not self.has_weight(op.operands[1]):
            terms = self.of(op.operands[0])
            return terms if isinstance(terms, str) else [_times(t, self.factor(op.operands[1], True)) for t in terms]
        if kind in (arith.AddfOp, arith.SubfOp):
            return self.sum(op.operands[0], op.operands[1], kind is arith.SubfOp)
        if kind is arith.NegfOp:
            terms = self.of(op.operands[0])
            return terms if isinstance(terms, str) else [replace(t, negative=not t.negative) for t in terms]
        if kind is arith.SelectOp:
            return self.guarded(op)
        if kind in CONVERSIONS and isinstance(op.operands[0].type, AnyFloat) and isinstance(value.type, AnyFloat):
            return self.of(op.operands[0])
        return f"{op.name} stands between a weight and its sum"

    def guarded(self, op: Operation) -> list[Term] | str:
        """select(c, 0, w) is 0 for a whole row, as `_safe_softmax` has it for one that sees nothing."""
        condition, first, second = op.operands
        hides = number_of(first) == 0
        if not (hides or number_of(second) == 0) or not is_alike_along(condition, self.axis, self.block):
            return "a choice that is not one of whole rows stands between a weight and its sum"
        terms = self.of(second if hides else first)
        if isinstance(terms, str):
            return terms
        return [replace(term, guards=(*term.guards, (condition, hides))) for term in terms]

    def factor(self, value: SSAValue, divides: bool) -> Term:
        pair = ((value, divides),)
        return Term(outer=pair) if is_alike_along(value, self.axis, self.block) else Term(inner=pair)

    def product(self, left: SSAValue, right: SSAValue) -> list[Term] | str:
        terms, others = self.of(left), self.of(right)
        if isinstance(terms, str) or isinstance(others, str):
            return terms if isinstance(terms, str) else others
        if self.has_weight(left) and self.has_weight(right):
            return "two weights are multiplied with each other"
        return [_times(a, b) for a in terms for b in others]

    def sum(self, left: SSAValue, right: SSAValue, minus: bool) -> list[Term] | str:
        terms, others = self.of(left), self.of(right)
        if isinstance(terms, str) or isinstance(others, str):
            return terms if isinstance(terms, str) else others
        return [*terms, *(replace(t, negative=t.negative != minus) for t in others)]


def _times(left: Term, right: Term) -> Term:
    weighted = left if left.weight is not None else right
    return Term(
        weighted.weight,
        left.outer + right.outer,
        left.inner + right.inner,
        left.negative != right.negative,
        weighted.operands,
        left.guards + right.guards,
    )


def objection_to_maximum(term: Term, axis: str) -> str | None:
    """Why the maximum of a term is not that of its x along the axis."""
    load = term.highest.owner
    assert isinstance(load, LoadOp)
    reduce = _row_of(load, "max")
    assert reduce is not None
    if any(axis in e.free_symbols for e in map_of(load).data):
        return "the maximum varies along the sum's axis"
    return None if is_maximum(reduce, term, axis, _axes_at(load)) else "the maximum is that of another row"


def is_maximum(reduce: ReduceOp, term: Term, axis: str, names: Mapping[str, Expr]) -> bool:
    """Whether a reduction is the maximum of the x of a term; `names` are the axes around it in those of the term."""
    return _is_reduction_of(term.x, reduce, "max", axis, names)


def is_sum_of_weights(reduce: ReduceOp, term: Term, axis: str, names: Mapping[str, Expr]) -> bool:
    """Whether a reduction is the sum of the weights of a term."""
    return term.weight is not None and _is_reduction_of(term.weight, reduce, "sum", axis, names)


def _is_reduction_of(value: SSAValue, reduce: ReduceOp, monoid: str, axis: str, names: Mapping[str, Expr]) -> bool:
    if len(reduce.axes.data) != 1 or [c.data for c in reduce.combiners] != [monoid] or reduce.operands:
        return False
    return _is_same(yielded(reduce.body)[0], value, {**names, reduce.axes.names[0]: symbol(axis)})


def _axes_at(load: LoadOp) -> dict[str, Expr]:
    """What the axes of the nest that a load reads are at the load."""
    producer = load.operands[0].owner
    names = cast(AxesAttr, cast(Operation, producer).properties["axes"]).names
    return dict(zip(names, map_of(load).data, strict=True))


def _is_same(one: SSAValue, other: SSAValue, names: Mapping[str, Expr]) -> bool:
    """Whether two scalars of two bodies are equal, where `names` are axes of the first one's in terms of the other's.

    A load of what a pointwise nest computes is that nest's body.
    """
    left, right = _without_casts(one).owner, _without_casts(other).owner
    if not isinstance(left, Operation) or not isinstance(right, Operation):
        return one is other
    if type(left) is LoadOp and type(right) is LoadOp and _same_load(left, right, names):
        return True
    if type(left) is LoadOp and (inner := _pointwise(left, names)) is not None:
        return _is_same(inner[0], other, inner[1])
    if type(left) is not type(right) or type(left) is LoadOp:
        return False
    if type(left) is IndexOp and type(right) is IndexOp:
        mine = cast(SymAttr, left.properties["expr"]).data.subs(names)
        alike = mine is cast(SymAttr, right.properties["expr"]).data
    else:
        alike = not left.regions and left.properties == right.properties and left.attributes == right.attributes
    if not alike or len(left.operands) != len(right.operands):
        return False
    return all(_is_same(a, b, names) for a, b in zip(left.operands, right.operands, strict=True))


def _same_load(left: LoadOp, right: LoadOp, names: Mapping[str, Expr]) -> bool:
    if left.operands[0] is not right.operands[0]:
        return False
    if any(a.subs(names) is not b for a, b in zip(map_of(left).data, map_of(right).data, strict=True)):
        return False
    mine, others = left.operands[1:], right.operands[1:]
    return len(mine) == len(others) and all(_is_same(a, b, names) for a, b in zip(mine, others, strict=True))


def _pointwise(load: LoadOp, names: Mapping[str, Expr]) -> tuple[SSAValue, dict[str, Expr]] | None:
    """What a pointwise nest computes of the element that a load reads, and what its axes are there."""
    producer, access = load.operands[0].owner, access_of(load)
    if not isinstance(producer, GenerateOp) or access.mask is not None or access.dynamic:
        return None
    if any(op.regions for op in producer.body.block.ops):
        return None
    value = yielded(producer.body)[producer.results.index(load.operands[0])]
    own = cast(AxesAttr, producer.properties["axes"]).names
    return value, {name: e.subs(names) for name, e in zip(own, map_of(load).data, strict=True)}


def _without_casts(value: SSAValue) -> SSAValue:
    """A value without the conversions that the compiler inserted."""
    while type(value.owner) in INSERTED_CONVERSIONS:
        value = cast(Operation, value.owner).operands[0]
    return value
