"""What reductions and scans share: their monoids, masked values, identities, one step of an accumulator."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, SSAValue

from ...dialects import kernel
from ...passes.kernel.tiles import is_tiled
from .axes import Axes
from .context import Context
from .dtypes import dtype_name
from .monoids import TritonMonoid, identity, monoid_named, reduce_text
from .scalars import as_dtype
from .values import Dims, Value, union

CombiningOp = kernel.ReduceOp | kernel.ScanOp
Group = tuple[TritonMonoid, slice]
"""A monoid and which of the yielded values it combines."""


class Combining:
    """Base of the emitters of reductions and scans.

    body:   emits the ops of a block
    custom: emits the function of a combine region and returns its name
    """

    def __init__(
        self,
        context: Context,
        axes: Axes,
        body: Callable[[Block], None],
        custom: Callable[[CombiningOp], str],
    ) -> None:
        self.context = context
        self.axes = axes
        self.body = body
        self.custom = custom

    def groups(self, op: CombiningOp) -> list[Group]:
        """The op's monoids in order."""
        names = [c.data for c in op.combiners]
        count = len(yielded_operands(op))
        if names == ["custom"]:
            return [(TritonMonoid("custom", count, self.custom(op)), slice(0, count))]
        groups: list[Group] = []
        first = 0
        for monoid in map(monoid_named, names):
            groups.append((monoid, slice(first, first + monoid.arity)))
            first += monoid.arity
        return groups

    def yields(self, op: CombiningOp, group: Group) -> list[Value]:
        """What the body yields for a monoid; integers are signed, whatever they were loaded as."""
        return [
            as_dtype(self.context, self.context.value(v), dtype_name(v.type)) for v in yielded_operands(op)[group[1]]
        ]

    def identity(self, op: CombiningOp, group: Group, values: Sequence[Value]) -> tuple[Value, ...]:
        """The monoid's identity for values like these."""
        if group[0].name == "custom":
            return tuple(self.context.value(v) for v in op.init)
        return identity(group[0].name, *(v.dtype for v in values))

    def mask(self, op: CombiningOp) -> Value | None:
        """Which lanes of the op's axis, the innermost in scope, are inside; None for all."""
        return self.context.lanes[-1].mask if is_tiled(op) else None

    def masked(self, op: CombiningOp, group: Group) -> list[Value]:
        """What the body yields, the identity in lanes outside of the axis."""
        values = self.yields(op, group)
        if self.mask(op) is None:
            return values
        neutral = self.identity(op, group, values)
        return [self.where_inside(op, v, n) for v, n in zip(values, neutral, strict=True)]

    def where_inside(self, op: CombiningOp, value: Value, other: Value) -> Value:
        """`value` in lanes inside of the axis, `other` outside."""
        mask = self.mask(op)
        if mask is None:
            return value
        context = self.context
        text = f"tl.where({mask}, {context.typed(value)}, {context.tensor(other)})"
        hint = "inside" if value.literal else f"{value}_inside"
        return context.define(text, value.dtype, union(value, mask), hint)

    def broadcast(self, value: Value, dims: Dims) -> Value:
        """The value as a block that has all of `dims`."""
        if value.dims == dims:
            return value
        text = f"tl.broadcast_to({value}, {self.context.shape(dims)})"
        if value.literal:
            text = f"tl.full({self.context.shape(dims)}, {value.text}, tl.{value.dtype})"
        return self.context.define(text, value.dtype, dims, "block")

    def start(self, name: str, value: Value, dims: Dims, shape: str | None = None) -> str:
        """The line that initialises an accumulator or carry; `shape` where it is not that of all lanes of `dims`."""
        shape = shape or self.context.shape(dims)
        if value.literal:
            return f"{name} = tl.full({shape}, {value.text}, tl.{value.dtype})"
        return f"{name} = tl.broadcast_to({value}, {shape})" if dims != value.dims else f"{name} = {value}"

    def assign(self, targets: Sequence[Value], texts: Sequence[str]) -> None:
        """Assign one expression a target, or one that gives a tuple."""
        self.context.out.line(f"{', '.join(t.text for t in targets)} = {', '.join(texts)}")

    def across(
        self, monoid: TritonMonoid, values: Sequence[Value], dims: Dims, dim: int, results: Sequence[SSAValue]
    ) -> None:
        """Reduce blocks over `dims` along `dim` and bind the results."""
        context = self.context
        rest = tuple(d for d in dims if d != dim)
        text = reduce_text(monoid, values, self.reduced_dim(dim, rest), keep=bool(rest))
        hints = [r.name_hint or monoid.name for r in results]
        if len(results) == 1:
            found = [context.define(text, values[0].dtype, rest, hints[0])]
        else:
            found = [Value(context.names.fresh(h), v.dtype, rest) for h, v in zip(hints, values, strict=True)]
            self.assign(found, [text])
        for result, value in zip(results, found, strict=True):
            context.values[result] = value

    def reduced_dim(self, dim: int, rest: Dims) -> int | None:
        """The dimension to reduce; None for all, where what is left is a scalar."""
        return None if self.context.rank > 1 and not rest else dim


def yielded_operands(op: CombiningOp) -> tuple[SSAValue, ...]:
    """Operands of the terminator of the op's body."""
    last = op.body.block.last_op
    assert last is not None
    return tuple(last.operands)
