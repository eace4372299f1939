"""`graph-outline-repeats`: layers that repeat become calls of one function."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, islice
from typing import Any, ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ...dialects.aten import AtenOp
from ...dialects.aten.types import type_of
from ...dialects.raw import operands_of, ops_of
from ...machines import HOST
from ...records import dataclass
from ..analysis.functions import functions
from ..analysis.kept import is_kept_function
from ..analysis.memory import written_value
from ..analysis.sizes import Sizes
from ..analysis.tensor_bytes import is_dense
from ..counters import counter
from ..remarks import remark
from ._boundary import Boundary
from ._outlining import Outliner, OutliningError
from ._repeats import Repeat, longest_repeat, tokens_of
from ._segments import Positions, Segment, base_of, is_constant, is_pointwise, longest_stretch, segment_at

_MOST_CUTS = 8
_MOST_TRIMMED = 3
_UPDATES = ("scatter", "index_put", "index_add", "index_copy", "index_fill", "index_reduce")


@dataclass(frozen=True)
class OutlineRepeats(ModulePass):
    """Replace segments of a function that compute the same of different values by calls of one function.

    level:         aten
    precondition:  `graph-cse` and `graph-dce`, so that equal layers are equal ops; nothing is outlined yet
    guarantee:     the same ops run in the same order on the same values. A called function is private, pure, and
                   returns no view of an argument; it declares the symbols that it uses, under the caller's names. What
                   a kernel computes does not change: a cut lies beside a call of a library, what crosses it is in
                   memory anyway, and no kernel could reach over it. Views and constants from outside are computed
                   again in the function, views of its values behind the call.

    All passes down to `lower-loop-to-kernel` then see a layer once, however deep the model is; `host-inline` puts it
    back, so that memory is planned for the whole program. It is done for at least `least` segments with `saved` ops
    less to compile, the longest repeat first. What has no such cut stays as it is, with a remark; so do repeats with
    convolutions, or with a sum on a CPU that lies transposed and crosses, whose layouts are chosen across a function,
    those that update what they are given, and those that make the new value of an input, which can only be made in
    place in the function of its `aten.copy_`.

        func.func @f(%x: T, %w0: T, %w1: T, ...) -> T {
          %0 = aten.mm(%x, %w0) : T      %1 = aten.exp(%0) : T
          %2 = aten.mm(%1, %w1) : T      %3 = aten.exp(%2) : T   ...
          func.return %9 : T
        }
    becomes
        func.func @f(%x: T, %w0: T, %w1: T, ...) -> T {
          %1 = func.call @f_repeat0(%x, %w0) : (T, T) -> T
          %3 = func.call @f_repeat0(%1, %w1) : (T, T) -> T   ...
          func.return %9 : T
        }
        func.func private @f_repeat0(%x: T, %w: T) -> T {
          %0 = aten.mm(%x, %w) : T       %1 = aten.exp(%0) : T
          func.return %1 : T
        }
    """

    name = "graph-outline-repeats"
    level: ClassVar[str] = "aten"
    optional: ClassVar[bool] = True

    enabled: bool = True
    least: int = 4
    saved: int = 48

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on every function that nothing was outlined from."""
        running = [(f, block) for f, block in functions(op) if not is_kept_function(f)]
        if not self.enabled or any(f.sym_visibility is not None for f, _ in running):
            return
        for function, block in running:
            ops = ops_of(block)[:-1]
            if len(ops) >= self.saved:
                _Search(self, function, block, ops).run()


class _Search:
    """Finds and outlines the repeats of one function, the longest first."""

    def __init__(self, options: OutlineRepeats, function: FuncOp, block: Block, ops: list[Operation]) -> None:
        self.options = options
        self.function = function
        self.block = block
        self.ops = ops
        self.tokens = tokens_of(ops)
        self.estimates = Sizes.of_function(function)
        self.outliner = Outliner(function, block)
        self.unlike = count(-1 - len(ops), -1)

    def run(self) -> None:
        updated = {
            id(base_of(op.operands[1])) for op in reversed(self.ops) if written_value(op) is not None and op.operands
        }
        while (repeat := longest_repeat(self.tokens, self.options.least)) is not None:
            if (repeat.count - 1) * repeat.period < self.options.saved:
                return
            positions = Positions(self.ops, self.tokens)
            segments, reason = self.segments(positions, repeat, updated)
            if reason is None and counter(OutlineRepeats.name):
                try:
                    self.outline(segments, repeat)
                    continue
                except OutliningError as error:
                    reason = str(error)
            if reason is not None:
                first = self.ops[repeat.start]
                figures: dict[str, Any] = {"repeats": repeat.count, "ops": repeat.period}
                remark(
                    "missed", OutlineRepeats.name, first, f"equal layers are compiled one by one: {reason}", **figures
                )
            self.tokens[repeat.start : repeat.end] = islice(self.unlike, repeat.end - repeat.start)

    def segments(self, positions: Positions, repeat: Repeat, updated: set[int]) -> tuple[Sequence[Segment], str | None]:
        """The segments to outline, or why there are none."""
        reason = self.objection(repeat, updated)
        if reason is not None:
            return (), reason
        boundary = Boundary(positions, repeat, self.estimates)
        best: Sequence[Segment] = ()
        reason = "no cut lies beside a call of a library"
        for start in boundary.cuts()[:_MOST_CUTS]:
            inner = boundary.objection(start + 2 * repeat.period)  # of those in the middle, before all are looked at
            if inner is not None:
                reason = inner
                continue
            starts = range(start, repeat.end - repeat.period + 1, repeat.period)
            found = longest_stretch([segment_at(positions, s, repeat.period) for s in starts])
            found, problem = self.trimmed(boundary, found, repeat.period)
            reason = problem or reason
            if len(found) > len(best):
                best = found
            if len(best) >= repeat.count - 1:
                break  # the one that fewest bytes cross, and no other saves more than a layer
        if best and self.leaves_a_layout_open(best[0]):
            return (), "the layout of what crosses is chosen with that of what is computed from it"
        return (best, None) if best else ((), reason)

    def leaves_a_layout_open(self, segment: Segment) -> bool:
        """Whether a sum on a CPU that lies transposed crosses: `loop-assign-layouts` turns all that follow together."""
        crossing = [(self.ops[segment.start + k], n) for k, n in segment.escaping]
        types = (type_of(op.results[n]) for op, n in crossing if is_pointwise(op))
        return any(t.device == HOST and not t.is_contiguous and is_dense(t) for t in types)

    def trimmed(
        self, boundary: Boundary, found: Sequence[Segment], period: int
    ) -> tuple[Sequence[Segment], str | None]:
        """Segments without those at the ends that may not be cut off; why there are none.

        What stands before the first layer is often made in another way than what stands before the others.
        """
        reason = "too few of them relate to what is around them in the same way"
        for _ in range(_MOST_TRIMMED):
            if len(found) < self.options.least or (len(found) - 1) * period < self.options.saved:
                break
            begins = (found[0].start, found[1].start, found[-1].start + period)
            first, second, end = map(boundary.objection, begins)
            lost = boundary.loss(found[0])
            if not (first or second or lost or end):
                problem = next(filter(None, map(boundary.loss, found)), None)
                return (found, None) if problem is None else ((), problem)
            reason = first or second or lost or end or reason
            found = found[bool(first or second or lost) : len(found) - bool(end)]
        return (), reason

    def objection(self, repeat: Repeat, updated: set[int]) -> str | None:
        """Why a repeat must not be outlined, wherever it is cut."""
        for op in self.ops[repeat.start : repeat.start + repeat.period]:
            packet = op.packet if isinstance(op, AtenOp) else ""
            if packet.startswith("convolution"):
                return "layouts are chosen across convolutions"
            if any(part in packet for part in _UPDATES) and not self.is_fresh(op):
                return f"{op.name} may update in place what it is given"
        for op in self.ops[repeat.start : repeat.end]:
            if any(id(result) in updated for result in op.results):
                return "it makes the new value of an input"
        return None

    def is_fresh(self, op: Operation) -> bool:
        """Whether what an op updates is a constant."""
        return is_constant(base_of(operands_of(op)[0]))

    def outline(self, segments: Sequence[Segment], repeat: Repeat) -> None:
        first, last = segments[0].start, segments[-1].start + repeat.period
        figures: dict[str, Any] = {"repeats": len(segments), "ops": repeat.period, "inputs": len(segments[0].inputs)}
        remark("passed", OutlineRepeats.name, self.ops[first], "equal layers became calls", **figures)
        left = self.outliner.outline(self.ops, segments, repeat.period)
        self.ops[first:last] = left
        self.tokens[first:last] = islice(self.unlike, len(left))
