"""Accumulators of reductions and scans: one scalar, or an array with one entry a lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.loop.body import yielded
from ...dialects.loop.monoids import MONOIDS
from .checked import loop_head
from .code import Code, call
from .context import Context
from .conversions import cast
from .monoids import Combination, combination
from .statements import Statements
from .types import half_name, scalar_ctype

#: gets the values that a body yields for one element
OnYield = Callable[[Sequence[Code]], None]


class Accumulators:
    """The running values of a reduce or scan, for each of its monoids in turn.

    width:  number of lanes; None for plain scalars
    wide:   whether sums (and, in scans, products) of floats are kept in double: sums of blocks, and running values of a
            scan, as eager keeps them
    prefix: begins the C++ names
    """

    def __init__(
        self,
        context: Context,
        op: kernel.ReduceOp | kernel.ScanOp,
        width: int | None = None,
        wide: bool = False,
        prefix: str = "",
    ) -> None:
        self.context = context
        self.width = width
        self.op = op
        self._values: tuple[SSAValue, ...] = yielded(op.body)
        self._parts = _parts(context, op, self._values)
        monoids = ("sum", "prod") if isinstance(op, kernel.ScanOp) else ("sum",)
        in_double = kernel.float_sums(op, monoids) if wide else frozenset[int]()
        self._ctypes = ["double" if k in in_double else scalar_ctype(v.type) for k, v in enumerate(self._values)]
        self.names: list[str] = []
        """C++ names, one for each yielded value."""
        for monoid, count, _ in self._parts:
            short = prefix + _SHORT.get(monoid, monoid)
            self.names += [context.name(short if count == 1 else f"{short}_{k}") for k in range(count)]

    def elements(self, lane: str = "lane") -> list[Code]:
        """The running values, of one lane where there are lanes."""
        return [
            self._converted(Code(self._at(name, lane)), ctype, value)
            for name, ctype, value in zip(self.names, self._ctypes, self._values, strict=True)
        ]

    def _converted(self, place: Code, ctype: str, value: SSAValue) -> Code:
        """A running value as what the body yields: halves are accumulated in float, long sums in double."""
        half, wanted = half_name(value.type), scalar_ctype(value.type)
        if ctype != wanted:
            place = cast(wanted, place)
        if half is None:
            return place
        self.context.need(half)
        return call(f"round_{half}", place)

    def declare(self) -> None:
        """Write declarations that start at the identity."""
        out, starts = self.context.out, self._starts()
        for ctype, name, start in zip(self._ctypes, self.names, starts, strict=True):
            out.line(f"{ctype} {name}{f'[{self.width}]' if self.width else f' = {start}'};")
        if not self.width:
            return
        if self.op.init:  # one value a lane
            body = " ".join(f"{n}[lane] = {s};" for n, s in zip(self.names, starts, strict=True))
            out.line(f"for (int64_t lane = 0; lane < {self.width}; ++lane) {{ {body} }}")
            return
        self.context.need("lanes")
        for ctype, name, start in zip(self._ctypes, self.names, starts, strict=True):
            out.line(f"fill<{ctype}>({name}, {start});")

    def accumulate(self, values: Sequence[Code]) -> None:
        """Write the statements that combine the yielded values into the running ones."""
        self._combine([self._at(name, "lane") for name in self.names], values)

    def add(self, parts: Accumulators) -> None:
        """Write the statements that combine other accumulators of the same op into these."""
        if self.width is None:
            self.accumulate(parts.elements())
            return
        with self.context.out.block(f"for (int64_t lane = 0; lane < {self.width}; ++lane)"):
            self.accumulate(parts.elements())

    def fold(self) -> list[Code]:
        """Write the combination of all lanes, in a tree; the totals."""
        if self.width is not None and self.width > 1:
            self.context.need("lanes")
            head = f"fold<{self.width}>([&](int64_t lane, int64_t other) INLINE"
            with self.context.out.block(head, "});"):
                self.accumulate([Code(f"{name}[other]") for name in self.names])
        return self.elements("0")

    def _at(self, name: str, lane: str) -> str:
        return f"{name}[{lane}]" if self.width else name

    def _starts(self) -> list[Code]:
        if self.op.init:
            return [self.context.value(v) for v in self.op.init]
        return [start for _, _, step in self._parts if step is not None for start in step.identity]

    def _combine(self, into: Sequence[str], values: Sequence[Code]) -> None:
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
        statements = Statements(context)
        for op in region.block.ops:
            if not isinstance(op, kernel.YieldOp):
                statements.emit(op)
        results = [context.value(v) for v in yielded(region)]
        if len(results) > 1:  # each may use every running value, so none is overwritten before all are known
            names = [context.temporary() for _ in results]
            for name, result, value in zip(names, results, self._values, strict=True):
                context.out.line(f"const {scalar_ctype(value.type)} {name} = {result};")
            results = [Code(name) for name in names]
        for name, result in zip(into, results, strict=True):
            context.out.line(f"{name} = {result};")


_SHORT = {"custom": "state", "welford": "moments"}


def _parts(
    context: Context, op: kernel.ReduceOp | kernel.ScanOp, values: Sequence[SSAValue]
) -> list[tuple[str, int, Combination | None]]:
    """(monoid, number of values, its C++) for each combiner; a custom one takes all values and has a region."""
    if op.combine is not None:
        return [("custom", len(values), None)]
    parts: list[tuple[str, int, Combination | None]] = []
    position = 0
    for combiner in op.combiners:
        arity = MONOIDS[combiner.data].arity
        types = [v.type for v in values[position : position + arity]]
        parts.append((combiner.data, arity, combination(combiner.data, types, context.need)))
        position += arity
    return parts


def reduce_in_blocks(
    context: Context,
    op: kernel.ReduceOp,
    width: int | None,
    loop: Callable[[Code, Code, OnYield], None],
) -> Accumulators:
    """Write a reduction: `loop(lo, hi, on_yield)` writes the loop over a part of the axis, all of it or a `block`."""
    totals = Accumulators(context, op, width, wide=op.block is not None)
    totals.declare()
    lo, hi = context.index(op.lo.data), context.index(op.hi.data)
    if op.block is None:
        loop(lo, hi, totals.accumulate)
        return totals
    length = op.block.value.data
    context.need("int_minmax")
    block = context.name(f"{op.axis.data}_block")
    context.out.line("// in blocks, so that rounding errors do not pile up")
    with context.out.block(loop_head(context, block, lo, hi, f"{block} += {length}")):
        parts = Accumulators(context, op, width, prefix="block_")
        parts.declare()
        end = Code(f"min_int<int64_t>({block} + {length}, {hi})")
        loop(Code(block), end, parts.accumulate)
        totals.add(parts)
    context.taken.discard(block)
    return totals
