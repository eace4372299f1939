"""Sums over a softmax on matrix units: one loop that carries a maximum and two sums, which it rescales."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from xdsl.ir import Operation, SSAValue, Use

from ...dialects import kernel
from ...errors import UnsupportedError
from ...records import dataclass
from .axes import Axes
from .context import Context
from .contractions import Contractions
from .dtypes import dtype_name
from .values import Value


@dataclass(frozen=True)
class _Sum:
    """A sum with the names of what the loop carries: blocks of the rows, and a tile of rows and columns."""

    part: kernel.WeightedSum
    highest: str
    total: str
    weighted: str


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
        #: results of loops, and the names of what the loops carried for them
        self._variables: dict[SSAValue, str] = {}

    def emit(self, op: kernel.ReduceOp) -> None:
        """Emit a loop along the axis, and bind the maximum, a number a row, and the two sums, of each monoid."""
        context, parts = self.context, kernel.weighted_sums_of(op)
        if isinstance(parts, str):
            raise UnsupportedError(f"a reduction runs on no matrix units: {parts}")
        rows, columns = (self._dim(axis) for axis in (parts[0].rows, parts[0].columns))
        along, dtype = len(context.lanes), dtype_name(parts[0].x.type)
        dims = tuple(sorted((rows, columns)))
        sums = [self._sum(op, k, part, (rows, columns), dtype) for k, part in enumerate(parts)]
        self.contractions.ahead(op, (rows, along))
        with self.axes.stepped(op) as step:
            # the only step has nothing else on its way while it waits for scores; their factors come first
            is_only = self.contractions.is_one_step(op)
            if is_only:
                with context.framed((rows, along)), self.axes.lanes(op, step):
                    self.contractions.columns_ahead(op)
            rights = [self._right(op, step, each, (along, columns)) for each in sums] if is_only else []
            with context.framed((rows, along)), self.axes.lanes(op, step):
                scores = self._scores(op, parts, (rows, along))
                times = None if op.factor is None else op.factor.value.data
                shares = [self._shares(each, *score, times) for each, score in zip(sums, scores, strict=True)]
            for number, (each, (weights, scale)) in enumerate(zip(sums, shares, strict=True)):
                right = rights[number] if rights else self._right(op, step, each, (along, columns))
                arguments = self.contractions.precision(each.part.element, None)
                rescaled = f"{each.weighted} * {scale}[:, None]"
                context.out.line(f"{each.weighted} = tl.dot({weights}, {right}, {rescaled}{arguments})")
        for k, each in enumerate(sums):
            names = each.highest, each.total, each.weighted
            self._variables.update(zip(op.results[3 * k : 3 * k + 3], names, strict=True))
            for result, name in zip(op.results[3 * k :], names[:2], strict=False):
                if not all(_goes_on_from(use) for use in result.uses):
                    text = context.along(name, rows)
                    context.values[result] = context.define(text, dtype, (rows,), f"{name}_rows", pure=False)
            context.values[op.results[3 * k + 2]] = Value(each.weighted, dtype, dims)

    def _right(self, op: kernel.ReduceOp, step: str, each: _Sum, frame: tuple[int, int]) -> Value:
        """Emit the factor that the weights are multiplied with."""
        return self.contractions.operand(op, step, each.part.right, frame)

    def _sum(
        self, op: kernel.ReduceOp, number: int, part: kernel.WeightedSum, dims: tuple[int, int], dtype: str
    ) -> _Sum:
        """Emit where a sum starts: that of nothing, or the variables of the loop that it goes on from."""
        context, values = self.context, slice(3 * number, 3 * number + 3)
        size, shape = context.block_of(dims[0]), context.shape(tuple(sorted(dims)))
        starts = [f'tl.full([{size}], -float("inf"), tl.{dtype})', f"tl.zeros([{size}], tl.{dtype})"]
        starts.append(f"tl.zeros({shape}, tl.{dtype})")
        if op.goes_on:
            init = op.init[values]
            known = [self._variables.get(value) for value in init]
            if None not in known and all(value.has_one_use() for value in init):
                return _Sum(part, *map(str, known))
            starts = [self._start(value, size, shape, k == 2) for k, value in enumerate(init)]
        found = _Sum(part, *self._names(op.results[values]))
        for name, start in zip((found.highest, found.total, found.weighted), starts, strict=True):
            context.out.line(f"{name} = {start}")
        return found

    def _start(self, value: SSAValue, size: str, shape: str, is_tile: bool) -> str:
        """What a variable of a loop starts from, as the block that it is."""
        text = self.context.tensor(self.context.value(value))
        return (
            f"tl.broadcast_to({text}, {shape})"
            if is_tile
            else f"tl.reshape(tl.broadcast_to({text}, [{size}, 1]), [{size}])"
        )

    def _dim(self, axis: str) -> int:
        return next(lanes.dim for lanes in self.context.lanes if lanes.axis == axis)

    def _names(self, results: Iterable[SSAValue]) -> list[str]:
        hints = ("highest", "total", "weighted")
        return [self.context.names.fresh(r.name_hint or hint) for r, hint in zip(results, hints, strict=True)]

    def _scores(
        self, op: kernel.ReduceOp, parts: list[kernel.WeightedSum], frame: tuple[int, int]
    ) -> list[tuple[Value, Value | None]]:
        """Emit, for each sum, what the softmax is of, -inf beyond the axis, and the factor beside the weights."""
        context = self.context
        wanted = [value for part in parts for value in (part.x, part.left) if value is not None]
        self.ops(self.contractions.sources(op, wanted))
        dims, inside = tuple(sorted(frame)), context.lanes[-1].mask
        found: list[tuple[Value, Value | None]] = []
        for part in parts:
            x = context.value(part.x)
            if x.dims != dims:
                text = f"tl.broadcast_to({context.tensor(x)}, {context.shape(dims)})"
                x = context.define(text, x.dtype, dims, "scores")
            if inside is not None:
                x = context.define(f'tl.where({inside}, {x}, -float("inf"))', x.dtype, dims, f"{x}_inside")
            found.append((x, None if part.left is None else context.value(part.left)))
        return found

    def _shares(self, each: _Sum, x: Value, left: Value | None, times: float | None) -> tuple[Value, str]:
        """Emit the new maximum and sum of a part; its weights, and what the sums so far are multiplied with.

        What rows have in common is a block of one dimension: as a column it would take registers for every lane.
        """
        context, highest, total = self.context, each.highest, each.total
        exp2 = "nvidia.exp2" if context.nvidia else "tl.exp2"
        grown, factor, shift, scale = map(context.names.fresh, (f"{highest}_grown", "factor", "shift", "scale"))
        context.out.line(f"{grown} = prelude.maximum({highest}, tl.reduce({x}, 1, prelude.maximum))")
        context.out.line(f"{factor}, {shift} = prelude.softmax_scale({grown}{'' if times is None else f', {times!r}'})")
        context.out.line(f"{scale} = {exp2}({highest} * {factor} + {shift})")
        text = f"{exp2}(tl.fma({x}, {factor}[:, None], {shift}[:, None]))"
        weights = context.define(text, x.dtype, x.dims, "weights")
        context.out.line(f"{total} = {total} * {scale} + tl.sum({weights}, 1)")
        context.out.line(f"{highest} = {grown}")
        if left is not None:
            weights = context.define(f"{weights} * {left}", x.dtype, x.dims, "shares")
        element = dtype_name(each.part.element)
        if element != x.dtype:
            weights = context.define(f"{weights}.to(tl.{element})", element, x.dims, f"{weights}_{element}")
        return weights, scale


def _goes_on_from(use: Use) -> bool:
    """Whether what uses a value is a reduction that goes on from it."""
    op = use.operation
    return isinstance(op, kernel.ReduceOp) and op.goes_on and use.index < len(op.init)
