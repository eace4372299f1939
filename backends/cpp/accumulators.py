"""Accumulators in lanes: an array with one entry a lane for each value."""

from __future__ import annotations

from collections.abc import Sequence

from typing_extensions import override

from ...dialects import kernel
from ..c_like.context import Context
from ..c_like.reductions import Accumulators, MakeAccumulators
from ..printing.code import Code


class LaneAccumulators(Accumulators):
    """The running values of a reduce or scan in so many lanes."""

    def __init__(
        self, context: Context, op: kernel.ReduceOp | kernel.ScanOp, width: int, wide: bool = False, prefix: str = ""
    ) -> None:
        super().__init__(context, op, wide, prefix)
        self.width = width

    @override
    def elements(self) -> list[Code]:
        return self.values_at(self._of_lane("lane"))

    def _of_lane(self, lane: str) -> list[str]:
        return [f"{name}[{lane}]" for name in self.names]

    @override
    def declare(self) -> None:
        out, starts = self.context.out, self.starts()
        for ctype, name in zip(self.ctypes, self.names, strict=True):
            out.line(f"{ctype} {name}[{self.width}];")
        if self.op.init:  # one value a lane
            body = " ".join(f"{n}[lane] = {s};" for n, s in zip(self.names, starts, strict=True))
            out.line(f"for (int64_t lane = 0; lane < {self.width}; ++lane) {{ {body} }}")
            return
        self.context.need("lanes")
        for ctype, name, start in zip(self.ctypes, self.names, starts, strict=True):
            out.line(f"fill<{ctype}>({name}, {start});")

    @override
    def accumulate(self, values: Sequence[Code]) -> None:
        self.combine(self._of_lane("lane"), values)

    @override
    def add(self, parts: Accumulators) -> None:
        with self.context.out.block(f"for (int64_t lane = 0; lane < {self.width}; ++lane)"):
            self.accumulate(parts.elements())

    def fold(self) -> list[Code]:
        """Write the combination of all lanes, in a tree; the totals."""
        if self.width > 1:
            self.context.need("lanes")
            head = f"fold<{self.width}>([&](int64_t lane, int64_t other) INLINE"
            with self.context.out.block(head, "});"):
                self.accumulate([Code(place) for place in self._of_lane("other")])
        return self.values_at(self._of_lane("0"))


def in_lanes(context: Context, op: kernel.ReduceOp, width: int) -> MakeAccumulators:
    """Makes accumulators of so many lanes."""
    return lambda wide, prefix: LaneAccumulators(context, op, width, wide, prefix)
