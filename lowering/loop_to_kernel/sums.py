"""Sums over parallel axes of a fusion: the points of a part run one after the other, and carry the sums."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, FloatAttr
from xdsl.ir import Block, Region, SSAValue

from ...dialects import kernel, loop
from ...dialects.sym import ONE, ZERO, Expr, MapAttr, SymAttr, smin, symbol
from ...passes.analysis.loops import substitute_axes
from ...passes.common.locations import merged
from ...records import dataclass
from .memory import row_strides

if TYPE_CHECKING:
    from .kernel_builder import Axis, KernelBuilder, Scope


@dataclass
class _Total:
    """A sum of a part.

    value: what each point adds
    index: where it belongs, in kernel axes
    inner: the axes along which a point has several of them
    local: where these are kept from point to point
    """

    member: loop.ScatterOp
    value: SSAValue
    index: list[Expr]
    inner: list[Axis]
    local: kernel.LocalOp | None = None

    def load(self) -> kernel.LoadOp:
        """What is summed up so far."""
        assert self.local is not None
        return kernel.LoadOp.of(self.local.buffer, self._place, location=self.member.location)

    def store(self, value: SSAValue) -> kernel.StoreOp:
        """Keep a sum."""
        assert self.local is not None
        return kernel.StoreOp.of(value, self.local.buffer, self._place, location=self.member.location)

    @property
    def _place(self) -> MapAttr:
        strides = row_strides(tuple(size for _, size in self.inner))
        return MapAttr.of(sum((symbol(n) * s for (n, _), s in zip(self.inner, strides, strict=True)), start=ZERO))


class SumsInParts:
    """The scatters `from_zero` of one fusion.

    Where all axes but those of the columns are parallel, the loops over the points of a part are reductions. Where
    members run along columns inside of a point, they carry local buffers that hold the sums of a part.

        kernel.for i2 in 0 to 256 {
          %p = kernel.local : !kernel.buffer<f32, 512, local>
          kernel.for i1 in 0 to 512 { kernel.store %zero, %p[i1] ... }
          kernel.for i0 in 0 to 32 {
            ... row 32*i2 + i0 ...
            kernel.for i1 in 0 to 512 { %old = kernel.load %p[i1]  ...  kernel.store %new, %p[i1] ... } }
          kernel.for i1 in 0 to 512 { %t = kernel.load %p[i1]  kernel.store %t, %parts[512*i2 + i1] ... } }
    """

    def __init__(self, builder: KernelBuilder) -> None:
        self.builder = builder
        self.parts = {builder.places[name]: parts for name, parts in builder.fusion.parts.items()}
        self.part_axes = {
            row: builder.fresh_axis("i", parts.count) for row, parts in self.parts.items() if parts.count is not ONE
        }
        self.totals: list[_Total] = []
        own = builder.parallel | {"_"}
        sums = [m for m in builder.fusion.members if isinstance(m, loop.ScatterOp) and m.from_zero is not None]
        self.carried = any(place.data not in own for member in sums for place in member.on or ())

    def add(self, member: loop.ScatterOp, value: SSAValue, scope: Scope, inner: list[Axis], block: Block) -> None:
        """Add what a point has to the sums of its part."""
        part_of = {row: symbol(part) for row, part in self.part_axes.items()}
        names = [expr.free_symbols.intersection(member.axes.names) for expr in member.map.data]
        index = [scope.rename[next(iter(name))].subs(part_of) if name else ZERO for name in names]
        total = _Total(member, value, index, inner)
        self.totals.append(total)
        self.builder.bodies.strong.append("sum")
        if self.carried:
            elements = prod((size for _, size in inner), start=ONE)
            total.local = kernel.LocalOp.of(value.type, SymAttr.of(elements))
            total.local.buffer.name_hint = member.out.name_hint or "total"
            old = total.load()
            new = arith.AddfOp(old.results[0], value)
            new.location = member.location
            block.add_ops([old, new, total.store(new.results[0])])

    def wrap(self, parallel: list[Axis]) -> list[Axis]:
        """Put the members into loops over the points of a part; gives the axes that run around these."""
        builder, body = self.builder, self.builder.inside
        outer: list[Axis] = []
        rows: list[Axis] = []
        for name, size in parallel:
            parts = self.parts.get(name)
            if parts is None:
                outer.append((name, size))
            elif name in self.part_axes:
                start = parts.length * symbol(self.part_axes[name])
                substitute_axes(body, {name: start + symbol(name)})
                whole = parts.length * parts.count is size
                rows.append((name, parts.length if whole else smin(parts.length, size - start)))
                outer.append((self.part_axes[name], parts.count))
            else:
                rows.append((name, size))
        block = builder.inside = Block()
        (self._carry if self.carried else self._reduce)(rows, body, block)
        return outer

    def _carry(self, rows: list[Axis], body: Block, block: Block) -> None:
        """Loops over the points of a part that load and store the sums, which are local buffers."""
        block.add_ops([total.local for total in self.totals if total.local is not None])
        for total in self.totals:
            kind = total.value.type
            assert isinstance(kind, AnyFloat)
            zero = arith.ConstantOp(FloatAttr(0.0, kind))
            self.builder.wrap(total.inner, Block([zero, total.store(zero.result)]), block)
        self.builder.wrap(rows, body, block)
        for total in self.totals:
            ending = Block([last := total.load()])
            self._leave(total, last.results[0], ending)
            self.builder.wrap(total.inner, ending, block)

    def _reduce(self, rows: list[Axis], body: Block, block: Block) -> None:
        """Reductions over the points of a part, in which the members are computed."""
        values: Sequence[SSAValue] = [total.value for total in self.totals]
        location = merged(total.member.location for total in self.totals)
        for name, size in reversed(rows):
            body.add_op(kernel.YieldOp.create(operands=values))
            combiners = ["sum"] * len(values)
            reduce = kernel.ReduceOp.of(name, ZERO, size, combiners, Region(body), location=location)
            values, body = reduce.results, Block([reduce])
        self.builder.wrap((), body, block)
        for total, value in zip(self.totals, values, strict=True):
            self._leave(total, value, block)

    def _leave(self, total: _Total, value: SSAValue, block: Block) -> None:
        """Store a sum as an element of the result."""
        buffer, strides = self.builder.storage[total.member.out]
        self.builder.store(value, buffer, total.index, strides, block, total.member)
