"""Accumulators of reductions and scans: one variable for each value."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.loop.body import yielded
from ...dialects.loop.monoids import MONOIDS
from ..printing.code import Code, call
from .checked import loop_head
from .context import Context
from .conversions import cast
from .monoids import Combination, combination
from .statements import Statements
from .types import half_name, scalar_ctype

#: gets the values that a body yields for one element
OnYield = Callable[[Sequence[Code]], None]


class Accumulators:
    """The running values of a reduce or scan, for each of its monoids in turn.

    wide:   whether sums (and, in scans, products) of floats are kept in double: sums of blocks, and running values of a
            scan, as eager keeps them
    prefix: begins the names
    """

    def __init__(
        self, context: Context, op: kernel.ReduceOp | kernel.ScanOp, wide: bool = False, prefix: str = ""
    ) -> None:
        self.context = context
        self.op = op
        self._values: tuple[SSAValue, ...] = yielded(op.body)
        is_scan = isinstance(op, kernel.ScanOp)
        self._parts = _parts(context, op, self._values, wide and is_scan)
        in_double = kernel.float_sums(op, ("sum", "prod") if is_scan else ("sum",)) if wide else frozenset[int]()
        if wide and is_scan:
            in_double |= {k + 1 for k in kernel.float_sums(op, ("logsumexp",))}  # (maximum, sum)
        self.ctypes = ["double" if k in in_double else scalar_ctype(v.type) for k, v in enumerate(self._values)]
        self.names: list[str] = []
        """Names, one for each yielded value."""
        for monoid, count, _ in self._parts:
            short = prefix + _SHORT.get(monoid, monoid)
            self.names += [context.names.fresh(short if count == 1 else f"{short}_{k}") for k in range(count)]

    def elements(self) -> list[Code]:
        """The running values."""
        return self.values_at(self.names)

    def values_at(self, places: Sequence[str]) -> list[Code]:
        """The values that these variables hold, as what the body yields: halves are accumulated in float, long sums in
        double."""
        found: list[Code] = []
        for place, ctype, value in zip(places, self.ctypes, self._values, strict=True):
            half, wanted = half_name(value.type), scalar_ctype(value.type)
            code = Code(place) if ctype == wanted else cast(wanted, Code(place))
            if half is not None:
                self.context.need(half)
                code = call(f"round_{half}", code)
            found.append(code)
        return found

    def declare(self) -> None:
        """Write declarations that start at the identity."""
        for ctype, name, start in zip(self.ctypes, self.names, self.starts(), strict=True):
            self.context.out.line(f"{ctype} {name} = {start};")

    def accumulate(self, values: Sequence[Code]) -> None:
        """Write the statements that combine the yielded values into the running ones."""
        self.combine(self.names, values)

    def add(self, parts: Accumulators) -> None:
        """Write the statements that combine other accumulators of the same op into these."""
        self.accumulate(parts.elements())

    def starts(self) -> list[Code]:
        """The values of no elements."""
        if self.op.init:
            return [self.context.value(v) for v in self.op.init]
        return [start for _, _, step in self._parts if step is not None for start in step.identity]

    def combine(self, into: Sequence[str], values: Sequence[Code]) -> None:
        """Write the statements that combine values into variables."""
        position = 0
        for _, count, step in self._parts:
            names, parts = into[position : position + count], values[position : position + count]
            if step is None:
                self._combine_by_region(names, parts)
            else:
                self.context.out.line(step.step(names, parts))
            position += count

    def _combine_by_region(self, into: Sequence[str], values: Sequence[Code]) -> None:
        context, region = self.context, self.op.combine
        assert region is not None
        for argument, code in zip(region.block.args, (*map(Code, into), *values), strict=True):
            context.values[argument] = code
        Statements(context).ops(op for op in region.block.ops if not isinstance(op, kernel.YieldOp))
        results = [context.value(v) for v in yielded(region)]
        if len(results) > 1:  # each may use every running value, so none is overwritten before all are known
            names = [context.names.temporary() for _ in results]
            for name, result, value in zip(names, results, self._values, strict=True):
                context.out.line(f"const {scalar_ctype(value.type)} {name} = {result};")
            results = [Code(name) for name in names]
        for name, result in zip(into, results, strict=True):
            context.out.line(f"{name} = {result};")


_SHORT = {"custom": "state", "welford": "moments"}


def _parts(
    context: Context, op: kernel.ReduceOp | kernel.ScanOp, values: Sequence[SSAValue], wide: bool
) -> list[tuple[str, int, Combination | None]]:
    """(monoid, number of values, how they combine) for each combiner; a custom one takes all and has a region."""
    if op.combine is not None:
        return [("custom", len(values), None)]
    parts: list[tuple[str, int, Combination | None]] = []
    position = 0
    for combiner in op.combiners:
        arity = MONOIDS[combiner.data].arity
        types = [v.type for v in values[position : position + arity]]
        parts.append((combiner.data, arity, combination(combiner.data, types, context.need, wide)))
        position += arity
    return parts


#: makes accumulators from whether they are wide, and what begins their names
MakeAccumulators = Callable[[bool, str], Accumulators]


def reduce_in_blocks(
    context: Context,
    op: kernel.ReduceOp,
    loop: Callable[[Code, Code, OnYield], None],
    make: MakeAccumulators | None = None,
) -> Accumulators:
    """Write a reduction: `loop(lo, hi, on_yield)` writes the loop over a part of the axis, all of it or a `block`."""
    make = make or (lambda wide, prefix: Accumulators(context, op, wide, prefix))
    totals = make(op.block is not None, "")
    totals.declare()
    lo, hi = context.index(op.lo.data), context.index(op.hi.data)
    if op.block is None:
        loop(lo, hi, totals.accumulate)
        return totals
    length = op.block.value.data
    context.need("int_minmax")
    block = context.names.fresh(f"{op.axis.data}_block")
    context.out.line("// in blocks, so that rounding errors do not pile up")
    with context.out.block(loop_head(context, block, lo, hi, f"{block} += {length}")):
        parts = make(False, "block_")
        parts.declare()
        end = call(context.language.generic("min_int", "int64_t"), Code(f"{block} + {length}"), hi)
        loop(Code(block), end, parts.accumulate)
        totals.add(parts)
    context.names.release(block)
    return totals
