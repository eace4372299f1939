"""`loop-accumulate`: what is added up at computed places, and then added to a tensor, is added up in that tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, cast

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.loop import GenerateOp, LoadOp, ScatterOp, yielded
from ...dialects.sym import ONE, ZERO, AxesAttr, symbol
from ..common.functions import functions
from ..common.memory import Mutations, has_assert
from ..counters import counter
from ..remarks import remark
from ._accesses import loads_in, map_of
from ._identities import constant

_SUMS = (arith.AddfOp, arith.AddiOp)


@dataclass(frozen=True)
class Accumulate(ModulePass):
    """Let a scatter that adds to zeros, and whose result is added to something, start from that instead of zeros.

    level:         loop
    precondition:  `loop-eliminate-views`, `loop-cse`; no `loop.fusion` yet
    guarantee:     the same sums in another order, which a scatter that is not `deterministic` leaves open anyway. The
                   table of zeros goes away, and what was added to it may be where the sums are made. So the two
                   gradients of a weight that is both an embedding and the last layer take the memory of one.

    `(0 + a + b) + y == (y + 0) + a + b` but for the order. The zero stays in front, because `-0.0 + 0 == 0`; it goes
    away where a sum from zero on is what is added to, for such a sum is never -0.0. Sums of a low precision stay apart:
    adding two of them rounds once.

        %z = loop.generate (i0 in 9) { %c = arith.constant 0.0 : f32  loop.yield %c } : T
        %s = loop.scatter add (i0 in 4) into %z[d0] { ... loop.yield %v, %j } : T
        %r = loop.generate (i0 in 9) {
          %x = loop.load %y[i0]  %w = loop.load %s[i0]  %a = arith.addf %x, %w : f32  loop.yield %a
        } : T
    becomes
        %d = loop.generate (i0 in 9) {
          %x = loop.load %y[i0]  %c = arith.constant 0.0 : f32  %a = arith.addf %x, %c : f32  loop.yield %a
        } : T
        %r = loop.scatter add (i0 in 4) into %d[d0] { ... loop.yield %v, %j } : T
    """

    name = "loop-accumulate"
    level: ClassVar[str] = "loop"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every function of the module, first sums first."""
        for _, block in functions(op):
            if not any(type(inner) is ScatterOp for inner in block.ops):
                continue
            mutations = Mutations(block)
            for inner in list(block.ops):
                if type(inner) is not GenerateOp or (load := _read_sum(inner)) is None:
                    continue
                scatter = cast(ScatterOp, load.operands[0].owner)
                if _sees_a_write(scatter, inner, mutations):
                    remark("missed", self.name, inner, "an input is written before the sum is used")
                elif counter(self.name):
                    remark("passed", self.name, inner, "the sums are made in what they are added to")
                    _start_from(inner, load, scatter, mutations)


def _sees_a_write(scatter: ScatterOp, nest: GenerateOp, mutations: Mutations) -> bool:
    """Whether at the place of a nest a scatter would read what was written behind it, or report an error too late."""
    read = [each.operands[0] for each in loads_in(scatter)]
    late = has_assert(scatter) and mutations.crosses_any(scatter, nest)
    return late or mutations.moves_past_write(read, scatter, nest)


def _read_sum(nest: GenerateOp) -> LoadOp | None:
    """The load of the scatter's result that a nest does nothing with but add it to something."""
    if len(nest.results) != 1 or type(total := yielded(nest.body)[0].owner) not in _SUMS:
        return None
    for value in cast(Operation, total).operands:
        load = value.owner
        if type(load) is LoadOp and len(load.operands) == 1 and load.value.has_one_use():
            scatter = load.operands[0].owner
            own = tuple(ZERO if size is ONE else symbol(name) for name, size in nest.axes.data)
            if type(scatter) is ScatterOp and _index(load, nest.axes) == own and _adds_to_zeros(scatter, nest):
                return load
    return None


def _index(load: LoadOp, axes: AxesAttr) -> tuple[object, ...]:
    """Where a load reads; an axis of one element is always 0."""
    zeros = {name: ZERO for name, size in axes.data if size is ONE}
    return tuple(expr.subs(zeros) for expr in map_of(load).data)


def _adds_to_zeros(scatter: ScatterOp, nest: GenerateOp) -> bool:
    """Whether a scatter adds to zeros, in any order, what nothing else reads, and as the nest lays it out."""
    if scatter.kind.data != "add" or scatter.deterministic is not None or scatter.in_place is not None:
        return False
    return scatter.out.has_one_use() and scatter.out.type == nest.results[0].type and _is_zero(scatter.dest)


def _is_zero(value: SSAValue) -> bool:
    """Whether a tensor is a nest of the constant 0, and not -0.0."""
    owner = value.owner
    if type(owner) is not GenerateOp:
        return False
    element = yielded(owner.body)[cast(OpResult, value).index].owner
    if type(element) is not arith.ConstantOp:
        return False
    number = element.value
    if isinstance(number, FloatAttr):
        return str(number.value.data) == "0.0"
    return isinstance(number, IntegerAttr) and number.value.data == 0


def _start_from(nest: GenerateOp, load: LoadOp, scatter: ScatterOp, mutations: Mutations) -> None:
    """Put the scatter behind the nest, which adds zeros instead of its sums, or in its place."""
    block, result = cast(Block, nest.parent), nest.results[0]
    start = _sum_to_continue(nest, load)
    if start is None:
        zero = constant(0, load.value.type)
        Rewriter.insert_op(zero, InsertPoint.before(load))
        load.value.replace_all_uses_with(zero.results[0])
        cast(Block, load.parent).erase_op(load)
        start = result
    moved = ScatterOp.create(
        operands=(start,),
        result_types=(result.type,),
        properties=dict(scatter.properties),
        regions=[scatter.detach_region(0)],
        location=scatter.location,
    )
    moved.out.name_hint = result.name_hint
    block.insert_op_after(moved, nest)
    mutations.replace(nest, moved)
    result.replace_uses_with_if(moved.out, lambda use: use.operation is not moved)
    block.erase_op(scatter, safe_erase=start is result)
    if start is not result:
        block.erase_op(nest)


def _sum_to_continue(nest: GenerateOp, load: LoadOp) -> SSAValue | None:
    """The tensor that a nest adds to, if it is read as it is and the result of a sum that starts at zero itself."""
    total = cast(Operation, load.value.get_user_of_unique_use())
    other = next(value for value in total.operands if value is not load.value).owner
    if type(other) is not LoadOp or len(other.operands) != 1 or list(nest.body.block.ops)[2:-1] != [total]:
        return None
    earlier = other.operands[0]
    is_whole = _index(other, nest.axes) == _index(load, nest.axes) and earlier.type == nest.results[0].type
    return earlier if is_whole and earlier.has_one_use() and _starts_at_zero(earlier) else None


def _starts_at_zero(value: SSAValue) -> bool:
    """Whether a tensor is made of sums with a zero as summand: none is -0.0."""
    owner = value.owner
    if type(owner) is ScatterOp and owner.kind.data == "add":
        return _is_zero(owner.dest) or _starts_at_zero(owner.dest)
    if type(owner) is not GenerateOp:
        return False
    total = yielded(owner.body)[cast(OpResult, value).index].owner
    if not isinstance(total, arith.AddfOp):
        return False
    return any(
        type(term.owner) is arith.ConstantOp and str(cast(FloatAttr, term.owner.value).value.data) == "0.0"
        for term in total.operands
    )
