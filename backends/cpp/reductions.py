"""Accumulators of reductions and scans: one scalar, or an array with one entry a lane."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.loop.body import yielded
from ...dialects.loop.monoids import MONOIDS
from .code import Code
from .context import Context
from .monoids import Combination, combination
from .types import scalar_ctype


class Accumulators:
    """The running values of a reduce or scan, for each of its monoids in turn.

    width: number of lanes; None for plain scalars.
    """

    def __init__(self, context: Context, op: kernel.ReduceOp | kernel.ScanOp, width: int | None = None) -> None:
        self.context = context
        self.width = width
        self.op = op
        self._values: tuple[SSAValue, ...] = yielded(op.body)
        self._parts = _parts(context, op, self._values)
        self._names = [
            [context.name(_short(monoid) if count == 1 else f"{_short(monoid)}_{k}") for k in range(count)]
            for monoid, count, _ in self._parts
        ]

    @property
    def names(self) -> list[str]:
        """C++ names, one for each yielded value."""
        return [name for names in self._names for name in names]

    def elements(self, lane: str = "lane") -> list[Code]:
        """The running values, of one lane where there are lanes."""
        return [Code(self._at(name, lane)) for name in self.names]

    def declare(self) -> None:
        """Write declarations that start at the identity."""
        out = self.context.out
        types = [scalar_ctype(v.type) for v in self._values]
        starts = self._starts()
        for ctype, name, start in zip(types, self.names, starts, strict=True):
            out.line(f"{ctype} {name}{f'[{self.width}]' if self.width else f' = {start}'};")
        if self.width:
            body = " ".join(f"{n}[lane] = {s};" for n, s in zip(self.names, starts, strict=True))
            out.line(f"for (int64_t lane = 0; lane < {self.width}; ++lane) {_braced(body, len(starts))}")

    def accumulate(self, values: Sequence[Code]) -> None:
        """Write the statements that combine the yielded values into the running ones."""
        self._combine([self._at(name, "lane") for name in self.names], values)

    def fold(self) -> list[Code]:
        """Write the combination of all lanes, in a tree; the totals."""
        out, half = self.context.out, (self.width or 1) // 2
        if half:
            out.pragma(f"GCC unroll {half.bit_length()}")
            with (
                out.block(f"for (int64_t width = {half}; width > 0; width /= 2)"),
                out.block("for (int64_t lane = 0; lane < width; ++lane)"),
            ):
                self._combine(
                    [f"{name}[lane]" for name in self.names],
                    [Code(f"{name}[lane + width]") for name in self.names],
                )
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
            assert step is not None, "a custom combiner has a region"
            names, parts = into[position : position + count], values[position : position + count]
            self.context.out.line(step.step(names, parts))
            position += count


def _braced(body: str, statements: int) -> str:
    return body if statements == 1 else f"{{ {body} }}"


def _short(monoid: str) -> str:
    return {"custom": "state", "welford": "moments"}.get(monoid, monoid)


def _parts(
    context: Context, op: kernel.ReduceOp | kernel.ScanOp, values: Sequence[SSAValue]
) -> list[tuple[str, int, Combination | None]]:
    """(monoid, number of values, its C++) for each combiner; a custom one takes all values and has no table entry."""
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


_: type[Operation] = Operation
