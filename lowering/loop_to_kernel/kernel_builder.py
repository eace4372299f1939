"""A `loop.fusion` becomes the body of a `kernel.func`: its operands in memory, and its members one by one."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from contextlib import nullcontext
from dataclasses import field
from math import prod
from typing import Literal

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ...dialects import kernel, loop
from ...dialects.aten.types import TensorType
from ...dialects.loop import yielded
from ...dialects.raw import hint_of, ops_of, set_hint
from ...dialects.sym import ONE, ZERO, Expr, MapAttr, Ranges, SymAttr, as_expr, symbol
from ...errors import UnsupportedError
from ...records import dataclass
from .body import BodyLowering
from .memory import Rename, buffer_type, row_strides
from .sums import SumsInParts

Axis = tuple[str, Expr]


@dataclass(frozen=True)
class Operand:
    """What a launch passes for one buffer: a value of the program, fresh memory, or fresh memory with a copy of it."""

    kind: Literal["value", "empty", "copy"]
    type: TensorType
    value: SSAValue | None = None


@dataclass
class Scope:
    """Names in force at a point of a member: member axis -> kernel axis (0 for an axis of one element), and the
    fusion axes in use."""

    rename: dict[str, Expr]
    places: set[str]

    def key(self) -> Rename:
        """The renaming as a hashable key."""
        return tuple(self.rename.items())


@dataclass
class KernelBuilder:
    """Lowers one fusion. After `build`, `block` is the kernel's body and `operands` say what its buffers are."""

    fusion: loop.FusionOp
    declared: dict[str, int]
    ranges: Ranges
    block: Block = field(default_factory=Block)
    operands: list[Operand] = field(default_factory=list)
    results: list[int] = field(default_factory=list)
    """For each result of the fusion the number of the operand that holds it."""
    mentioned: set[str] = field(default_factory=set)
    """Names in the kernel's expressions: axes, symbols and dynamic indices."""

    def build(self) -> None:
        """Lower all members into `block`."""
        self._name_axes()
        reads = self._collect_operands()
        parallel = [(self.places[name], size) for name, size in self.fusion.axes.data if size is not ONE]
        self.inside = Block()
        self.bodies = BodyLowering(self)
        self.sums = SumsInParts(self)
        for member in self.fusion.members:
            self._member(member, reads)
        if self.sums.totals:
            parallel = self.sums.wrap(parallel)
        self.wrap(parallel, self.inside, self.block)
        self.block.add_op(kernel.YieldOp.create())

    def _name_axes(self) -> None:
        """Choose `i0, i1, ...` for the fusion's axes, passing over names of symbols."""
        self._fresh: dict[str, int] = {}
        self.sizes: dict[str, Expr] = {}
        self.places: dict[str, str] = {}
        for name, size in (*self.fusion.axes.data, *self.fusion.inner.data):
            self.places[name] = self.fresh_axis("i", size)
        self.parallel = set(self.fusion.axes.names)

    def fresh_axis(self, prefix: str, size: Expr) -> str:
        """A name for a kernel axis of a size."""
        number = self._fresh.get(prefix, 0)
        while (name := f"{prefix}{number}") in self.declared:
            number += 1
        self.mentioned.update(size.free_symbols)
        self._fresh[prefix] = number + 1
        self.sizes[name] = size
        return name

    def _collect_operands(self) -> set[SSAValue]:
        """Give every tensor in memory its buffer, inputs first; returns the inner values that are read."""
        self.storage: dict[SSAValue, tuple[SSAValue, tuple[Expr, ...]]] = {}
        self.locals: dict[SSAValue, tuple[SSAValue, tuple[int, ...], tuple[Expr, ...]]] = {}
        self.scalars: dict[SSAValue, SSAValue] = {}
        self.stores: dict[SSAValue, list[SSAValue]] = {}
        reads: set[SSAValue] = set()
        for member in self.fusion.members:
            self._collect_reads(member.regions[0], reads)
            if isinstance(member, loop.ScatterOp):
                self._collect_destination(member)
        for value in yielded(self.fusion.body):
            storage = self.storage.get(value)
            if storage is None:
                self.results.append(len(self.operands))
                self.stores.setdefault(value, []).append(self._add_operand("empty", value.type))
            else:
                self.results.append(_position(storage[0]))
        return reads

    def _collect_reads(self, region: Region, reads: set[SSAValue]) -> None:
        for op in ops_of(region.block):
            if type(op) is loop.LoadOp:
                source = op.operands[0]
                if self._is_inner(source):
                    reads.add(source)
                elif source not in self.storage:
                    self._add_storage(source, "value", source.type, source)
            elif type(op) is loop.ReduceOp:
                self._collect_reads(op.body, reads)

    def _is_inner(self, value: SSAValue) -> bool:
        owner = value.owner
        return isinstance(owner, Operation) and owner.parent is self.fusion.body.block

    def _collect_destination(self, scatter: loop.ScatterOp) -> None:
        """Let a scatter's result live in its destination's buffer, or in a copy of it."""
        dest = scatter.dest
        owner = dest.owner
        if self._is_inner(dest):
            self._collect_inner_destination(scatter)
        elif isinstance(owner, loop.EmptyOp) and scatter.from_zero is not None:
            self._add_storage(scatter.out, "empty", scatter.out.type)  # memory from here on, not from the op on
        elif scatter.in_place is not None and dest.type == scatter.out.type:
            if dest not in self.storage:
                self._add_storage(dest, "value", dest.type, dest)
            self.storage[scatter.out] = self.storage[dest]
        elif isinstance(owner, loop.EmptyOp):  # nothing there to keep
            self._add_storage(scatter.out, "empty", scatter.out.type)
        else:
            self._add_storage(scatter.out, "copy", scatter.out.type, dest)

    def _collect_inner_destination(self, scatter: loop.ScatterOp) -> None:
        dest = scatter.dest
        if dest in self.storage:
            if scatter.in_place is None:
                raise UnsupportedError("a scatter into another member's result must be in place; run loop-bufferize")
            self.storage[scatter.out] = self.storage[dest]
            return
        # The producer stores its elements right where the scatter then overwrites some.
        buffer = self._add_operand("empty", scatter.out.type)
        self.stores.setdefault(dest, []).append(buffer)
        self.storage[scatter.out] = buffer, _tensor(scatter.out.type).strides

    def _add_operand(self, kind: Literal["value", "empty", "copy"], type_: object, value: SSAValue | None = None):
        tensor = _tensor(type_)
        self.operands.append(Operand(kind, tensor, value))
        buffer = buffer_type(tensor)
        self.mentioned.update(buffer.extent.free_symbols)
        argument = self.block.insert_arg(buffer, len(self.block.args))
        if value is not None:
            set_hint(argument, hint_of(value))
        return argument

    def _add_storage(
        self, key: SSAValue, kind: Literal["value", "empty", "copy"], type_: object, value: SSAValue | None = None
    ) -> None:
        self.storage[key] = self._add_operand(kind, type_, value), _tensor(type_).strides

    def _member(self, member: Operation, reads: set[SSAValue]) -> None:
        assert isinstance(member, loop.GenerateOp | loop.ScanOp | loop.ScatterOp)
        scope = Scope({}, set())
        self._fresh["j"] = 0
        along = member.along.data if isinstance(member, loop.ScanOp) else None
        inner = self.enter(scope, member.axes.data, member.on, (along,))
        kept = [r for r in member.results if r in reads and r not in self.storage]
        for result in kept if inner else ():
            self._make_local(result, member.axes.data, member.on)
        # What a member asserts outside of all loops of its own dominates the members behind it.
        with self.bodies.guards.inner() if inner else nullcontext():
            self._emit_member(member, scope, inner)

    def _emit_member(self, member: loop.Member, scope: Scope, inner: list[Axis]) -> None:
        if isinstance(member, loop.ScanOp):
            self._scan(member, scope, inner)
        elif isinstance(member, loop.ScatterOp):
            self._nest(inner, self.inside, lambda block: self._scatter(member, scope, inner, block))
        else:
            self._nest(inner, self.inside, lambda block: self._generate(member, scope, block))

    def enter(
        self, scope: Scope, axes: Sequence[Axis], on: ArrayAttr[StringAttr] | None, looped: Container[str | None]
    ) -> list[Axis]:
        """Bring axes of a member into scope; returns the kernel axes that need a loop here.

        An axis that is placed on a fusion axis takes its name, so that loops over one axis are recognisable. An axis
        of one element is 0, unless it is in `looped`: even one element is combined with the identity.
        """
        inner: list[Axis] = []
        for position, (name, size) in enumerate(axes):
            place = on.data[position].data if on is not None else "_"
            if size is ONE and name not in looped:
                scope.rename[name] = ZERO
                continue
            if size is ONE:
                place = "_"
            if place == "_" or place in scope.places:
                new = self.fresh_axis("j", size)
            else:
                scope.places.add(place)
                new = self.places[place]
            scope.rename[name] = symbol(new)
            if place not in self.parallel:
                inner.append((new, size))
        return inner

    def _make_local(self, result: SSAValue, axes: Sequence[Axis], on: ArrayAttr[StringAttr] | None) -> None:
        """A row for a value that another member reads, over those of its dimensions that are not parallel."""
        dims = tuple(
            k
            for k, (_, size) in enumerate(axes)
            if size is not ONE and (on is None or on.data[k].data not in self.parallel)
        )
        sizes = tuple(axes[k][1] for k in dims)
        local = kernel.LocalOp.of(_tensor(result.type).element, SymAttr.of(prod(sizes, start=ONE)))
        set_hint(local.buffer, hint_of(result))
        self.inside.add_op(local)
        self.locals[result] = local.buffer, dims, row_strides(sizes)

    def _nest(self, axes: list[Axis], block: Block, emit: Callable[[Block], None]) -> None:
        """Emit into `block` inside loops over `axes`, outermost first."""
        body = Block() if axes else block
        emit(body)
        if axes:
            self.wrap(axes, body, block)

    def wrap(self, axes: Sequence[Axis], body: Block, block: Block) -> None:
        """Put a body into loops over axes, outermost first, at the end of a block."""
        for name, size in reversed(axes):
            body.add_op(kernel.YieldOp.create())
            body = Block([kernel.ForOp.of(name, as_expr(0), size, Region(body))])
        for op in ops_of(body):
            body.detach_op(op)
            block.add_op(op)

    def _generate(self, member: loop.GenerateOp, scope: Scope, block: Block) -> None:
        values = self.bodies.emit(member.body, scope, block)
        self._keep(member, values, scope, block)

    def _keep(self, member: Operation, values: Sequence[SSAValue], scope: Scope, block: Block) -> None:
        """Put each result's element where its readers look for it."""
        axes = member.axes  # pyright: ignore[reportAttributeAccessIssue]
        index = [scope.rename[name] for name in axes.names]
        for result, value in zip(member.results, values, strict=True):
            for buffer in self.stores.get(result, ()):
                strides = self.operands[_position(buffer)].type.strides
                self.store(value, buffer, index, strides, block, member)
            local = self.locals.get(result)
            if local is not None:
                buffer, dims, strides = local
                self.store(value, buffer, [index[k] for k in dims], strides, block, member)
            else:
                self.scalars[result] = value

    def store(
        self,
        value: SSAValue,
        buffer: SSAValue,
        index: Sequence[Expr],
        strides: Sequence[Expr],
        block: Block,
        member: Operation,
    ) -> None:
        """Store a value at an index, in kernel axes, of memory with strides."""
        linear = as_expr(0)
        for expr, stride in zip(index, strides, strict=True):
            linear = linear + expr * stride
        self.mentioned.update(linear.free_symbols)
        block.add_op(kernel.StoreOp.of(value, buffer, MapAttr.of(linear), location=member.location))

    def _scatter(self, member: loop.ScatterOp, scope: Scope, inner: list[Axis], block: Block) -> None:
        values = self.bodies.emit(member.body, scope, block)
        if member.from_zero is not None:
            self.sums.add(member, values[0], scope, inner, block)
            return
        if member.dynamic or member.kind.data != "set":
            self.bodies.strong.append("scatter")
        buffer, strides = self.storage[member.out]
        index = self.bodies.linear(member.map, strides, scope)
        mask = values[-1] if member.masked is not None else None
        mask = self.bodies.guards.mask(member.dynamic, mask, block)
        unique, kind = member.unique is not None, member.kind.data
        ordered = not unique and (kind == "set" or member.deterministic is not None)
        block.add_op(
            kernel.StoreOp.of(
                values[0],
                buffer,
                index,
                member.dynamic,
                mask,
                kind,
                atomic=not unique and not ordered,
                ordered=ordered,
                location=member.location,
            )
        )

    def _scan(self, member: loop.ScanOp, scope: Scope, inner: list[Axis]) -> None:
        along = str(scope.rename[member.along.data])
        if along not in [name for name, _ in inner]:
            raise UnsupportedError(f"a scan along {member.along.data}, which the fusion made parallel")
        outer = [axis for axis in inner if axis[0] != along]
        self._nest(outer, self.inside, lambda block: self._scan_loop(member, scope, along, block))

    def _scan_loop(self, member: loop.ScanOp, scope: Scope, along: str, block: Block) -> None:
        body, then = Block(), Block(arg_types=[v.type for v in yielded(member.body)])
        values = self.bodies.emit(member.body, scope, body)
        body.add_op(kernel.YieldOp.create(operands=values))
        self._keep(member, then.args, scope, then)
        then.add_op(kernel.YieldOp.create())
        names = [c.data for c in member.combiners]
        self.bodies.strong.append("scan" if names[0] == "custom" else f"cum{names[0]}")
        combine = self.bodies.combine_region(member.combine)
        init = [self.bodies.hoisted(value, block) for value in member.init]
        block.add_op(
            kernel.ScanOp.of(
                along,
                as_expr(0),
                self.sizes[along],
                names,
                Region(body),
                Region(then),
                init=init,
                combine=combine,
                location=member.location,
            )
        )


def _position(argument: SSAValue) -> int:
    assert isinstance(argument, BlockArgument)
    return argument.index


def _tensor(type_: object) -> TensorType:
    assert isinstance(type_, TensorType)
    return type_
