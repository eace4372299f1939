"""Sums over a softmax on matrix units: one loop that carries a maximum and two sums, which it rescales."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import Operation

from ...dialects import kernel
from ...errors import UnsupportedError
from .axes import Axes
from .context import Context
from .contractions import Contractions
from .dtypes import dtype_name
from .values import Value


class SoftmaxSums:
    """Emits reductions `softmax_sum` on matrix units.

    ops: emits ops in order
    """

    def __init__(
        self, context: Context, axes: Axes, contractions: Contractions, ops: Callable[[Iterable[Operation]], None]
    ) -> None:
        self.context = context
        self.axes = axes
        self.contractions = contractions
        self.ops = ops

    def emit(self, op: kernel.ReduceOp) -> None:
        """Emit a loop along the axis, and bind the maximum, a number a row, and the two sums."""
        context, found = self.context, kernel.weighted_sum_of(op)
        if isinstance(found, str):
            raise UnsupportedError(f"a reduction runs on no matrix units: {found}")
        rows, columns = (next(lanes.dim for lanes in context.lanes if lanes.axis == a) for a in (found.rows, found.columns))
        along = len(context.lanes)
        dtype = dtype_name(found.x.type)
        hints = ("highest", "total", "weighted")
        highest, total, weighted = (
            context.names.fresh(r.name_hint or hint) for r, hint in zip(op.results, hints, strict=True)
        )
        size, dims = context.block_of(rows), tuple(sorted((rows, columns)))
        context.out.line(f'{highest} = tl.full([{size}], -float("inf"), tl.{dtype})')
        context.out.line(f"{total} = tl.zeros([{size}], tl.{dtype})")
        context.out.line(f"{weighted} = tl.zeros({context.shape(dims)}, tl.{dtype})")
        self.contractions.ahead(op, (rows, along))
        with self.axes.stepped(op) as step:
            with context.framed((rows, along)), self.axes.lanes(op, step):
                x, left = self._scores(op, found, (rows, along))
                grown, scale, weights = self._rescaled(x, highest)
                context.out.line(f"{total} = {total} * {scale} + tl.sum({weights}, 1)")
                if left is not None:
                    weights = context.define(f"{weights} * {left}", dtype, weights.dims, "shares")
                shares, element = weights, dtype_name(found.element)
                if element != dtype:
                    shares = context.define(f"{weights}.to(tl.{element})", element, weights.dims, f"{weights}_{element}")
            right = self.contractions.operand(op, step, found.right, (along, columns))
            precision = self.contractions.precision(found.element, None)
            context.out.line(f"{weighted} = tl.dot({shares}, {right}, {weighted} * {scale}[:, None]{precision})")
            context.out.line(f"{highest} = {grown}")
        row = (rows,)
        for result, name in zip(op.results, (highest, total), strict=False):
            context.values[result] = context.define(context.along(name, rows), dtype, row, f"{name}_rows", pure=False)
        context.values[op.results[2]] = Value(weighted, dtype, dims)

    def _scores(
        self, op: kernel.ReduceOp, found: kernel.WeightedSum, frame: tuple[int, int]
    ) -> tuple[Value, Value | None]:
        """Emit what the softmax is of, -inf beyond the axis, and the factor beside the weights."""
        context = self.context
        wanted = [found.x] if found.left is None else [found.x, found.left]
        for value in wanted:
            self.ops(self.contractions.sources(op, value))
        x, *others = (context.value(value) for value in wanted)
        dims = tuple(sorted(frame))
        if x.dims != dims:
            x = context.define(f"tl.broadcast_to({context.tensor(x)}, {context.shape(dims)})", x.dtype, dims, "scores")
        inside = context.lanes[-1].mask
        if inside is not None:
            x = context.define(f'tl.where({inside}, {x}, -float("inf"))', x.dtype, dims, f"{x}_inside")
        return x, others[0] if others else None

    def _rescaled(self, x: Value, highest: str) -> tuple[str, str, Value]:
        """Emit the new maximum, what the sums so far are multiplied with, and the weights.

        What rows have in common is a block of one dimension: as a column it would take registers for every lane.
        """
        context = self.context
        exp2 = "nvidia.exp2" if context.nvidia else "tl.exp2"
        names = [context.names.fresh(hint) for hint in (f"{highest}_grown", "factor", "shift", "scale")]
        grown, factor, shift, scale = names
        context.out.line(f"{grown} = prelude.maximum({highest}, tl.reduce({x}, 1, prelude.maximum))")
        context.out.line(f"{factor}, {shift} = prelude.softmax_scale({grown})")
        context.out.line(f"{scale} = {exp2}({highest} * {factor} + {shift})")
        text = f"{exp2}(tl.fma({x}, {factor}[:, None], {shift}[:, None]))"
        return grown, scale, context.define(text, x.dtype, x.dims, "weights")
