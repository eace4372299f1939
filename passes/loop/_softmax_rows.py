"""Numbers of rows that a sum over a softmax has at hand: maxima, sums of exponentials, and what is made of these."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import Block, Operation, Region, SSAValue, Use

from ...dialects.aten.types import TensorType
from ...dialects.loop import AssertOp, EmptyOp, GenerateOp, IndexOp, LoadOp, ReduceOp, ScatterOp, YieldOp, yielded
from ...dialects.sym import ONE, ZERO, Expr, MapAttr, SymAttr, symbol
from ...records import dataclass
from ..analysis.memory import Mutations
from ._accesses import loads_in, map_of
from ._bodies import outermost, substitute_axes
from ._identities import constant
from ._softmax_terms import Term, is_alike_along, is_maximum, is_sum_of_weights


@dataclass(frozen=True)
class Rows:
    """A nest of which each element is made of the maximum of a row of a softmax, and of the sum of exponentials.

    total:   the reduction that is the sum over the softmax, in another nest
    index:   the element of one of its iterations
    highest: which of the reductions are maxima
    infinite: behind the sum, 0, or NaN where the maximum is infinite, as exp(inf - inf) is
    """

    nest: GenerateOp
    total: ReduceOp
    index: tuple[Expr, ...]
    highest: frozenset[ReduceOp]
    infinite: Operation

    def compute(self, known: dict[SSAValue, SSAValue]) -> list[Operation]:
        """The ops that are its elements in the body of the sum; `known` gets its results, and has those of others."""
        highest, count, _ = self.total.results
        counted = arith.AddfOp(count, self.infinite.results[0])
        values: dict[SSAValue, SSAValue] = {}
        block = Block([counted])
        for op in list(self.nest.body.block.ops)[:-1]:
            if type(op) is ReduceOp:
                values[op.results[0]] = highest if op in self.highest else counted.result
            elif type(op) is LoadOp and op.operands[0] in known:
                values[op.results[0]] = known[op.operands[0]]
            else:
                block.add_op(op.clone(values))
        substitute_axes(block, dict(zip(self.nest.axes.names, self.index, strict=True)))
        results = zip(self.nest.results, yielded(self.nest.body), strict=True)
        known.update((result, values.get(value, value)) for result, value in results)
        ops = list(block.ops)
        for op in ops:
            op.detach()
        return ops


def rows_of(term: Term, axis: str, nest: GenerateOp, total: ReduceOp, infinite: Operation) -> Iterator[Rows]:
    """The nests in front of another one whose reductions are those of a term's rows, along the axis of its sum.

    And those that are made of these alone, as the logarithm of a row's sum, to which its maximum is added.
    """
    load = cast(LoadOp, term.highest.owner)
    shape = cast(TensorType, load.operands[0].type).shape
    block = cast(Block, load.parent)
    loads = [op for op in block.ops if type(op) is LoadOp and is_alike_along(op.results[0], axis, block)]
    read = {each.operands[0].owner: map_of(each).data for each in loads}
    found: set[GenerateOp] = set()
    for op in cast(Block, nest.parent).ops:
        if op is nest:
            return
        if type(op) is not GenerateOp or (op not in read and op.axes.sizes != shape):
            continue
        index = read.get(op, map_of(load).data)
        names = dict(zip(op.axes.names, index, strict=True))
        reduces = [each for each in op.body.block.ops if type(each) is ReduceOp]
        highest = frozenset(each for each in reduces if is_maximum(each, term, axis, names))
        is_reduced = all(each in highest or is_sum_of_weights(each, term, axis, names) for each in reduces)
        if is_reduced if reduces else _reads_only(op, found):
            found.add(op)
            yield Rows(op, total, index, highest, infinite)


def _reads_only(nest: GenerateOp, rows: set[GenerateOp]) -> bool:
    """Whether each element of a nest without reductions is made of the same elements of rows, and of nothing else."""
    loads = loads_in(nest)
    return bool(loads) and all(each.operands[0].owner in rows and _is_plain(each, _element(nest)) for each in loads)


def share_rows(nest: GenerateOp, found: Sequence[Rows], block: Block) -> bool:
    """Let a sum over a softmax compute what is made of its rows, and store it in the first column; whether it does."""
    rows = [each for each in found if each.nest.parent is block]
    readers = _Readers(nest, rows, block)
    if not rows or not readers.may_wait():
        return False
    known: dict[SSAValue, SSAValue] = {}
    behind = {each.total: each.infinite.next_op for each in rows}
    for each in rows:
        nest.body.block.insert_ops_before(each.compute(known), cast(Operation, behind[each.total]))
    for load in loads_in(nest):
        if load.operands[0] in known:
            load.results[0].replace_all_uses_with(known[load.operands[0]])
            nest.body.block.erase_op(load)
    results = [(result, readers.outside(result), each.index) for each in rows for result in each.nest.results]
    _store(nest, [(known[result], uses, index) for result, uses, index in results if uses])
    return True


class _Readers:
    """What reads the results of nests that reduce rows."""

    def __init__(self, nest: GenerateOp, rows: Sequence[Rows], block: Block) -> None:
        self.nest, self.rows, self.block = nest, rows, block
        self.inside = {each.nest for each in rows}
        self.order = {op: place for place, op in enumerate(block.ops)}

    def may_wait(self) -> bool:
        """Whether everything that reads the rows may stand behind the sum, and finds them there."""
        mutations = Mutations(self.block)
        for each in self.rows:
            sources = [load.operands[0] for load in loads_in(each.nest)]
            if mutations.moves_past_write(sources, each.nest, self.nest):
                return False
            if any(type(op) is AssertOp for op in each.nest.walk()):
                return False
            if not _covers(self.nest, each) or not self._find(each):
                return False
        return True

    def outside(self, result: SSAValue) -> list[Use]:
        """The uses of a result by what stays."""
        readers = [(use, outermost(use.operation, self.block)) for use in result.uses]
        return [use for use, reader in readers if reader not in self.inside and not self._goes(reader)]

    def _find(self, rows: Rows) -> bool:
        for use in (use for result in rows.nest.results for use in result.uses):
            reader = outermost(use.operation, self.block)
            if reader is self.nest:
                found = _is_plain(use.operation, rows.index) and rows.total.is_before_in_block(use.operation)
            elif reader in self.inside:
                is_reduced = use.operation.parent is not reader.regions[0].block  # the reduction is another one then
                found = is_reduced or _is_plain(use.operation, _element(cast(GenerateOp, reader)))
            else:
                found = self.order[reader] > self.order[self.nest] or self._goes(reader)
            if not found:
                return False
        return True

    def _goes(self, op: Operation) -> bool:
        """Whether only the nests that reduce rows need what an op computes."""
        readers = {outermost(use.operation, self.block) for result in op.results for use in result.uses}
        return type(op) is GenerateOp and all(each in self.inside or self._goes(each) for each in readers)


def _covers(nest: GenerateOp, rows: Rows) -> bool:
    """Whether iterations with the same columns, of which there are some, are the elements of rows, each once."""
    mentioned = [name for expr in rows.index for name in sorted(expr.free_symbols)]
    own = sorted((axis for axis in nest.axes.data if axis[0] in mentioned), key=lambda axis: mentioned.index(axis[0]))
    columns = [size.as_int() for name, size in nest.axes.data if name not in mentioned]
    place = _linear(rows.index, rows.nest.axes.sizes)
    return all(columns) and place == _linear([symbol(name) for name, _ in own], [size for _, size in own])


def _linear(index: Sequence[Expr], sizes: Sequence[Expr]) -> tuple[Expr, Expr]:
    """The number of an element in row-major order, and how many there are."""
    place, count = ZERO, ONE
    for expr, size in zip(index, sizes, strict=True):
        place, count = place * size + expr, count * size
    return place, count


def _is_plain(load: Operation, index: Sequence[Expr]) -> bool:
    """Whether an op loads an element, not under a mask."""
    return type(load) is LoadOp and len(load.operands) == 1 and map_of(load).data == tuple(index)


def _element(nest: GenerateOp) -> list[Expr]:
    return [ZERO if size is ONE else symbol(name) for name, size in nest.axes.data]


def _store(nest: GenerateOp, wanted: Sequence[tuple[SSAValue, list[Use], tuple[Expr, ...]]]) -> None:
    """Store values of a nest's body in the first column of their rows, each for some uses."""
    last, block = cast(YieldOp, nest.body.block.last_op), cast(Block, nest.parent)
    last.operands = [*last.operands, *(value for value, _, _ in wanted)]
    device = cast(TensorType, nest.results[0].type).device
    types = [TensorType.get(nest.axes.sizes, value.type, device=device) for value, _, _ in wanted]
    body = nest.detach_region(nest.body)
    new = GenerateOp.of(nest.axes, body, (*nest.result_types, *types), location=nest.location)
    ops: list[Operation] = [new]
    count = len(nest.results)
    for value, (_, uses, index) in zip(new.results[count:], wanted, strict=True):
        old = uses[0].operation.operands[uses[0].index]
        empty = EmptyOp.of(old.type, location=nest.location)
        scatter = ScatterOp.of(
            empty.out, nest.axes, MapAttr.of(*index), _in_first_column(value, new, index),
            flags=("unique", "masked"), location=nest.location,
        )  # fmt: skip
        scatter.out.name_hint = value.name_hint = old.name_hint
        for use in uses:
            use.operation.operands[use.index] = scatter.out
        ops += [empty, scatter]
    for old, result in zip(nest.results, new.results[:count], strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    block.insert_ops_before(ops, nest)
    block.erase_op(nest)


def _in_first_column(value: SSAValue, nest: GenerateOp, index: Sequence[Expr]) -> Region:
    """The body of a scatter of what varies along `index` alone."""
    own = [symbol(name) for name in nest.axes.names]
    load = LoadOp.of(value, MapAttr.of(*own), location=nest.location)
    rows = frozenset[str]().union(*(expr.free_symbols for expr in index))
    column = sum((symbol(name) for name in nest.axes.names if name not in rows), start=ZERO)
    place = IndexOp.create(properties={"expr": SymAttr.of(column)}, result_types=(i64,))
    zero = constant(0, i64)
    first = arith.CmpiOp(place.results[0], zero.results[0], "eq")
    return Region(Block([load, place, zero, first, YieldOp.create(operands=(load.results[0], first.result))]))
