"""Reductions: across one tile, by an accumulator a lane, or by scalar steps."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

from xdsl.ir import SSAValue

from ...dialects import kernel
from ...dialects.sym import bounds
from ...errors import UnsupportedError
from ...passes.kernel.tiles import extent_of, is_persistent, is_tiled
from ...passes.kernel.transforms import reduction_chain
from .combining import Combining, Group
from .monoids import monoid_named, reduce_text
from .values import Value, union

_SUM = monoid_named("sum")
_MAX = monoid_named("max")


class Reductions(Combining):
    """Emits `kernel.reduce`."""

    def emit(self, op: kernel.ReduceOp) -> None:
        """Emit a reduction and bind its results."""
        chain = reduction_chain(op)
        if len(chain) == 1 and is_persistent(op, self.context.ranges):
            with self.axes.covered(op):
                self.body(op.body.block)
                for group in self.groups(op):
                    self._tile(op, group)
            return
        inner = chain[-1]
        groups = self.groups(inner)
        accumulators = self._accumulate(chain, groups)
        for (monoid, part), values in zip(groups, accumulators, strict=True):
            if is_tiled(inner) and monoid.name == "welford" and not values[2].dims and values[0].dims:
                self._equal_moments(values, op.results[part])
                continue
            if is_tiled(inner):
                blocks = [self._alike(value, values[0]) for value in values]
                self.across(monoid, blocks, values[0].dims, len(self.context.lanes), op.results[part])
                continue
            for result, value in zip(op.results[part], values, strict=True):
                self.context.values[result] = value

    # one tile

    def _tile(self, op: kernel.ReduceOp, group: Group) -> None:
        monoid, part = group
        values = self.yields(op, group)
        if is_of_single_elements(monoid.name, values) and self._is_not_empty(op):
            shortcut = self._moments if monoid.name == "welford" else self._exponentials
            found = shortcut(op, values)
            for result, value in zip(op.results[part], found, strict=True):
                self.context.values[result] = value
            return
        dim = self.context.lanes[-1].dim
        inside = self.masked(op, group)
        dims = union((dim,), *inside)
        self.across(monoid, [self.broadcast(v, dims) for v in inside], dims, dim, op.results[part])

    def _is_not_empty(self, op: kernel.ReduceOp) -> bool:
        least, _ = bounds(extent_of(op), self.context.ranges)
        return least is not None and least > 0

    def _moments(self, op: kernel.ReduceOp, values: Sequence[Value]) -> list[Value]:
        """(mean, m2, count) of a tile in two passes over its registers, which is exacter and cheaper than combining."""
        context, hints = self.context, [r.name_hint or "moment" for r in op.results]
        dims = union((context.lanes[-1].dim,), values[0])
        value, dtype = self.broadcast(values[0], dims), values[0].dtype
        count = self._count(op, dtype, hints[2])
        total = self._sum(op, value, f"{hints[0]}_total")
        mean = context.define(f"prelude.float_divide({total}, {count})", dtype, total.dims, hints[0])
        deviation = context.define(f"{value} - {mean}", dtype, dims, "deviation")
        square = context.define(f"{deviation} * {deviation}", dtype, dims, "square")
        return [mean, self._sum(op, square, hints[1]), count]

    def _exponentials(self, op: kernel.ReduceOp, values: Sequence[Value]) -> list[Value]:
        """(m, s) of a tile: the maximum, then the sum of exp(x - m), where x == m counts 1 also if it is infinite."""
        context, hints = self.context, [r.name_hint or "logsumexp" for r in op.results]
        dims = union((context.lanes[-1].dim,), values[0])
        value, dtype = self.broadcast(values[0], dims), values[0].dtype
        highest = self._reduced(op, _MAX.name, value, hints[0])
        text = f"tl.where({value} == {highest}, 1.0, tl.exp({value} - {highest}))"
        return [highest, self._sum(op, context.define(text, dtype, dims, "share"), hints[1])]

    def _sum(self, op: kernel.ReduceOp, value: Value, hint: str) -> Value:
        return self._reduced(op, _SUM.name, value, hint)

    def _reduced(self, op: kernel.ReduceOp, name: str, value: Value, hint: str) -> Value:
        """A block masked with a monoid's identity and reduced along the op's axis."""
        context, monoid = self.context, monoid_named(name)
        neutral = self.identity(op, (monoid, slice(0, 1)), [value])[0]
        inside = self.where_inside(op, value, neutral)
        dim = context.lanes[-1].dim
        rest = tuple(d for d in inside.dims if d != dim)
        text = reduce_text(monoid, [inside], self.reduced_dim(dim, rest), keep=bool(rest))
        return context.define(text, value.dtype, rest, hint)

    def _count(self, op: kernel.ReduceOp, dtype: str, hint: str) -> Value:
        extent = extent_of(op)
        known = extent.as_int()
        if known is not None:
            text = f"tl.full([], {float(known)!r}, tl.{dtype})"
        else:
            text = f"tl.cast({self.context.index(extent).text}, tl.{dtype})"
        return self.context.define(text, dtype, (), hint)

    # loops

    def _accumulate(self, chain: Sequence[kernel.ReduceOp], groups: Sequence[Group]) -> list[list[Value]]:
        """Emit nested loops; returns the accumulators, which have the tile's lanes where the inner axis is tiled."""
        context, inner = self.context, chain[-1]
        suffix = "_acc" if is_tiled(inner) else ""
        hints = [monoid.name for monoid, _ in groups for _ in range(monoid.arity)]
        names = [
            context.names.fresh(f"{result.name_hint or hint}{suffix}")
            for result, hint in zip(chain[0].results, hints, strict=True)
        ]
        found: list[list[Value]] = []
        starts: list[str] = []
        with context.out.apart() as lines, ExitStack() as stack:
            for op in chain:
                covered = op is inner and is_persistent(op, context.ranges)
                stack.enter_context(self.axes.covered(op) if covered else self.axes.looped(op))
            self.body(inner.body.block)
            for group in groups:
                accumulators, begin = self._step(inner, group, names[group[1]])
                starts += begin
                found.append(accumulators)
        for line in starts:
            context.out.line(line)
        context.out.extend(lines)
        return found

    def _step(self, op: kernel.ReduceOp, group: Group, names: Sequence[str]) -> tuple[list[Value], list[str]]:
        """Combine what the body yields into accumulators of these names; returns them, and lines that start them."""
        context, monoid = self.context, group[0]
        values = self.yields(op, group)
        own = (context.lanes[-1].dim,) if is_tiled(op) else ()
        accumulators = [Value(n, v.dtype, union(own, *values)) for n, v in zip(names, values, strict=True)]
        neutral = self.identity(op, group, values)
        shape: str | None = None
        single = is_of_single_elements(monoid.name, values)
        if single and op.group is not None and monoid.name == "logsumexp":
            inside = self.where_inside(op, values[0], neutral[0])
            shape = self._fold(monoid.name, accumulators, inside, op.group.value.data)
        elif single:
            mask = self.mask(op)
            weight = "1.0" if mask is None else f"{mask}.to(tl.{values[0].dtype})"
            if monoid.name == "welford":  # lanes that see equally many elements share their number, and its reciprocal
                accumulators[2] = Value(names[2], values[2].dtype, mask.dims if mask is not None else ())
            value = self.where_inside(op, values[0], accumulators[0] if monoid.name == "welford" else neutral[0])
            arguments = ", ".join(a.text for a in accumulators)
            self.assign(accumulators, [f"prelude.{monoid.name}_step({arguments}, {context.typed(value)}, {weight})"])
        else:
            self.assign(accumulators, monoid.combine(context, accumulators, self.masked(op, group)))
        return accumulators, [self.start(a.text, n, a.dims, shape) for a, n in zip(accumulators, neutral, strict=True)]

    def _equal_moments(self, values: Sequence[Value], results: Sequence[SSAValue]) -> None:
        """Reduce (mean, m2, count) of lanes that share the count, and bind the results."""
        context, dim, dims = self.context, len(self.context.lanes), values[0].dims
        rest = tuple(d for d in dims if d != dim)
        hints = [r.name_hint or "welford" for r in results]
        kept = (rest, rest, ())
        found = [Value(context.names.fresh(h), v.dtype, d) for h, v, d in zip(hints, values, kept, strict=True)]
        place = f"{self.reduced_dim(dim, rest)}, {bool(rest)}"
        self.assign(found, [f"prelude.welford_of_equals({', '.join(v.text for v in values)}, {place})"])
        for result, value in zip(results, found, strict=True):
            context.values[result] = value

    def _alike(self, value: Value, other: Value) -> Value:
        """A value as a block of the shape of another one, whose lanes are no longer in scope."""
        if value.dims == other.dims:
            return value
        return self.context.define(f"tl.broadcast_to({value}, {other}.shape)", value.dtype, other.dims, "block")

    def _fold(self, name: str, accumulators: Sequence[Value], value: Value, count: int) -> str:
        """Take groups of neighbours into accumulators of fewer lanes; returns the shape of these."""
        if not self.context.nvidia:
            raise UnsupportedError("groups of a reduction are combined by NVIDIA's kernels alone")
        block = self.broadcast(value, accumulators[0].dims)
        *outer, last = self.context.shape(block.dims)[1:-1].split(", ")
        lanes = [*outer, f"{last} // {count}"]
        groups = f"tl.reshape({block}, [{', '.join([*lanes, str(count)])}])"
        self.assign(accumulators, [f"nvidia.{name}_fold({', '.join([*(a.text for a in accumulators), groups])})"])
        return f"[{', '.join(lanes)}]"


def is_of_single_elements(name: str, values: Sequence[Value]) -> bool:
    """Whether each yielded tuple stands for one element: (x, 0, 1) of welford, (x, 1) of logsumexp."""
    rest = [float(v.text) if v.literal and v.dtype != "int1" else None for v in values[1:]]
    return (name == "welford" and rest == [0.0, 1.0]) or (name == "logsumexp" and rest == [1.0])
