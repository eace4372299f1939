"""The pass `kernel-share-softmax-sums`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.effects import has_side_effect
from ...dialects.loop import yielded
from ...dialects.sym import ZERO, Expr, SymAttr, symbol
from ..analysis.effects import written_buffers
from ..analysis.loops import loops_in
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import is_mapped, untiled_for_gpu
from .simplify_block import remove_dead

#: monoids of one value each
_OF_ONE = frozenset(("sum", "max"))


@dataclass(frozen=True)
class KernelShareSoftmaxSums(KernelPass, kernels=untiled_for_gpu):
    """Take the maximum of a row, and the sum of exponentials relative to it, from the sum over the softmax beside them.

    Level: kernel.

    Precondition: in front of `kernel-map-softmax-sums`; loops are serial.
    Guarantee: where the body of a loop of rows is a maximum of x, a sum of exp(x - m), or both, and a loop of columns
    around a reduction `softmax_sum` of the same x, the former are results of the latter, and everything is in the loop
    of columns; what was stored for a row is stored in the first column. Then the nest is a perfect one. That x is the
    same is read from the bodies. Declined where a buffer that is stored to is read. %z is 0, or NaN where %h is not
    finite, as exp(inf - inf) is.

        kernel.for i0 in 0 to 64 {
          %m = kernel.reduce max i1 in 0 to 512 { ... kernel.yield %x }   kernel.store %m, %a[i0]
          %s = kernel.reduce sum i1 in 0 to 512 { ... math.exp (%x - %m) ... }   kernel.store %s, %b[i0]
          kernel.for i2 in 0 to 16 {
            %h, %t, %w = kernel.reduce softmax_sum i1 in 0 to 512 { ... kernel.yield %x, %one, %v } ... } }
    becomes
        kernel.for i0 in 0 to 64 { kernel.for i2 in 0 to 16 {
          %h, %t, %w = kernel.reduce softmax_sum i1 in 0 to 512 { ... kernel.yield %x, %one, %v }
          %first = i2 == 0   kernel.store %h, %a[i0] if %first
          %z = arith.subf %h, %h   %s = arith.addf %t, %z   kernel.store %s, %b[i0] if %first ... } }
    """

    name = "kernel-share-softmax-sums"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Share the sums of a kernel."""
        if is_mapped(function) or written_buffers(function.body.block) & _read(function):
            return
        for rows in [loop for loop in loops_in(function.body.block) if isinstance(loop, kernel.ForOp)]:
            found = _Rows.of(rows)
            if found is not None and counter(self.name):
                found.share()
                remark("passed", self.name, function, "maxima and sums of rows are those of the sum over the softmax")
        remove_dead(function.body.block)


def _read(function: kernel.FuncOp) -> set[SSAValue]:
    return {op.buffer for op in function.walk() if isinstance(op, kernel.LoadOp)}


@dataclass(frozen=True)
class _Rows:
    """The body of a loop of rows: reductions of a row, and a loop of columns with the sum over its softmax."""

    block: Block
    columns: kernel.ForOp
    total: kernel.ReduceOp
    highest: dict[SSAValue, int]
    """Maxima, and the numbers of the softmaxes that they are of."""
    sums: dict[SSAValue, int]

    @staticmethod
    def of(rows: kernel.ForOp) -> _Rows | None:
        """The body of a loop as such, if it is one."""
        block = rows.body.block
        loops = [op for op in block.ops if op.regions]
        reduces = [op for op in loops if isinstance(op, kernel.ReduceOp)]
        columns = loops[-1] if loops else None
        if not isinstance(columns, kernel.ForOp) or not reduces or len(reduces) != len(loops) - 1:
            return None
        inner = [op for op in columns.body.block.ops if op.regions]
        total = inner[0] if len(inner) == 1 and columns.lo.data is ZERO else None
        if not isinstance(total, kernel.ReduceOp) or {c.data for c in total.combiners} != {"softmax_sum"}:
            return None
        numbers = range(len(total.combiners))
        results = [result for op in reduces for result in op.results]
        highest: dict[SSAValue, int] = {each: k for each in results for k in numbers if _is_highest(each, total, k)}
        sums: dict[SSAValue, int] = {each: k for each in results for k in numbers if _adds(each, total, k, highest)}
        if len(highest) + len(sums) != len(results):
            return None
        return _Rows(block, columns, total, highest, sums)

    def share(self) -> None:
        """Move everything into the loop of columns, behind its reduction."""
        body = self.columns.body.block
        ops = [op for op in self.block.ops if op is not self.columns and not isinstance(op, kernel.YieldOp)]
        needed = _needed(self.total, self.block)
        front = [op for op in ops if op in needed]
        for op in front:
            op.detach()
            assert body.first_op is not None
        first = body.first_op
        assert first is not None
        body.insert_ops_before(front, first)
        place = kernel.IndexOp.create(
            properties={"expr": SymAttr.of(symbol(self.columns.axis.data))}, result_types=(i64,)
        )
        zero = arith.ConstantOp(IntegerAttr(0, i64))
        is_first = arith.CmpiOp(place.results[0], zero.result, "eq")
        behind: list[Operation] = [place, zero, is_first]
        counts: list[SSAValue] = []
        for highest, total, _ in _softmaxes(self.total.results):
            infinite = arith.SubfOp(highest, highest)
            count = arith.AddfOp(total, infinite.result)
            behind += [infinite, count]
            counts.append(count.result)
        for op in ops:
            if isinstance(op, kernel.ReduceOp):
                for result in op.results:
                    is_highest = result in self.highest
                    value = self.total.results[3 * self.highest[result]] if is_highest else counts[self.sums[result]]
                    result.replace_all_uses_with(value)
                op.detach()
                op.erase()
            elif op not in needed:
                op.detach()
                behind += _masked(op, is_first.result) if isinstance(op, kernel.StoreOp) else [op]
        body.insert_ops_after(behind, self.total)


def _masked(op: kernel.StoreOp, condition: SSAValue) -> list[Operation]:
    """A store under one condition more."""
    both = None if op.mask is None else arith.AndIOp(op.mask, condition)
    mask = condition if both is None else both.result
    store = kernel.StoreOp.of(op.value, op.buffer, op.map, tuple(op.dynamic), mask, op.kind.data, location=op.location)
    op.erase()
    return [store] if both is None else [both, store]


def _needed(total: Operation, block: Block) -> set[Operation]:
    """The ops of a block that an op below it is computed from."""
    found: set[Operation] = set()
    waiting = [value for op in total.walk() for value in op.operands]
    while waiting:
        op = waiting.pop().owner
        if isinstance(op, Operation) and op.parent is block and op not in found:
            found.add(op)
            waiting += op.operands
    return found


def _softmaxes(values: Sequence[SSAValue]) -> list[tuple[SSAValue, SSAValue, SSAValue]]:
    """The three values of each softmax."""
    return [(values[k], values[k + 1], values[k + 2]) for k in range(0, len(values), 3)]


def _is_highest(value: SSAValue, total: kernel.ReduceOp, number: int) -> bool:
    """Whether a result of a reduction is the maximum of what a softmax is of."""
    found = _reduced(value, "max")
    if found is None:
        return False
    op, x = found
    return _is_along(op, total) and _is_same(x, yielded(total.body)[3 * number], _axes(op, total))


def _adds(value: SSAValue, total: kernel.ReduceOp, number: int, highest: Mapping[SSAValue, int]) -> bool:
    """Whether a result of a reduction is the sum of exp(x - m), with such a maximum m."""
    found = _reduced(value, "sum")
    weight = None if found is None else found[1].owner
    difference = weight.operand.owner if isinstance(weight, math.ExpOp) else None
    if found is None or not isinstance(difference, arith.SubfOp) or highest.get(difference.rhs) != number:
        return False
    op, x = found[0], yielded(total.body)[3 * number]
    return _is_along(op, total) and _is_same(difference.lhs, x, _axes(op, total))


def _reduced(value: SSAValue, monoid: str) -> tuple[kernel.ReduceOp, SSAValue] | None:
    """A reduction, of sums and maxima without effects, and what it combines by a monoid to a result."""
    op = value.owner
    if not isinstance(op, kernel.ReduceOp) or any(map(has_side_effect, op.body.block.ops)):
        return None
    names, place = [c.data for c in op.combiners], next(k for k, each in enumerate(op.results) if each is value)
    return (op, yielded(op.body)[place]) if set(names) <= _OF_ONE and names[place] == monoid else None


def _is_along(op: kernel.ReduceOp, total: kernel.ReduceOp) -> bool:
    return op.lo.data is total.lo.data and op.hi.data is total.hi.data and op.combine is None


def _axes(op: kernel.ReduceOp, other: kernel.ReduceOp) -> dict[str, Expr]:
    return {op.axis.data: symbol(other.axis.data)}


def _is_same(one: SSAValue, other: SSAValue, axes: Mapping[str, Expr]) -> bool:
    """Whether two scalars are computed alike, where `axes` are those of the first one's loops in terms of the other's.

    Buffers that are read are not written, so that what is loaded from one place is one value.
    """
    left, right = one.owner, other.owner
    if one is other:
        return True
    if not isinstance(left, Operation) or not isinstance(right, Operation) or type(left) is not type(right):
        return False
    if len(left.operands) != len(right.operands) or left.attributes != right.attributes:
        return False
    if isinstance(left, kernel.ReduceOp) and isinstance(right, kernel.ReduceOp):
        inner = {**axes, **_axes(left, right)}
        pair = _reduced(one, "sum"), _reduced(other, "sum")
        if pair[0] is None or pair[1] is None or not _is_along(left, right):
            return False
        return _is_same(pair[0][1], pair[1][1], inner)
    if isinstance(left, kernel.LoadOp) and isinstance(right, kernel.LoadOp):
        same = [expr.subs(axes) for expr in left.map.data] == list(right.map.data)
    elif isinstance(left, kernel.IndexOp) and isinstance(right, kernel.IndexOp):
        same = left.expr.data.subs(axes) is right.expr.data
    else:
        same = not left.regions and left.properties == right.properties
    return same and all(_is_same(a, b, axes) for a, b in zip(left.operands, right.operands, strict=True))
