"""`loop-sum-one-hot`: a sum of which one summand at most is not zero is that summand."""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.loop import AssertOp, GenerateOp, IndexOp, LoadOp, ReduceOp, YieldOp, yielded
from ...dialects.raw import ops_of
from ...dialects.scalar import INSERTED_CONVERSIONS, number_of
from ...dialects.sym import AxesAttr, Expr, SymAttr, symbol
from ...records import dataclass
from ..analysis.memory import Mutations
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import access_of, loads_in, map_of
from ._bodies import axes_around
from ._identities import constant, has_constants
from ._splice import Site, Splicer
from .dce import sweep

#: arith's predicates of signed integers
_EQUAL, _LESS, _AT_LEAST = 0, 2, 5


class SumOneHot(LoopPass):
    """Take the one summand of a sum over a one-hot row instead of adding up the row.

    level:         loop
    precondition:  no `loop.fusion` yet; behind `loop-inline` more is seen
    guarantee:     the same values. A sum along one axis r of `select(c and t == r, v, 0)`, where c, t and v do not
                   depend on r, is `select(c and 0 <= t < n, v, 0) + 0`: all other summands are 0, which leave v as it
                   is, NaN and infinity too, and make 0.0 of -0.0, as the addition does. The row may be another
                   generate that the sum reads, as the gradient of a loss of classes is by that of a softmax: its body
                   is then copied for the one element.

        %s = loop.generate (i0 in 4) {
          %r = loop.reduce sum (r0 in 10) {
            %t = loop.load %classes[i0]  %i = loop.index r0  %c = arith.cmpi eq, %t, %i : i64
            %w = arith.select %c, %v, %zero : f32  loop.yield %w }
          loop.yield %r } : T
    becomes
        %s = loop.generate (i0 in 4) {
          %t = loop.load %classes[i0]  %low = arith.cmpi sge, %t, 0  %high = arith.cmpi slt, %t, 10
          %c = arith.andi %low, %high : i1  %w = arith.select %c, %v, %zero : f32  %r = arith.addf %w, %zero : f32
          loop.yield %r } : T
    """

    name = "loop-sum-one-hot"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function of the module."""
        mutations: Mutations | None = None
        for nest in block.ops:
            if type(nest) is not GenerateOp:
                continue
            for reduce in [inner for inner in ops_of(nest.body.block) if type(inner) is ReduceOp]:
                mutations = mutations or Mutations(block)
                _visit(nest, reduce, mutations)


@dataclass
class _OneHot:
    """What makes a body one-hot along an axis: the axis as a value, the comparison with it, what it compares."""

    index: IndexOp
    compare: arith.CmpiOp
    position: SSAValue


def _visit(nest: GenerateOp, reduce: ReduceOp, mutations: Mutations) -> None:
    axes = cast(AxesAttr, reduce.properties["axes"]).data
    is_sum = [name.data for name in reduce.combiners] == ["sum"]
    if not is_sum or len(axes) != 1 or not has_constants(reduce.results):
        return
    ((name, size),) = axes
    block = reduce.body.block
    load = yielded(reduce.body)[0]
    while type(load.owner) in INSERTED_CONVERSIONS:  # casts, which leave 0 what it is
        load = cast(Operation, load.owner).operands[0]
    found = _one_hot(block, name)
    if found is None and type(load.owner) is LoadOp and _reads_one_hot(load.owner, nest, name, mutations):
        if not counter(SumOneHot.name):
            return
        _copy_into(load.owner, block)
        found = _one_hot(block, name)
        assert found is not None
    elif found is None or not counter(SumOneHot.name):
        return
    remark("passed", SumOneHot.name, nest, "one summand instead of a sum")
    _take_summand(reduce, found, size)
    sweep(nest.body.block)


def _one_hot(block: Block, axis: str) -> _OneHot | None:
    """Match `cast(select(c and t == axis, v, 0))`, the one value of a body; nothing else in it depends on the axis."""
    last = block.last_op
    assert isinstance(last, YieldOp)
    if len(last.operands) != 1:
        return None
    path: set[Operation] = {last}
    value = last.operands[0].owner
    while type(value) in INSERTED_CONVERSIONS:
        assert isinstance(value, Operation)
        path.add(value)
        value = value.operands[0].owner
    if type(value) is not arith.SelectOp or number_of(value.operands[2]) != 0:
        return None
    found = _comparison(value.operands[0], axis, path)
    path.add(value)
    if found is None or any(op not in path for op in _readers(found.index)):
        return None
    own = [op for op in block.ops if op not in path and op is not found.index]
    if any(use.operation not in path for op in path for result in op.results for use in result.uses):
        return None
    return None if any(_mentions(op, axis) for op in own) else found


def _comparison(condition: SSAValue, axis: str, path: set[Operation]) -> _OneHot | None:
    """The comparison with the axis in a conjunction; the ops that lead to it are added to the path."""
    op = condition.owner
    if type(op) is arith.AndIOp:
        for operand in op.operands:
            found = _comparison(operand, axis, path)
            if found is not None:
                path.add(op)
                return found
    if type(op) is arith.CmpiOp and op.predicate.value.data == _EQUAL:
        for position, index in (op.operands, reversed(op.operands)):
            owner = index.owner
            if type(owner) is IndexOp and not owner.operands and _expr(owner) is symbol(axis):
                path.add(op)
                return _OneHot(owner, op, position)
    return None


def _expr(op: IndexOp) -> Expr:
    return cast(SymAttr, op.properties["expr"]).data


def _readers(op: Operation) -> list[Operation]:
    return [use.operation for result in op.results for use in result.uses]


def _mentions(op: Operation, axis: str) -> bool:
    """Whether what an op computes depends on an axis by its indices, or what it does is no plain computation."""
    if type(op) is LoadOp:
        return any(axis in e.free_symbols for e in map_of(op).data)
    if type(op) is IndexOp:
        return axis in _expr(op).free_symbols
    return type(op) is AssertOp or bool(op.regions)


def _reads_one_hot(load: LoadOp, nest: GenerateOp, axis: str, mutations: Mutations) -> bool:
    """Whether a body reads rows of a generate, in place along the axis, that are one-hot, and could compute one."""
    producer, access, exprs = load.operands[0].owner, access_of(load), map_of(load).data
    if type(producer) is not GenerateOp or access.mask is not None or access.dynamic:
        return False
    along = [k for k, e in enumerate(exprs) if axis in e.free_symbols]
    if len(along) != 1 or exprs[along[0]] is not symbol(axis):
        return False
    if _one_hot(producer.body.block, producer.axes.names[along[0]]) is None:
        return False
    sources: list[SSAValue] = [each.operands[0] for each in loads_in(producer)]
    return not mutations.moves_past_write(sources, producer, nest)


def _copy_into(load: LoadOp, block: Block) -> None:
    site = Site(block, access_of(load), map_of(load).data, [load])
    scope = frozenset(name for name, _ in axes_around(block))
    producer = load.operands[0].owner
    assert isinstance(producer, GenerateOp)
    Splicer(producer, site, scope, move=False, keep_casts=True).run()


def _take_summand(reduce: ReduceOp, found: _OneHot, size: Expr) -> None:
    """The body in front of the sum, for the place where the comparison holds, if the axis has it."""
    body, around = reduce.body.block, reduce.parent
    last = body.last_op
    assert around is not None and last is not None
    (value,) = last.operands
    length = IndexOp.create(properties={"expr": SymAttr.of(size)}, result_types=(i64,))
    zero = constant(0, i64)
    low = _compare(_AT_LEAST, found.position, zero.results[0])
    high = _compare(_LESS, found.position, length.results[0])
    inside = arith.AndIOp(low.results[0], high.results[0])
    body.insert_ops_before((zero, length, low, high, inside), found.compare)
    found.compare.results[0].replace_all_uses_with(inside.results[0])
    for op in (found.compare, found.index, last):
        body.erase_op(op)
    for op in list(body.ops):
        body.detach_op(op)
        around.insert_op_before(op, reduce)
    start = constant(0, value.type)
    add = arith.AddiOp if isinstance(start.properties["value"], IntegerAttr) else arith.AddfOp
    total = add(value, start.results[0])
    total.location = reduce.location
    around.insert_ops_before((start, total), reduce)
    reduce.results[0].replace_all_uses_with(total.results[0])
    around.erase_op(reduce)


def _compare(predicate: int, left: SSAValue, right: SSAValue) -> arith.CmpiOp:
    return arith.CmpiOp(left, right, predicate)
