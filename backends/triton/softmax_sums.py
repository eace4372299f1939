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
        dims = ((rows,), (rows,), tuple(sorted((rows, columns))))
        hints = ("highest", "total", "weighted")
        names = [context.names.fresh(r.name_hint or hint) for r, hint in zip(op.results, hints, strict=True)]
        highest, total, weighted = (Value(n, dtype, d) for n, d in zip(names, dims, strict=True))
        for value, start in ((highest, '-float("inf")'), (total, "0"), (weighted, "0")):
            context.out.line(f"{value} = tl.full({context.shape(value.dims)}, {start}, tl.{dtype})")
        self.contractions.ahead(op, (rows, along))
        with self.axes.stepped(op) as step:
            with context.framed((rows, along)), self.axes.lanes(op, step):
                x, left = self._scores(op, found, (rows, along))
                grown, scale, weights = self._rescaled(x, highest, rows)
                context.out.line(f"{total} = {total} * {scale} + tl.sum({weights}, 1, keep_dims=True)")
                if left is not None:
                    weights = context.define(f"{weights} * {left}", dtype, weights.dims, "shares")
                element = dtype_name(found.element)
                shares = weights
                if element != dtype:
                    shares = context.define(f"{weights}.to(tl.{element})", element, weights.dims, f"{weights}_{element}")
            right = self.contractions.operand(op, step, found.right, (along, columns))
            precision = self.contractions.precision(found.element, None)
            context.out.line(f"{weighted} = tl.dot({shares}, {right}, {weighted} * {scale}{precision})")
            context.out.line(f"{highest} = {grown}")
        context.values.update(zip(op.results, (highest, total, weighted), strict=True))

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

    def _rescaled(self, x: Value, highest: Value, rows: int) -> tuple[Value, Value, Value]:
        """Emit the new maximum, what the sums so far are multiplied with, and the weights."""
        context = self.context
        along = tl_max(x)
        grown = context.define(f"prelude.maximum({highest}, {along})", x.dtype, (rows,), f"{highest}_grown", pure=False)
        base = context.define(f"prelude.softmax_base({grown})", x.dtype, (rows,), "base")
        scale = context.define(f"tl.exp({highest} - {base})", x.dtype, (rows,), "scale", pure=False)
        weights = context.define(f"tl.exp({x} - {base})", x.dtype, x.dims, "weights")
        return grown, scale, weights


def tl_max(x: Value) -> str:
    """Text of the maximum of each row of a tile, NaN where there is one."""
    return f"tl.reduce({x}, 1, prelude.maximum, keep_dims=True)"
