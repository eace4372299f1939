"""`loop-chain-products`: what products make is computed again where other products, or sums of rows, read it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias, cast

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import AssertOp, GenerateOp, LoadOp, ReduceOp, ScatterOp, ViewOp, YieldOp, yielded
from ...dialects.raw import ops_of
from ...dialects.sym import AxesAttr, Expr, MapAttr
from ...records import dataclass
from ..analysis.memory import Mutations
from ..common.choices import chosen_tile
from ..common.implementations import MOST_OF_CHAIN
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import access_of, loads_in, map_of
from ._bodies import axes_around, outermost
from ._devices import has_matrix_units
from ._splice import Site, Splicer
from ._transposing import transposed
from .dce import sweep

#: what rows may be reduced by
_OF_ROWS = frozenset(("sum", "max"))
_READERS = frozenset((GenerateOp, ScatterOp))
Reader: TypeAlias = GenerateOp | ScatterOp


@dataclass(frozen=True)
class ChainProducts(LoopPass):
    """Compute the elements of a product of matrices where products, or sums and maxima of rows, read them.

    level:         loop
    precondition:  `loop-inline`, `loop-stream-reductions`; no `loop.fusion` yet. Only with the option `loop_products`,
                   or where a product was chosen as a part of an attention, and only what a GPU with matrix units
                   computes.
    guarantee:     a generate of a product, with what is done with each of its elements by itself, is computed in the
                   bodies of the reductions that read it, so that nobody writes it: a matrix of as many elements as
                   pairs of rows of its factors. Only where all that read it, by way of pointwise nests too, are sums
                   along one axis of a product, of which the other factor has at most `MOST_OF_CHAIN` columns, or sums
                   or maxima of a row; and where its depth is at most as much, so that a program holds tiles of it.
                   Each reader computes it once more: a tile on matrix units takes less time than its elements take
                   from memory. What is read of one tile by several factors is computed once.

    This is how gradients of attention come from the scores, computed again, and two numbers of each row: Dao et al.,
    FlashAttention, 2022; nothing here knows that, the softmax is a pointwise nest.

        %s = loop.generate (i0 in 64, i1 in 128) {
          %r = loop.reduce sum (r0 in 16) { ... %q[i0, r0] * %k[i1, r0] ... } ... }
        %p = loop.generate (i0 in 64, i1 in 128) { ... math.exp (%s[i0, i1] - %m[i0]) ... }
        %g = loop.generate (i0 in 128, i1 in 16) {
          %r = loop.reduce sum (r0 in 64) { ... %p[r0, i0] * %t[r0, i1] ... } ... }
    becomes
        %g = loop.generate (i0 in 128, i1 in 16) {
          %r = loop.reduce sum (r0 in 64) {
            %s = loop.reduce sum (r1 in 16) { ... %q[r0, r1] * %k[i0, r1] ... }
            ... math.exp (%s - %m[r0]) ... * %t[r0, i1] ... } ... }
    """

    name = "loop-chain-products"
    loop_products: bool = False
    emulate_precision_casts: bool = False

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        if self.emulate_precision_casts:
            return
        changed = False
        for nest in [each for each in block.ops if type(each) is GenerateOp and _is_product(each)]:
            if nest.parent is not None and (self.loop_products or _is_of_attention(nest)) and has_matrix_units(nest):
                changed |= self._chain(nest, block)
        if changed:
            sweep(block)

    def _chain(self, nest: GenerateOp, block: Block) -> bool:
        """Compute a product where it is read; whether something changed."""
        found = _Readers(block).of(nest)
        if isinstance(found, str):
            remark("missed", self.name, nest, f"a product is not computed where it is read: {found}")
            return False
        if not found or not counter(self.name):
            return False
        for reader in found:
            _splice_all(reader, nest)
        remark("passed", self.name, nest, "a product is computed where it is read", readers=len(found))
        _join_alike([each for each in found if type(each) is GenerateOp], block)
        return True


def _is_of_attention(nest: GenerateOp) -> bool:
    """Whether a product was chosen to be a nest with others between which its elements are not written."""
    return len(chosen_tile(nest) or ()) == len(("rows", "step", "warps", "stages"))


def _is_product(nest: GenerateOp) -> bool:
    """Whether a nest is one sum of products of a short depth, and what is done with each element by itself."""
    inner = [op for op in ops_of(nest.body.block) if op.regions]
    if len(inner) != 1 or len(nest.results) != 1 or len(cast(TensorType, nest.results[0].type).shape) < 2:
        return False
    (total,) = inner
    if type(total) is not ReduceOp or [c.data for c in total.combiners] != ["sum"] or len(total.axes.data) != 1:
        return False
    depth = total.axes.data[0][1].as_int()
    value = yielded(total.body)[0].owner
    is_flat = not any(op.regions or type(op) is AssertOp for op in total.body.block.ops)
    return is_flat and type(value) is arith.MulfOp and depth is not None and depth <= MOST_OF_CHAIN


class _Readers:
    """What reads a product, by way of pointwise nests too."""

    def __init__(self, block: Block) -> None:
        self.block = block
        self.mutations = Mutations(block)

    def of(self, nest: GenerateOp) -> list[Reader] | str:
        """The nests with reductions that read it; or why it stays in memory."""
        if any(type(op) is AssertOp for op in nest.walk()):
            return "it checks indices"
        found: dict[Reader, None] = {}
        waiting: list[GenerateOp] = [nest]
        while waiting:
            source = waiting.pop()
            for use in (use for result in source.results for use in result.uses):
                reader = self._nest_around(use.operation)
                if reader is None:
                    return "something else needs it in memory"
                if type(reader) is GenerateOp and _is_elementwise(reader, use.operation):
                    waiting.append(reader)
                    continue
                reason = _objection(reader, cast(LoadOp, use.operation)) or self._moved(nest, reader)
                if reason is not None:
                    return reason
                found[reader] = None
        return [each for each in self.block.ops if each in found]  # pyright: ignore[reportReturnType]

    def _nest_around(self, load: Operation) -> Reader | None:
        """The nest whose body reads an element as it is."""
        if type(load) is not LoadOp or access_of(load).mask is not None or access_of(load).dynamic:
            return None
        op = outermost(load, self.block)
        return cast(Reader, op) if type(op) in _READERS and not any(type(e) is AssertOp for e in op.walk()) else None

    def _moved(self, nest: GenerateOp, reader: Reader) -> str | None:
        if self.mutations and self.mutations.moves_past_write(
            [load.operands[0] for load in loads_in(nest)], nest, reader
        ):
            return "what it reads is written before it is read"
        return None


def _objection(reader: Reader, load: LoadOp) -> str | None:
    """Why a nest that reads an element of a product in a reduction is none that a program holds tiles for."""
    reduce = load.parent_op()
    if type(reduce) is not ReduceOp or reduce.parent is not reader.body.block or len(reduce.axes.data) != 1:
        return "what reads it is no reduction of rows"
    if not {c.data for c in reduce.combiners} <= _OF_ROWS or len(reduce.combiners) != 1:
        return "rows of it are reduced by something else than sums and maxima"
    if any(op.regions for op in reduce.body.block.ops) and not _chained(reduce):
        return "what reads it has loops of its own"
    axis = reduce.axes.names[0]
    if not any(axis in e.free_symbols for e in map_of(load).data):
        return "a reduction reads one element of it again and again"
    columns = _columns_beside(reader, load)
    if not columns:
        return None
    size = columns[0][1].as_int() if len(columns) == 1 else None
    if size is None or size > MOST_OF_CHAIN or not _multiplies(reduce):
        return f"it is read for more than {MOST_OF_CHAIN} columns"
    return None


def _chained(reduce: ReduceOp) -> bool:
    """Whether the loops in the body of a reduction are products that were put there."""
    inner = [op for op in reduce.body.block.ops if op.regions]
    return all(type(op) is ReduceOp and [c.data for c in op.combiners] == ["sum"] for op in inner)


def _columns_beside(reader: Reader, load: LoadOp) -> list[tuple[str, Expr]]:
    """The axes of a nest along which an element that it reads does not vary, but for those of one iteration."""
    moves = frozenset().union(*(e.free_symbols for e in map_of(load).data))
    axes = cast(AxesAttr, reader.properties["axes"]).data
    return [(name, size) for name, size in axes if name not in moves and size.as_int() != 1]


def _multiplies(reduce: ReduceOp) -> bool:
    """Whether a reduction sums products."""
    value = yielded(reduce.body)[0].owner
    return [c.data for c in reduce.combiners] == ["sum"] and type(value) is arith.MulfOp


def _splice_all(reader: Reader, nest: GenerateOp) -> None:
    """Compute a product in a reader, with the pointwise nests between them: the last of these first."""
    for reduce in [op for op in reader.body.block.ops if type(op) is ReduceOp]:
        while loads := [load for load in _direct(reduce.body.block.ops) if _comes_from(load.operands[0], nest)]:
            order = list(cast(Block, nest.parent).ops)
            last = max(loads, key=lambda load: order.index(cast(Operation, load.operands[0].owner)))
            same = [load for load in loads if _is_same(load, last)]
            producer = cast(GenerateOp, last.operands[0].owner)
            site = Site(reduce.body.block, access_of(last), map_of(last).data, same)
            scope = frozenset(name for name, _ in axes_around(reduce.body.block))
            Splicer(producer, site, scope, move=False).run()


def _join_alike(readers: list[GenerateOp], block: Block) -> None:
    """Let readers of the same tiles be one nest: those whose axes, and those of their reductions, are the same."""
    if Mutations(block):
        return
    kept: list[GenerateOp] = []
    for reader in map(_columns_last, readers):
        first = next((each for each in kept if _is_alike(each, reader) and _may_wait(each, reader)), None)
        if first is not None:
            kept.remove(first)
            reader = _joined(first, reader)
        kept.append(reader)


def _columns_last(nest: GenerateOp) -> GenerateOp:
    """A nest whose last axis is the one along which no product in its reductions varies, if there is one such axis."""
    inner = [index for op in nest.body.block.ops if type(op) is ReduceOp for _, index in _factors(op)]
    moves = frozenset[str]().union(*(e.free_symbols for index in inner for e in index.data))
    axes = nest.axes.data
    columns = [k for k, (name, size) in enumerate(axes) if name not in moves and size.as_int() != 1]
    if len(columns) != 1 or columns[0] == len(axes) - 1 or len(nest.results) != 1:
        return nest
    return transposed(nest, [*(k for k in range(len(axes)) if k not in columns), *columns])


def _is_alike(first: GenerateOp, second: GenerateOp) -> bool:
    """Whether two nests have the same axes, and one needs only inner products that the other one has, too.

    Not where rows are reduced: these have no columns, and tiles of their own.
    """
    reduces = [[op for op in nest.body.block.ops if type(op) is ReduceOp] for nest in (first, second)]
    if first.axes != second.axes or not all(map(_multiplies, (op for ops in reduces for op in ops))):
        return False
    if len({op.axes for ops in reduces for op in ops}) != 1:
        return False
    tiles, others = (frozenset().union(*map(_factors, ops)) for ops in reduces)
    return tiles <= others or others <= tiles


def _factors(reduce: ReduceOp) -> frozenset[tuple[SSAValue, MapAttr]]:
    """What products in the body of a reduction read, and where."""
    inner = (op for op in reduce.body.block.ops if type(op) is ReduceOp)
    return frozenset((load.operands[0], map_of(load)) for op in inner for load in _direct(op.body.block.ops))


def _may_wait(first: GenerateOp, second: GenerateOp) -> bool:
    """Whether what reads the results of a nest stands behind another one, or is a view that may."""
    block = first.parent
    assert block is not None
    order = {op: place for place, op in enumerate(block.ops)}
    views = _views_of(first)
    values = [result for op in (first, *views) for result in op.results]
    readers = {outermost(use.operation, block) for value in values for use in value.uses} - set(views)
    return all(order[reader] > order[second] for reader in readers)


def _views_of(nest: Operation) -> list[ViewOp]:
    """The views of what a nest makes, and of these, in order."""
    direct = [use.operation for result in nest.results for use in result.uses if type(use.operation) is ViewOp]
    return [each for view in direct for each in (view, *_views_of(view))]


def _joined(first: GenerateOp, second: GenerateOp) -> GenerateOp:
    """One nest with the results of both, where the second one is."""
    block, body = second.parent, Block()
    assert block is not None
    values: list[SSAValue] = []
    for nest in (first, second):
        values += yielded(nest.body)
        for op in list(nest.body.block.ops)[:-1]:
            op.detach()
            body.add_op(op)
    body.add_op(YieldOp.create(operands=values))
    types = (*first.result_types, *second.result_types)
    joined = GenerateOp.of(second.axes, Region(body), types, location=second.location)
    block.insert_op_before(joined, second)
    for view in reversed(_views_of(first)):
        view.detach()
        block.insert_op_after(view, joined)
    for old, new in zip((*first.results, *second.results), joined.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    for nest in (first, second):
        block.erase_op(nest)
    return joined


def _direct(ops: Iterable[Operation]) -> list[LoadOp]:
    return [op for op in ops if type(op) is LoadOp]


def _is_same(load: LoadOp, other: LoadOp) -> bool:
    return load.operands[0].owner is other.operands[0].owner and map_of(load) == map_of(other)


def _is_elementwise(reader: GenerateOp, load: Operation) -> bool:
    """Whether a nest computes something of each element that it reads by itself, perhaps with that of a product."""
    is_flat = not any(op.regions for op in reader.body.block.ops)
    return is_flat or (load.parent is reader.body.block and _is_product(reader))


def _comes_from(value: SSAValue, nest: GenerateOp) -> bool:
    """Whether a value is what a product makes, or is computed from it element by element."""
    op = value.owner
    if op is nest:
        return True
    if type(op) is not GenerateOp or (any(inner.regions for inner in op.body.block.ops) and not _is_product(op)):
        return False
    return any(_comes_from(load.operands[0], nest) for load in _direct(op.body.block.ops))
