"""Loops, reductions and scans."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from xdsl.ir import Block, SSAValue

from ...dialects import kernel
from .axes import Axes, Loop, is_grid, is_persistent, is_tiled
from .context import Context
from .monoids import TritonMonoid, identity, monoid_named, reduce_text
from .values import Dims, Value, union

Group = tuple[TritonMonoid, slice]
"""A monoid and which of the yielded values it combines."""


class Loops:
    """Emits loop ops; `body` emits the ops of a block, `custom` the function of a combine region."""

    def __init__(
        self,
        context: Context,
        axes: Axes,
        body: Callable[[Block], None],
        custom: Callable[[kernel.ReduceOp | kernel.ScanOp], str],
    ) -> None:
        self.context = context
        self.axes = axes
        self.body = body
        self.custom = custom

    def for_(self, op: kernel.ForOp) -> None:
        """Emit a `kernel.for`."""
        with self._enter(op):
            self.body(op.body.block)

    def _enter(self, op: Loop) -> AbstractContextManager[None]:
        if is_grid(op):
            assert isinstance(op, kernel.ForOp)
            return self.axes.on_grid(op)
        return self.axes.covered(op) if is_persistent(op, self.context.ranges) else self.axes.looped(op)

    def _groups(self, op: kernel.ReduceOp | kernel.ScanOp) -> list[Group]:
        names = [c.data for c in op.combiners]
        count = len(_yielded(op))
        if names == ["custom"]:
            return [(TritonMonoid("custom", count, self.custom(op)), slice(0, count))]
        groups: list[Group] = []
        first = 0
        for monoid in map(monoid_named, names):
            groups.append((monoid, slice(first, first + monoid.arity)))
            first += monoid.arity
        return groups

    # reductions

    def reduce(self, op: kernel.ReduceOp) -> None:
        """Emit a reduction: across one tile, by an accumulator a lane, or by scalar steps."""
        context, groups = self.context, self._groups(op)
        if is_persistent(op, context.ranges):
            with self.axes.covered(op):
                self.body(op.body.block)
                dim = context.lanes[-1].dim
                tiles = [self._masked(op, group) for group in groups]
                dims = [union((dim,), *values) for values in tiles]
                blocks = [
                    [self._broadcast(v, d) for v in values] for values, d in zip(tiles, dims, strict=True)
                ]
            for (monoid, part), values, d in zip(groups, blocks, dims, strict=True):
                self._across(monoid, values, d, dim, op.results[part])
            return
        accumulators = self._accumulate(op, groups)
        dim = len(context.lanes)
        for (monoid, part), values in zip(groups, accumulators, strict=True):
            if is_tiled(op):
                self._across(monoid, values, values[0].dims, dim, op.results[part])
            else:
                for result, value in zip(op.results[part], values, strict=True):
                    context.values[result] = value

    def _accumulate(self, op: kernel.ReduceOp, groups: Sequence[Group]) -> list[list[Value]]:
        """Emit the loop; returns the accumulators, which have the tile's lanes where the axis is tiled."""
        context = self.context
        hints = [_hint(result, op) for result in op.results]
        names = [context.names.fresh(f"{hint}_acc" if is_tiled(op) else hint) for hint in hints]
        found: list[list[Value]] = []
        starts: list[str] = []
        with context.out.apart() as lines, self.axes.looped(op):
            self.body(op.body.block)
            for group in groups:
                values = self._masked(op, group)
                own = (context.lanes[-1].dim,) if is_tiled(op) else ()
                dims = union(own, *values)
                accumulators = [
                    Value(name, v.dtype, dims) for name, v in zip(names[group[1]], values, strict=True)
                ]
                self._step(group[0], accumulators, values)
                starts += [
                    f"{a} = {self._start(start, dims)}"
                    for a, start in zip(accumulators, self._identity(op, group, values), strict=True)
                ]
                found.append(accumulators)
        for line in starts:
            context.out.line(line)
        context.out.extend(lines)
        return found

    def _step(self, monoid: TritonMonoid, accumulators: Sequence[Value], values: Sequence[Value]) -> None:
        texts = monoid.combine(self.context, accumulators, values)
        targets = ", ".join(a.text for a in accumulators)
        self.context.out.line(f"{targets} = {', '.join(texts)}")

    def _start(self, value: Value, dims: Dims) -> str:
        shape = self.context.shape(dims)
        if value.literal:
            return f"tl.full({shape}, {value.text}, tl.{value.dtype})"
        return f"tl.broadcast_to({value.text}, {shape})" if dims != value.dims else value.text

    def _identity(
        self, op: kernel.ReduceOp | kernel.ScanOp, group: Group, values: Sequence[Value]
    ) -> tuple[Value, ...]:
        if group[0].name == "custom":
            return tuple(self.context.value(v) for v in op.init)
        return identity(group[0].name, *(v.dtype for v in values))

    def _masked(self, op: kernel.ReduceOp | kernel.ScanOp, group: Group) -> list[Value]:
        """What the body yields, the identity in lanes outside of the axis."""
        context = self.context
        values = [context.value(v) for v in _yielded(op)[group[1]]]
        mask = context.lanes[-1].mask if is_tiled(op) else None
        if mask is None:
            return values
        neutral = self._identity(op, group, values)
        return [
            context.define(
                f"tl.where({mask}, {context.typed(v)}, {context.tensor(n)})", v.dtype, union(v, mask), "inside"
            )
            for v, n in zip(values, neutral, strict=True)
        ]

    def _broadcast(self, value: Value, dims: Dims) -> Value:
        if value.dims == dims:
            return value
        context = self.context
        text = f"tl.broadcast_to({context.typed(value)}, {context.shape(dims)})"
        if value.literal:
            text = f"tl.full({context.shape(dims)}, {value.text}, tl.{value.dtype})"
        return context.define(text, value.dtype, dims, "block")

    def _across(
        self, monoid: TritonMonoid, values: Sequence[Value], dims: Dims, dim: int, results: Sequence[SSAValue]
    ) -> None:
        """Reduce blocks along their last dimension and bind the results."""
        context = self.context
        rest = tuple(d for d in dims if d != dim)
        whole = None if context.rank > 1 and not rest else dim
        text = reduce_text(monoid, values, whole, keep=bool(rest))
        hints = [_result_hint(r, monoid) for r in results]
        if len(results) == 1:
            found = [context.define(text, values[0].dtype, rest, hints[0])]
        else:
            found = [Value(context.names.fresh(h), v.dtype, rest) for h, v in zip(hints, values, strict=True)]
            context.out.line(f"{', '.join(v.text for v in found)} = {text}")
        for result, value in zip(results, found, strict=True):
            context.values[result] = value

    # scans

    def scan(self, op: kernel.ScanOp) -> None:
        """Emit a scan: across one tile, by tiles with a carry, or by scalar steps."""
        context, groups = self.context, self._groups(op)
        if is_persistent(op, context.ranges):
            with self.axes.covered(op):
                self.body(op.body.block)
                for monoid, part in groups:
                    values = [context.value(v) for v in _yielded(op)[part]]
                    self._bind_arguments(op, part, self._scanned(monoid, values))
                self.body(op.then.block)
            return
        starts: list[str] = []
        with context.out.apart() as lines, self.axes.looped(op):
            self.body(op.body.block)
            for group in groups:
                starts += self._carried(op, group)
            self.body(op.then.block)
        for line in starts:
            context.out.line(line)
        context.out.extend(lines)

    def _scanned(self, monoid: TritonMonoid, values: Sequence[Value]) -> list[Value]:
        """Running values along the innermost dimension of the tile."""
        context = self.context
        dim = context.lanes[-1].dim
        dims = union((dim,), *values)
        blocks = [self._broadcast(v, dims).text for v in values]
        found = [Value(context.names.fresh("running"), v.dtype, dims) for v in values]
        block = blocks[0] if len(blocks) == 1 else f"({', '.join(blocks)})"
        targets = ", ".join(v.text for v in found)
        context.out.line(f"{targets} = tl.associative_scan({block}, {dim}, {monoid.function})")
        return found

    def _carried(self, op: kernel.ScanOp, group: Group) -> list[str]:
        """Emit one step of a looped scan; returns what initialises the carries."""
        context = self.context
        monoid, part = group
        values = self._masked(op, group)
        neutral = self._identity(op, group, values)
        carries = [context.names.fresh("carry") for _ in values]
        if not is_tiled(op):
            dims = union(*values)
            carry = [Value(c, v.dtype, dims) for c, v in zip(carries, values, strict=True)]
            self._step(monoid, carry, values)
            self._bind_arguments(op, part, carry)
            return [f"{c} = {self._start(n, dims)}" for c, n in zip(carry, neutral, strict=True)]
        running = self._scanned(monoid, values)
        dim = context.lanes[-1].dim
        rest = tuple(d for d in running[0].dims if d != dim)
        carry = [Value(c, v.dtype, rest) for c, v in zip(carries, values, strict=True)]
        self._step_into(monoid, running, carry)
        self._last_lane(running, carry, dim)
        self._bind_arguments(op, part, running)
        return [f"{c} = {self._start(n, rest)}" for c, n in zip(carry, neutral, strict=True)]

    def _step_into(self, monoid: TritonMonoid, running: Sequence[Value], carry: Sequence[Value]) -> None:
        texts = monoid.combine(self.context, carry, running)
        self.context.out.line(f"{', '.join(v.text for v in running)} = {', '.join(texts)}")

    def _last_lane(self, running: Sequence[Value], carry: Sequence[Value], dim: int) -> None:
        """The carry is the running value of the tile's last lane."""
        context = self.context
        block = context.block_of(dim)
        last = context.define(context.along(f"tl.arange(0, {block})", dim) + f" == {block} - 1", "int1", (dim,), "last")
        whole = None if context.rank > 1 and not carry[0].dims else dim
        for value, target in zip(running, carry, strict=True):
            zero = Value("False" if value.dtype == "int1" else "0", value.dtype, (), True)
            text = f"tl.where({last}, {value}, {context.tensor(zero)})"
            monoid = monoid_named("any" if value.dtype == "int1" else "sum")
            context.out.line(f"{target} = {reduce_text(monoid, (Value(text, value.dtype),), whole, bool(target.dims))}")

    def _bind_arguments(self, op: kernel.ScanOp, part: slice, values: Sequence[Value]) -> None:
        for argument, value in zip(op.then.block.args[part], values, strict=True):
            self.context.values[argument] = value


def _yielded(op: kernel.ReduceOp | kernel.ScanOp) -> tuple[SSAValue, ...]:
    last = op.body.block.last_op
    assert last is not None
    return tuple(last.operands)


def _hint(result: SSAValue, op: kernel.ReduceOp) -> str:
    return result.name_hint or op.combiners.data[0].data


def _result_hint(result: SSAValue, monoid: TritonMonoid) -> str:
    return result.name_hint or monoid.name
