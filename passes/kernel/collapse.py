"""The pass `kernel-collapse`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeGuard

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.loop import yielded
from ...dialects.loop.monoids import MONOIDS
from ...dialects.raw import ops_of
from ...dialects.sym import ONE, ZERO, Expr, MapAttr, SymAttr, symbol
from ...machines import CpuTarget
from ...records import dataclass
from ..analysis.loops import Loop, ops_in, substitute_axes
from ..common.locations import merged
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .value_numbering import region_key

Pair = kernel.ForOp | kernel.ReduceOp
#: longest axis that is too short for lanes
SHORT = 8
#: numbers of 8 bits that a thread of a GPU loads at once
GROUP = 16


@dataclass(frozen=True)
class KernelCollapse(KernelPass):
    """Make one loop of two whose axes occur only as one linear index.

    Level: kernel.

    Precondition: loops are serial and without tiles.
    Guarantee: no two loops, one right inside the other, whose axes occur only as `size*outer + inner`; no `for` of one
    iteration, and no `reduce` of one element, which is that element, plus 0.0 in a sum of floats. For a GPU, what a
    reduction loads for each outer iteration alone, as scales of groups, is loaded at the quotient of the joint axis,
    where a thread's elements are of one group.

        kernel.for i0 in 0 to 8 { kernel.for i1 in 0 to 16 { %v = kernel.load %x[16*i0 + i1] ... } kernel.yield }
    becomes
        kernel.for i0 in 0 to 128 { %v = kernel.load %x[i0] ... }

    On a CPU, an inner axis that is too short for lanes also lets the outer one stand in comparisons with bounds, which
    are those of the joint axis, `size` times as large.

        kernel.for i0 in 0 to 228 { kernel.for i1 in 0 to 3 { %i = kernel.index i0 - 2  %c = arith.cmpi sge, %i, %zero
          %v = kernel.load %x[3*i0 + i1 - 6] if %c else %none ... } kernel.yield }
    becomes
        kernel.for i0 in 0 to 684 { %i = kernel.index i0 - 6  %c = arith.cmpi sge, %i, %zero
          %v = kernel.load %x[i0 - 6] if %c else %none ... }
    """

    name = "kernel-collapse"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Collapse loops in every kernel, innermost first."""
        is_cpu = isinstance(facts.target, CpuTarget)
        collapse_block(function.body.block, SHORT if is_cpu else 0, 0 if is_cpu else GROUP)


def collapse_block(block: Block, short: int = 0, group: int = 0) -> None:
    """Collapse the loops of a block and of the blocks nested in it.

    short: longest inner axis whose outer one may stand in comparisons
    group: what the inner axis of a reduction is a multiple of where the outer one may be a quotient; 0: nowhere
    """
    for op in ops_of(block):
        if not isinstance(op, Loop) or is_pinned(op):
            continue
        for region in op.regions:
            collapse_block(region.block, short, group)
        if _runs_once(op):
            _inline(op)
        elif not isinstance(op, kernel.ScanOp):
            while (inner := _only_loop(op)) is not None and _collapse(op, inner, short, group):
                pass


def _runs_once(op: Operation) -> TypeGuard[Pair]:
    """Whether a loop has one iteration, with nothing to combine it with."""
    if isinstance(op, kernel.ReduceOp) and (op.combine is not None or op.init):
        return False
    return isinstance(op, kernel.ForOp | kernel.ReduceOp) and op.hi.data - op.lo.data is ONE


def _inline(op: Pair) -> None:
    """Run the only iteration in place of the loop. A sum of floats is the identity 0.0 and the element: never -0.0."""
    substitute_axes(op.body.block, {op.axis.data: op.lo.data})
    parent = op.parent
    assert parent is not None
    values = list(yielded(op.body))
    end = op.body.block.last_op
    names = [name.data for name in op.combiners.data] if isinstance(op, kernel.ReduceOp) else []
    position = 0
    for name in names:
        value = values[position]
        if name == "sum" and isinstance(value.type, AnyFloat) and end is not None:
            zero = arith.ConstantOp(FloatAttr(0.0, value.type))
            total = arith.AddfOp(zero, value)
            for added in (zero, total):
                added.location = op.location
                op.body.block.insert_op_before(added, end)
            values[position] = total.result
        position += MONOIDS[name].arity
    _splice(parent, op, values)


def _only_loop(outer: Pair) -> Pair | None:
    """The loop that is all of a loop's body, if it computes the same reduction or none."""
    first = outer.body.block.first_op
    last = outer.body.block.last_op
    if first is None or first.next_op is not last or type(first) is not type(outer):
        return None
    assert isinstance(first, kernel.ForOp | kernel.ReduceOp)
    plain = (ZERO, "serial", None)
    if any((op.lo.data, op.mapping.data, op.tile) != plain for op in (outer, first)):
        return None
    if isinstance(outer, kernel.ReduceOp) and isinstance(first, kernel.ReduceOp) and not _same_reduction(outer, first):
        return None
    return first


def _same_reduction(outer: kernel.ReduceOp, inner: kernel.ReduceOp) -> bool:
    if outer.combiners != inner.combiners or tuple(outer.init) != tuple(inner.init):
        return False
    if tuple(yielded(outer.body)) != tuple(inner.results):
        return False
    if outer.combine is None or inner.combine is None:
        return outer.combine is inner.combine
    return region_key(outer.combine) == region_key(inner.combine)


def _collapse(outer: Pair, inner: Pair, short: int, group: int) -> bool:
    """Make one loop of two if every expression allows it."""
    size = inner.hi.data
    axis, inside = outer.axis.data, inner.axis.data
    if not size.free_symbols.isdisjoint((axis,)):
        return False
    body = inner.body.block
    joint = _Joint(axis, inside, size, _has_groups(inner, size, group))
    compared = _compared(body, joint) if 1 < (size.as_int() or 0) <= short else []
    if not all(joint.fits(expr) for expr in _expressions(body, compared)) or not counter("kernel-collapse"):
        return False
    for op in compared:
        _scale(op, joint)
    _rewrite(body, joint)
    outer.properties["hi"] = SymAttr.of(outer.hi.data * size)
    outer.location = merged((outer.location, inner.location))
    _take_body(outer, inner)
    return True


class _Joint:
    """Expressions in one axis `j = size*outer + inner`, found by writing the inner axis as `j - size*outer`."""

    def __init__(self, outer: str, inner: str, size: Expr, has_groups: bool) -> None:
        self.outer, self.inner, self.size, self.has_groups = outer, inner, size, has_groups
        self._values = {inner: symbol(_JOINT) - size * symbol(outer)}
        self._done: dict[Expr, Expr] = {}

    def fits(self, expr: Expr) -> bool:
        """Whether the outer axis drops out, or may be a quotient."""
        if self.outer not in expr.free_symbols and self.inner not in expr.free_symbols:
            return True
        if self.has_groups and self.inner not in expr.free_symbols:
            return True
        return self.outer not in self._joined(expr).free_symbols

    def of(self, expr: Expr) -> Expr:
        """The expression with the outer axis's name standing for the joint axis."""
        if self.outer not in expr.free_symbols and self.inner not in expr.free_symbols:
            return expr
        if self.has_groups and self.inner not in expr.free_symbols:
            return expr.subs({self.outer: symbol(self.outer) // self.size})
        return self._joined(expr).subs({_JOINT: symbol(self.outer)})

    def _joined(self, expr: Expr) -> Expr:
        found = self._done.get(expr)
        if found is None:
            found = self._done[expr] = expr.subs(self._values)
        return found


_JOINT = "joint."


def _has_groups(inner: Pair, size: Expr, group: int) -> bool:
    """Whether a reduction runs along memory in groups of a power of two of elements, all in what it loads."""
    length = size.as_int()
    if not group or not isinstance(inner, kernel.ReduceOp) or length is None or length % group or length & (length - 1):
        return False
    ops = list(inner.body.block.ops)
    if any(isinstance(op, kernel.IndexOp | kernel.StoreOp) or op.regions for op in ops):
        return False
    steps = [op.map.data[0].coefficient(inner.axis.data) for op in ops if isinstance(op, kernel.LoadOp)]
    return any(step is ONE for step in steps)


def _compared(block: Block, joint: _Joint) -> list[kernel.IndexOp]:
    """Indices that the outer axis is a part of, and that are only compared with bounds."""
    ops = (op for each in block.ops for op in ops_in(each))
    return [op for op in ops if isinstance(op, kernel.IndexOp) and _is_compared(op, joint)]


def _is_compared(op: kernel.IndexOp, joint: _Joint) -> bool:
    step = _step(op.expr.data, joint.outer)
    if op.dynamic or step is None or joint.inner in op.expr.data.free_symbols:
        return False
    return all(_bound(use.operation, op, joint) is not None for use in op.value.uses)


def _step(expr: Expr, axis: str) -> int | None:
    """1 or -1, if an expression is that many times an axis and something; else None."""
    difference = expr.subs({axis: symbol(axis) + 1}) - expr
    step = difference.as_int()
    return step if step in (1, -1) else None


def _bound(user: Operation, index: kernel.IndexOp, joint: _Joint) -> Expr | None:
    """b of `index >= b` and `index < b`, where neither axis is a part of it."""
    if not isinstance(user, arith.CmpiOp) or user.lhs is not index.value:
        return None
    bound = kernel.index_of(user.rhs)
    if bound is None or user.predicate.value.data not in _AT_LEAST_OR_BELOW:
        return None
    return bound if bound.free_symbols.isdisjoint((joint.outer, joint.inner)) else None


#: the predicates `sge` and `slt`
_AT_LEAST_OR_BELOW = (5, 2)


def _scale(index: kernel.IndexOp, joint: _Joint) -> None:
    """Compare `size*index + digit` with `size*bound`, which says the same: the digit is below the size."""
    digit = symbol(joint.inner)
    if _step(index.expr.data, joint.outer) == -1:
        digit = joint.size - 1 - digit
    for use in list(index.value.uses):
        bound = _bound(use.operation, index, joint)
        block = use.operation.parent
        assert bound is not None and block is not None
        properties = {"expr": SymAttr.of(bound * joint.size)}
        scaled = kernel.IndexOp.create(properties=properties, result_types=(i64,))
        scaled.location = use.operation.location
        block.insert_op_before(scaled, use.operation)
        use.operation.operands[1] = scaled.value
    index.properties["expr"] = SymAttr.of(index.expr.data * joint.size + digit)


def _expressions(block: Block, compared: Sequence[Operation]) -> Iterator[Expr]:
    for op in block.ops:
        if op in compared:
            continue
        if isinstance(op, kernel.LoadOp | kernel.StoreOp):
            yield op.map.data[0]
        elif isinstance(op, kernel.IndexOp):
            yield op.expr.data
        elif isinstance(op, kernel.LocalOp):
            yield op.buffer.type.extent  # pyright: ignore[reportAttributeAccessIssue]
        elif isinstance(op, Loop):
            yield op.lo.data
            yield op.hi.data
            for region in op.regions:
                yield from _expressions(region.block, compared)


def _rewrite(block: Block, joint: _Joint) -> None:
    for op in block.ops:
        if isinstance(op, kernel.LoadOp | kernel.StoreOp):
            op.properties["map"] = MapAttr.of(joint.of(op.map.data[0]))
        elif isinstance(op, kernel.IndexOp):
            op.properties["expr"] = SymAttr.of(joint.of(op.expr.data))
        elif isinstance(op, Loop):
            op.properties["lo"] = SymAttr.of(joint.of(op.lo.data))
            op.properties["hi"] = SymAttr.of(joint.of(op.hi.data))
            for region in op.regions:
                _rewrite(region.block, joint)


def _take_body(outer: Pair, inner: Pair) -> None:
    """Put the ops of an inner loop in place of it."""
    _splice(outer.body.block, inner, yielded(inner.body))


def _splice(block: Block, inner: Pair, values: Sequence[SSAValue]) -> None:
    """Put the ops of a loop in this block in place of it, and values in place of its results."""
    body = inner.body.block
    moved: list[Operation] = list(body.ops)[:-1]
    for op in moved:
        body.detach_op(op)
        block.insert_op_before(op, inner)
    for result, value in zip(inner.results, values, strict=True):
        result.replace_all_uses_with(value)
    block.erase_op(inner)
