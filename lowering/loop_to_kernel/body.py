"""Element bodies: accesses become linear, reductions become loops, everything else moves over as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel, loop
from ...dialects.raw import ops_of
from ...dialects.sym import ZERO, Expr, MapAttr, Ranges, SymAttr, simplify
from ...errors import UnsupportedError
from .guards import Guards, zero_of
from .memory import linear_index, renamed
from .names import plain_label, strong_label

if TYPE_CHECKING:
    from .kernel_builder import Axis, KernelBuilder, Scope


class BodyLowering:
    """Moves the bodies of one fusion's members into kernel blocks.

    Ops are moved, not cloned: the fusion is gone afterwards. `errors` collects what the kernel's asserts report,
    `strong` and `plain` the labels of its ops, from which it is named.
    """

    def __init__(self, builder: KernelBuilder) -> None:
        self.builder = builder
        self.errors: list[str] = []
        self.strong: list[str] = []
        self.plain: list[str] = []
        self.guards = Guards()

    def emit(self, region: Region, scope: Scope, block: Block) -> tuple[SSAValue, ...]:
        """Append a body to `block`; returns what it yields."""
        source = region.block
        for op in ops_of(source):
            handler = _HANDLERS.get(type(op))
            if handler is not None:
                handler(self, op, scope, block)
            else:
                source.detach_op(op)
                block.add_op(op)
                self._label(op)
        last = source.last_op
        assert last is not None
        return tuple(last.operands)

    def linear(self, index: MapAttr, strides: tuple[Expr, ...], scope: Scope) -> MapAttr:
        """The linear index of an access, in kernel axes."""
        expr = renamed(linear_index(index, strides), scope.key())
        if expr.depth:
            expr = self._simplified(expr)
        self.builder.mentioned.update(expr.free_symbols)
        return MapAttr.of(expr)

    def _simplified(self, expr: Expr) -> Expr:
        """Quotients and remainders of different dimensions may meet in the linear index."""
        sizes = self.builder.sizes
        axes = tuple((name, sizes[name]) for name in sorted(expr.free_symbols & sizes.keys()))
        return simplify(expr, Ranges.of_axes(axes, self.builder.ranges))

    def _label(self, op: Operation) -> None:
        if (label := strong_label(op)) is not None:
            self.strong.append(label)
        elif (label := plain_label(op)) is not None:
            self.plain.append(label)

    def _load(self, op: loop.LoadOp, scope: Scope, block: Block) -> None:
        # Operands by position: the generated accessors cost more than all the rest here.
        builder, operands = self.builder, tuple(op.operands)
        source, dynamic, mask, other = operands[0], operands[1:], None, None
        if len(operands) > 1 and op.mask is not None:
            dynamic, mask, other = operands[1:-2], operands[-2], operands[-1]
        scalar = builder.scalars.get(source)
        if scalar is not None:
            if mask is not None and other is not None:
                select = arith.SelectOp.create(operands=(mask, scalar, other), result_types=(scalar.type,))
                block.add_op(select)
                scalar = select.results[0]
            op.results[0].replace_all_uses_with(scalar)
            return
        if dynamic:
            self.strong.append("gather")
        index = op.map
        local = builder.locals.get(source)
        if local is not None:
            buffer, dims, strides = local
            index = MapAttr.of(*(index.data[k] for k in dims))
        elif source in builder.storage:
            buffer, strides = builder.storage[source]
        else:
            raise UnsupportedError(f"a member reads %{source.name_hint or '?'} before it is computed")
        linear = self.linear(index, strides, scope)
        if dynamic:
            mask, other = self._guarded(op, dynamic, mask, other, block)
        new = kernel.LoadOp.of(buffer, linear, dynamic, mask, other, location=op.location)
        block.add_op(new)
        op.results[0].replace_all_uses_with(new.results[0])

    def _guarded(
        self,
        op: loop.LoadOp,
        dynamic: tuple[SSAValue, ...],
        mask: SSAValue | None,
        other: SSAValue | None,
        block: Block,
    ) -> tuple[SSAValue | None, SSAValue | None]:
        """Mask and value for outside of a load that follows checked indices."""
        guarded = self.guards.mask(dynamic, mask, block)
        if guarded is None or other is not None:
            return guarded, other
        zero = zero_of(op.results[0].type)
        if zero is None:
            return mask, other
        constant = arith.ConstantOp.create(properties={"value": zero}, result_types=(op.results[0].type,))
        block.add_op(constant)
        return guarded, constant.results[0]

    def _index(self, op: loop.IndexOp, scope: Scope, block: Block) -> None:
        expr = renamed(op.expr.data, scope.key())
        self.builder.mentioned.update(expr.free_symbols)
        new = kernel.IndexOp.create(
            operands=tuple(op.dynamic),
            properties={"expr": SymAttr.of(expr)},
            result_types=(op.value.type,),
            location=op.location,
        )
        block.add_op(new)
        op.value.replace_all_uses_with(new.value)

    def _assert(self, op: loop.AssertOp, scope: Scope, block: Block) -> None:
        error = f"{op.error.data}: {op.message.data}"
        if error not in self.errors:
            self.errors.append(error)
        code = SymAttr.of(self.errors.index(error) + 1)
        self.guards.add(op.operands[0])
        block.add_op(kernel.AssertOp.create(operands=(op.condition,), properties={"code": code}, location=op.location))

    def _reduce(self, op: loop.ReduceOp, scope: Scope, block: Block) -> None:
        places = set(scope.places)
        axes = self.builder.enter(scope, op.axes.data, op.on, op.axes.names)
        if len(axes) != len(op.axes.data):
            raise UnsupportedError("a reduction runs along a parallel axis of its fusion")
        with self.guards.inner():
            values = self._reduce_nest(op, axes, scope, block)
        scope.places = places  # a reduction beside this one may run along the same fusion axes
        for old, new in zip(op.results, values, strict=True):
            old.replace_all_uses_with(new)

    def _reduce_nest(self, op: loop.ReduceOp, axes: list[Axis], scope: Scope, block: Block) -> tuple[SSAValue, ...]:
        """One loop an axis. Every combiner is a monoid on what the body yields, so the partial results of an inner
        loop are values that the outer one combines; an argmax's indices are those of the whole domain throughout."""
        if not axes:
            return self.emit(op.body, scope, block)
        (name, size), *rest = axes
        body = Block()
        values = self._reduce_nest(op, rest, scope, body)
        body.add_op(kernel.YieldOp.create(operands=values))
        names = [c.data for c in op.combiners]
        if not rest:
            self.strong.extend("reduce" if name == "custom" else name for name in names)
        new = kernel.ReduceOp.of(
            name, ZERO, size, names, Region(body),
            init=op.init, combine=self.combine_region(op.combine), location=op.location,
        )  # fmt: skip
        block.add_op(new)
        return tuple(new.results)

    def combine_region(self, region: Region | None) -> Region | None:
        """A copy of a combine region that ends in a `kernel.yield`."""
        if region is None:
            return None
        copy = region.clone()
        last = copy.block.last_op
        assert last is not None
        copy.block.add_op(kernel.YieldOp.create(operands=tuple(last.operands)))
        copy.block.erase_op(last)
        return copy

    def hoisted(self, value: SSAValue, block: Block) -> SSAValue:
        """A scalar that was made outside of the fusion, made anew in `block`: a kernel sees no outer values."""
        owner = value.owner
        if not isinstance(owner, arith.ConstantOp):
            raise UnsupportedError("the identity of a custom scan must be a constant")
        copy = owner.clone()
        block.add_op(copy)
        return copy.results[0]


def _skip(lowering: BodyLowering, op: Operation, scope: Scope, block: Block) -> None:
    """The terminator stays behind; its operands are what `emit` returns."""


_HANDLERS: dict[type[Operation], Callable[..., None]] = {
    loop.LoadOp: BodyLowering._load,
    loop.IndexOp: BodyLowering._index,
    loop.AssertOp: BodyLowering._assert,
    loop.ReduceOp: BodyLowering._reduce,
    loop.YieldOp: _skip,
}
