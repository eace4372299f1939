"""`loop-stream-reductions`: sums over a softmax become one pass over its rows, by online rescaling."""

from __future__ import annotations

from typing import ClassVar, cast

from xdsl.dialects import arith
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import AssertOp, GenerateOp, LoadOp, ReduceOp, YieldOp
from ...dialects.sym import AxesAttr, Ranges, bounds
from ...records import dataclass
from ..analysis.functions import symbol_ranges
from ..analysis.memory import Mutations
from ..common.choices import chosen_tile
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import access_of, loads_in, map_of
from ._bodies import axes_around, copy_slice, outermost
from ._devices import has_matrix_units
from ._identities import constant
from ._softmax_rows import Rows, rows_of, share_rows
from ._softmax_terms import Term, expand, is_weight, objection_to_maximum, weighs
from ._splice import Site, Splicer
from .dce import sweep

_MOST_SPLICES = 64


@dataclass(frozen=True)
class StreamReductions(LoopPass):
    """Let a sum over exp(x - max x) follow the maximum in one pass over the row, with the sums rescaled as it grows.

    level:         loop
    precondition:  `loop-inline`; no `loop.fusion` yet. Only with the option `loop_products`, or where the product
                   carries a `tile`, and only what a GPU with matrix units computes.
    guarantee:     a sum along an axis r of a generate, whose summands are linear in exp(x[r] - m), where m is the
                   maximum of x along r, is one reduction by the monoid `softmax_sum` of (x, 1, v): the maximum, the sum
                   of exp(x - m) and the sum of v*exp(x - m). Factors that do not depend on r are multiplied with the
                   sum behind it; a sum of exp(x - m) among them, which divides a softmax, is the second result. A
                   choice of 0 for whole rows, as `_safe_softmax` has it where m is -inf, is made behind the sum. What x
                   is computed from, a product of matrices too, moves into the reduction, so that no nest writes it.
                   Declined where something else needs x, m or the weights, for they are in memory then anyway; where a
                   row may be empty, whose sum is 0; and where a body checks indices.

    The algebra: with m' the maximum of a part of the row and s' the sum of v*exp(x - m') over it, the sum over both
    parts with respect to the larger maximum m is s'*exp(m' - m) + s''*exp(m'' - m). Milakov, Gimelshein, Online
    normalizer calculation for softmax, 2018; Rabe, Staats, Self-attention does not need O(n^2) memory, 2021; Dao et
    al., FlashAttention, 2022. Floats are rounded otherwise, as everywhere in sums: quotients move behind the sum. Where
    m is infinite the sums are NaN, as exp(inf - inf) is; %z is 0, or NaN there.

    What something else needs of the maximum and the sum of a row, as backward does, is computed in the same nest, where
    all that reads it stands behind: results that do not vary along the columns, of which the first one is stored.

        %x = loop.generate (i0 in 64, i1 in 128) { ... } : T
        %m = loop.generate (i0 in 64) { %r = loop.reduce max (r0 in 128) { ... %x[i0, r0] ... } loop.yield %r } : U
        %e = loop.generate (i0 in 64, i1 in 128) { ... %x[i0, i1] - %m[i0] ... math.exp ... } : T
        %s = loop.generate (i0 in 64) { %r = loop.reduce sum (r0 in 128) { ... %e[i0, r0] ... } loop.yield %r } : U
        %o = loop.generate (i0 in 64, i1 in 32) {
          %r = loop.reduce sum (r0 in 128) { ... %e[i0, r0] / %s[i0] * %v[r0, i1] ... }  loop.yield %r } : V
    becomes
        %o = loop.generate (i0 in 64, i1 in 32) {
          %m, %s, %t = loop.reduce softmax_sum (r0 in 128) { ... loop.yield %x, %one, %v }
          %z = arith.subf %m, %m   %n = arith.addf %s, %z   %a = arith.addf %t, %z   %r = arith.divf %a, %n
          loop.yield %r } : V
    and where %m is returned
        %o, %h = loop.generate (i0 in 64, i1 in 32) { ...  loop.yield %r, %m } : V, V
        %m = loop.scatter set (i0 in 64, i1 in 32) into %d[i0] unique masked {
          %v = loop.load %h[i0, i1]   %first = i1 == 0   loop.yield %v, %first } : U
    """

    name = "loop-stream-reductions"
    rescales: ClassVar[bool] = True  # a sum of numbers near the largest one is infinite before it is divided
    loop_products: bool = False
    emulate_precision_casts: bool = False

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        ranges = symbol_ranges(function)
        nests = [each for each in block.ops if type(each) is GenerateOp]
        for nest in nests if not self.emulate_precision_casts else ():
            asked = self.loop_products or chosen_tile(nest) is not None
            if nest.parent is None or not asked or not has_matrix_units(nest):
                continue
            streamer = _Streamer(nest, block, ranges)
            streamed = streamer.run()
            if streamed is None:
                continue
            sweep(block)
            if streamed.parent is not None and share_rows(streamed, streamer.rows, block):
                remark("passed", self.name, function, "maxima and sums of rows are those of the sum over a softmax")
                sweep(block)


class _Streamer:
    """Rewrites the sums of one nest, on a copy, which takes its place where all went well."""

    def __init__(self, nest: GenerateOp, block: Block, ranges: Ranges) -> None:
        self.nest = nest
        self.block = block
        self.ranges = ranges
        self.rows: list[Rows] = []
        """The nests that reduce the same rows."""

    def run(self) -> GenerateOp | None:
        """Rewrite; the new nest, if there is one."""
        positions = [k for k, op in enumerate(self.nest.body.block.ops) if _is_candidate(op)]
        if not positions:
            return None
        copy = self.nest.clone()
        self.block.insert_op_before(copy, self.nest)
        ops = list(copy.body.block.ops)
        reason: str | None = None
        for position in positions:
            reason = self.stream(cast(ReduceOp, ops[position]))
            if reason is not None:
                break
        sweep(copy.body.block)
        if reason is None:
            reason = self.objection(copy)
        if reason is not None or not counter(StreamReductions.name):
            if reason:
                remark("missed", StreamReductions.name, self.nest, f"a sum over a softmax is not streamed: {reason}")
            self.block.erase_op(copy)
            return None
        remark("passed", StreamReductions.name, self.nest, "a sum over a softmax is one pass over its rows")
        for old, new in zip(self.nest.results, copy.results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        self.block.erase_op(self.nest)
        return copy

    def objection(self, copy: GenerateOp) -> str | None:
        """Why the new nest should not take the place of the old one."""
        if any(type(op) is AssertOp for op in copy.walk()):
            return "it checks indices"
        old = {load.operands[0] for load in loads_in(self.nest)}
        new = {load.operands[0] for load in loads_in(copy)}
        mutations = Mutations(self.block)
        for source in old - new:
            if any(_outlives(source, self.nest, copy, self.block)):
                return "something else reads what it is made of"
        first = self.block.first_op  # what was spliced may come from anywhere in front of the nest
        if mutations and first is not None and mutations.moves_past_write([*new], first, self.nest):
            return "what it reads is written before it"
        return None

    def stream(self, total: ReduceOp) -> str | None:
        """Rewrite one sum; why not."""
        ((axis, size),) = cast(AxesAttr, total.properties["axes"]).data
        least, _ = bounds(size, self.ranges)
        if not least:
            return "its row may be empty, and sums 0 then"
        while (load := next((each for each in _loads(total) if _reaches_weights(each, axis)), None)) is not None:
            _splice(load)
        if any(type(op) is AssertOp for op in total.body.block.ops):
            return "it checks indices"
        last = total.body.block.last_op
        assert last is not None
        terms = expand(last.operands[0], axis, total.body.block)
        if isinstance(terms, str):
            return terms
        if not all(term.inner for term in terms):
            return ""  # the sum of a softmax alone: kernels join it with the maximum
        reason = next((why for term in terms if (why := objection_to_maximum(term, axis))), None)
        if reason is not None:
            return reason
        result, *others = [self.reduction(total, axis, term) for term in terms]
        block = total.parent
        assert block is not None
        for value in others:
            add = arith.AddfOp(result, value)
            add.location = total.location
            block.insert_op_before(add, total)
            result = add.results[0]
        total.results[0].replace_all_uses_with(result)
        block.erase_op(total)
        return None

    def reduction(self, total: ReduceOp, axis: str, term: Term) -> SSAValue:
        """The value of one term, by a reduction of its own."""
        value, reduce, infinite = _Reduction(total, term).build()
        self.rows += rows_of(term, axis, self.nest, reduce, infinite)
        return value


def _is_candidate(op: Operation) -> bool:
    """Whether an op is a sum along one axis that reaches a softmax."""
    if type(op) is not ReduceOp or [c.data for c in op.combiners] != ["sum"] or len(op.axes.data) != 1:
        return False
    axis = op.axes.names[0]
    if any(type(inner) is ReduceOp for inner in op.body.block.ops):
        return False
    return any(map(is_weight, op.body.block.ops)) or any(_reaches_weights(load, axis) for load in _loads(op))


def _loads(op: ReduceOp) -> list[LoadOp]:
    return [each for each in op.body.block.ops if type(each) is LoadOp]


def _reaches_weights(load: LoadOp, axis: str) -> bool:
    """Whether a load moves along an axis and reads the weights of a softmax: a pointwise nest of exp(x - max x)."""
    if not any(axis in e.free_symbols for e in map_of(load).data):
        return False
    producer = load.operands[0].owner
    return isinstance(producer, GenerateOp) and weighs(producer)


def _splice(load: LoadOp) -> None:
    """Compute what a load reads where it stands."""
    block, producer = load.parent, load.operands[0].owner
    assert block is not None and isinstance(producer, GenerateOp)
    site = Site(block, access_of(load), map_of(load).data, [load])
    scope = frozenset(name for name, _ in axes_around(block))
    Splicer(producer, site, scope, move=False).run()


def _outlives(source: SSAValue, nest: GenerateOp, copy: GenerateOp, block: Block) -> list[bool]:
    """For each use that keeps a value in memory once the nest is gone: True."""
    kept: list[bool] = []
    seen: set[SSAValue] = set()
    waiting = [source]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            reader = use.operation
            if type(reader) is not LoadOp:
                kept.append(True)
                continue
            outer = outermost(reader, block)
            if outer is nest or outer is copy:
                continue
            waiting += outer.results
    return kept


class _Reduction:
    """One reduction by `softmax_sum` for one term of a sum."""

    def __init__(self, total: ReduceOp, term: Term) -> None:
        self.total = total
        self.term = term

    def build(self) -> tuple[SSAValue, ReduceOp, Operation]:
        """Insert what a term is, in front of the old sum; its value, the reduction, and what is 0 or NaN."""
        reduce = self.reduce()
        block = self.total.parent
        assert block is not None
        highest, count, weighted = reduce.results
        highest.name_hint, count.name_hint, weighted.name_hint = "highest", "total", "weighted"
        zero = arith.SubfOp(highest, highest)
        ops: list[Operation] = [reduce, zero]
        fixed = arith.AddfOp(weighted, zero.results[0])
        ops.append(fixed)
        value = fixed.results[0]
        for factor, divides in self.term.outer:
            new = self.outside(factor, ops)
            op = arith.DivfOp(value, new) if divides else arith.MulfOp(value, new)
            ops.append(op)
            value = op.results[0]
        if self.term.negative:
            op = arith.NegfOp(value)
            ops.append(op)
            value = op.results[0]
        for condition, hides in self.term.guards:
            known = self.outside(condition, ops)
            nothing = constant(0.0, value.type)
            choices = (nothing.results[0], value) if hides else (value, nothing.results[0])
            op = arith.SelectOp(known, *choices)
            ops += [nothing, op]
            value = op.results[0]
        for op in ops:
            op.location = self.total.location
        block.insert_ops_before(ops, self.total)
        return value, reduce, zero

    def reduce(self) -> ReduceOp:
        """The reduction: (x, 1, what else varies along the axis)."""
        body = self.total.body.block
        ops: list[Operation] = []
        wanted = [self.term.x, *(value for value, _ in self.term.inner)]
        values = copy_slice(wanted, body, ops)
        x, *inner = (values.get(value, value) for value in wanted)
        one = constant(1.0, x.type)
        ops.append(one)
        weight: SSAValue | None = None
        for value, (_, divides) in zip(inner, self.term.inner, strict=True):
            if weight is None and not divides:
                weight = value
                continue
            op = (arith.DivfOp if divides else arith.MulfOp)(one.results[0] if weight is None else weight, value)
            ops.append(op)
            weight = op.results[0]
        ops.append(YieldOp.create(operands=(x, one.results[0], one.results[0] if weight is None else weight)))
        region = Region(Block(ops))
        reduce = ReduceOp.of(self.total.axes, ["softmax_sum"], region)
        reduce.location = self.total.location
        _move_in(reduce, {name for name, _ in axes_around(self.total.parent)})  # pyright: ignore[reportArgumentType]
        return reduce

    def outside(self, value: SSAValue, ops: list[Operation]) -> SSAValue:
        """What a factor that does not depend on the axis is behind the reduction."""
        return copy_slice([value], self.total.body.block, ops).get(value, value)


def _move_in(reduce: ReduceOp, around: set[str]) -> None:
    """Compute the products that the body of a new reduction reads in it."""
    for _ in range(_MOST_SPLICES):
        inside = (
            each for each in loads_in(reduce) if each.parent is reduce.body.block
        )  # others would compute it again
        load = next(filter(_is_of_product, inside), None)
        if load is None:
            return
        block, producer = load.parent, load.operands[0].owner
        assert block is not None and isinstance(producer, GenerateOp)
        names = around | set(reduce.axes.names)
        Splicer(producer, Site(block, access_of(load), map_of(load).data, [load]), frozenset(names), move=False).run()


def _is_of_product(load: LoadOp) -> bool:
    """Whether a load reads what a nest computes by a reduction, or from what such a nest computes."""
    producer = load.operands[0].owner
    if not isinstance(producer, GenerateOp) or access_of(load).mask is not None:
        return False
    if len(cast(TensorType, load.operands[0].type).shape) < 2:
        return False
    return any(type(op) is ReduceOp and [c.data for c in op.combiners] == ["sum"] for op in producer.body.block.ops)
