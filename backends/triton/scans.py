"""Scans: across one tile, by tiles with a carry, or by scalar steps."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects import kernel
from ...dialects.sym import symbol
from ...errors import UnsupportedError
from ...passes.analysis.loops import substitute_axes
from ...passes.kernel.tiles import is_persistent, is_tiled
from .combining import Combining, Group
from .monoids import TritonMonoid, monoid_named, reduce_text
from .values import Dims, Value, union


def with_places_of_lanes(function: kernel.FuncOp) -> kernel.FuncOp:
    """A copy of a kernel in which the axis of a turned scan numbers its lanes; the kernel itself where none is."""
    if not any(isinstance(op, kernel.ScanOp) and op.turned is not None for op in function.walk()):
        return function
    copy = function.clone()
    for op in copy.walk():
        if isinstance(op, kernel.ScanOp) and op.turned is not None:
            axis = op.axis.data
            for region in (op.body, op.then):
                substitute_axes(region.block, {axis: op.lo.data + op.hi.data - 1 - symbol(axis)})
    return copy


class Scans(Combining):
    """Emits `kernel.scan`."""

    def emit(self, op: kernel.ScanOp) -> None:
        """Emit a scan with what follows for each running value."""
        context, groups = self.context, self.groups(op)
        if is_persistent(op, context.ranges):
            with self.axes.covered(op):
                self.body(op.body.block)
                for group in groups:
                    # lanes outside of the axis come last and reach none inside, unless lanes lie the other way round
                    values = self.yields(op, group) if op.turned is None else self.masked(op, group)
                    self._bind(op, group, self._running(group[0], values, op.turned is not None))
                self.body(op.then.block)
            return
        if op.turned is not None:
            raise UnsupportedError(f"axis {op.axis.data} is turned, and has several tiles")
        starts: list[str] = []
        with context.out.apart() as lines, self.axes.looped(op):
            self.body(op.body.block)
            for group in groups:
                starts += self._tile(op, group) if is_tiled(op) else self._step(op, group)
            self.body(op.then.block)
        for line in starts:
            context.out.line(line)
        context.out.extend(lines)

    def _running(self, monoid: TritonMonoid, values: Sequence[Value], turned: bool = False) -> list[Value]:
        """Running values along the innermost dimension of the tile, from its end if turned."""
        context = self.context
        dim = context.lanes[-1].dim
        dims = union((dim,), *values)
        blocks = [self.broadcast(v, dims).text for v in values]
        found = [Value(context.names.fresh("running"), v.dtype, dims) for v in values]
        block = blocks[0] if len(blocks) == 1 else f"({', '.join(blocks)})"
        order = ", reverse=True" if turned else ""
        self.assign(found, [f"tl.associative_scan({block}, {dim}, {monoid.function}{order})"])
        return found

    def _carries(
        self, op: kernel.ScanOp, group: Group, values: Sequence[Value], dims: Dims
    ) -> tuple[list[Value], list[str]]:
        """Carries over `dims` and the lines that initialise them."""
        carries = [Value(self.context.names.fresh("carry"), v.dtype, dims) for v in values]
        neutral = self.identity(op, group, values)
        return carries, [self.start(c.text, n, dims) for c, n in zip(carries, neutral, strict=True)]

    def _step(self, op: kernel.ScanOp, group: Group) -> list[str]:
        """One element; returns the lines before the loop."""
        values = self.yields(op, group)
        carries, starts = self._carries(op, group, values, union(*values))
        self.assign(carries, group[0].combine(self.context, carries, values))
        self._bind(op, group, carries)
        return starts

    def _tile(self, op: kernel.ScanOp, group: Group) -> list[str]:
        """One tile; returns the lines before the loop."""
        values = self.masked(op, group)
        running = self._running(group[0], values)
        dim = self.context.lanes[-1].dim
        carries, starts = self._carries(op, group, values, tuple(d for d in running[0].dims if d != dim))
        total = [Value(self.context.names.fresh("total"), v.dtype, v.dims) for v in running]
        self.assign(total, group[0].combine(self.context, carries, running))
        self._last_lane(total, carries, dim)
        self._bind(op, group, total)
        return starts

    def _last_lane(self, running: Sequence[Value], carries: Sequence[Value], dim: int) -> None:
        """The next carry is the running value of the tile's last lane."""
        context = self.context
        block = context.block_of(dim)
        lane = context.along(f"tl.arange(0, {block})", dim)
        last = context.define(f"{lane} == {block} - 1", "int1", (dim,), "last")
        for value, target in zip(running, carries, strict=True):
            name, zero = ("any", "False") if value.dtype == "int1" else ("sum", "0")
            neutral = Value(zero if value.dtype[0] in "iu" else "-0.0", value.dtype, (), True)  # 0.0 + -0.0 is 0.0
            text = f"tl.where({last}, {value}, {context.tensor(neutral)})"
            picked = Value(text, value.dtype, value.dims)
            whole = self.reduced_dim(dim, target.dims)
            self.assign([target], [reduce_text(monoid_named(name), [picked], whole, keep=bool(target.dims))])

    def _bind(self, op: kernel.ScanOp, group: Group, values: Sequence[Value]) -> None:
        for argument, value in zip(op.then.block.args[group[1]], values, strict=True):
            self.context.values[argument] = value
