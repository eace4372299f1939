"""The loop level: every nest is evaluated over its whole domain with torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, ClassVar

import torch
from xdsl.ir import Block, Operation, Region

from ...dialects import loop
from ...dialects.aten.types import TensorType
from ...dialects.sym import AxesAttr
from ...records import dataclass
from ..limits import check_bytes
from .domain import LANES, Domain, pieces
from .errors import LifetimeError, RaceError, describe, exception
from .frame import Frame, evaluate_index
from .places import combine_at, last_at, put
from .program import Handlers, Program, TakenOver
from .reductions import Accumulator, scan
from .tensors import check_not_negative

Values = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class LoopFrame(Frame):
    """A body of a loop-level nest."""

    def load(self, op: loop.LoadOp) -> None:
        """An element of a tensor in each lane."""
        source = self.values[op.source]
        if isinstance(source, TakenOver):
            raise LifetimeError(f"{describe(op)}: reads memory that was taken over by {describe(source.by)}")
        source = self.machine.precision.load(source.to(self.domain.device))
        mask = None if op.mask is None else self.scalar(op.mask)
        scalars = self.gather(op, source, self.indices(op.map.data, op.dynamic), mask)
        if mask is not None:
            assert op.other is not None
            scalars = torch.where(mask, scalars, self.scalar(op.other))
        self.values[op.value] = scalars

    def gather(
        self, op: Operation, source: torch.Tensor, indices: Sequence[torch.Tensor], mask: torch.Tensor | None
    ) -> torch.Tensor:
        """Elements at indices; those that the mask excludes are arbitrary."""
        checked = self.check_indices(op, indices, source.shape, mask)
        if not source.numel():  # nothing is wanted, or the check would have raised
            return source.new_zeros(())
        return source[tuple(checked)] if checked else source

    def reduce(self, op: loop.ReduceOp) -> None:
        """Reduce to scalars of the enclosing lanes, piece by piece in row-major order."""
        sizes = [self.domain.evaluate(size) for size in op.axes.sizes]
        most = [int(s.max()) if isinstance(s, torch.Tensor) else s for s in sizes]
        total = Accumulator(self, op)
        for spans in pieces(most, LANES // max(1, self.domain.lanes)):
            inner = self.inside(self.domain.nest(op.axes.data, sizes, spans))
            total.add(inner, inner.run(op.body.block))
        self.bind(op, total.result())

    def check(self, op: loop.AssertOp) -> None:
        """Raise what the program asks for when a lane fails."""
        if bool(self.existing(~self.scalar(op.condition)).any()):
            raise exception(op.error.data, op.message.data)

    HANDLERS: ClassVar[Mapping[type[Operation], Callable[[Any, Any], None]]] = {
        loop.LoadOp: load,
        loop.IndexOp: evaluate_index,
        loop.AssertOp: check,
        loop.ReduceOp: reduce,
    }


def _reduced_lanes(region: Region, domain: Domain) -> int:
    """Largest number of lanes that reduces inside a body add to each of its own."""
    most = 1
    for op in region.block.ops:
        if isinstance(op, loop.ReduceOp):
            sizes = [domain.evaluate(s) if s.free_symbols <= domain.symbols.keys() else 1 for s in op.axes.sizes]
            most = max(most, prod(int(s) for s in sizes) * _reduced_lanes(op.body, domain))
    return most


def tabulate(program: Program, axes: AxesAttr, region: Region, device: torch.device) -> Values:
    """Values that a body yields at each point of a nest: contiguous tensors of the nest's shape."""
    domain = program.domain(device)
    shape = [program.size(size) for size in axes.sizes]
    check_not_negative(shape, "size")
    block: Block = region.block
    for value in loop.yielded(region):
        check_bytes(prod(shape) * program.machine.precision.scalar(value.type).itemsize)
    outs = tuple(
        torch.empty(shape, dtype=program.machine.precision.scalar(v.type), device=device) for v in loop.yielded(region)
    )
    frame = LoopFrame(program.machine, domain, program.values)
    for spans in pieces(shape, max(1, LANES // _reduced_lanes(region, domain))):
        inner = frame.inside(domain.nest(axes.data, shape, spans))
        where = tuple(slice(*span) for span in spans)
        for out, value in zip(outs, inner.run(block), strict=True):
            out[where] = value
    return outs


def _finish(program: Program, op: Operation, scalars: Values) -> None:
    """Bind results of a nest, in the layout of their types."""
    for result, value in zip(op.results, scalars, strict=True):
        assert isinstance(result.type, TensorType)
        stored = program.machine.precision.store(value, result.type.element)
        program.values[result] = program.place(op, stored, result.type)


def generate(program: Program, op: loop.GenerateOp) -> None:
    """Run `loop.generate`."""
    _finish(program, op, tabulate(program, op.axes, op.body, program.device(op.outs[0])))


def run_scan(program: Program, op: loop.ScanOp) -> None:
    """Run `loop.scan`."""
    device = program.device(op.outs[0])
    along = op.axes.names.index(op.along.data)
    elements = tuple(v.movedim(along, 0) for v in tabulate(program, op.axes, op.body, device))
    frame = LoopFrame(program.machine, program.domain(device), program.values)
    prefix = scan(frame, op, elements, elements[0].shape)
    _finish(program, op, tuple(v.movedim(0, along) for v in prefix))


def scatter(program: Program, op: loop.ScatterOp) -> None:
    """Run `loop.scatter`: into a copy of the destination, or into its memory when `in_place`."""
    assert isinstance(op.out.type, TensorType)
    dest: torch.Tensor = program.tensor(op.dest)
    device = program.device(op.out)
    yields = [v.reshape(-1) for v in tabulate(program, op.axes, op.body, device)]
    keep = yields.pop() if op.masked is not None else None
    value, dynamic = yields[0], yields[1:]
    linear = _linear_index(program, op, dynamic, keep, tuple(dest.shape), device)
    if keep is not None:
        linear, value = linear[keep], value[keep]
    if op.from_zero is not None:
        dest = torch.zeros_like(dest) if op.in_place is None else dest.zero_()
    last = _last_writes(op, linear, dest.numel())
    if op.kind.data == "set":
        linear, value = linear[last], value[last]
    if op.in_place is not None:
        out = dest
        program.take_over(op.dest, op)
    else:
        out = program.place(op, dest, op.out.type)
    stored = program.machine.precision.store(value, op.out.type.element)
    out.copy_(_written(op, out, linear, stored))
    program.values[op.out] = out


def _linear_index(
    program: Program,
    op: loop.ScatterOp,
    dynamic: Sequence[torch.Tensor],
    keep: torch.Tensor | None,
    sizes: tuple[int, ...],
    device: torch.device,
) -> torch.Tensor:
    """Row-major index into the destination of each element of the domain; checked where it is kept."""
    shape = [program.size(size) for size in op.axes.sizes]
    domain = program.domain(device).nest(op.axes.data, shape, [(0, n) for n in shape])
    values = {f"d{k}": v.to(torch.int64).reshape(shape) for k, v in enumerate(dynamic)}
    frame = LoopFrame(program.machine, domain, program.values)
    indices = [domain.tensor(domain.evaluate(e, values)) for e in op.map.data]
    checked = frame.check_indices(op, indices, sizes, None if keep is None else keep.reshape(shape))
    linear = torch.zeros((), dtype=torch.int64, device=device)
    for index, size in zip(checked, sizes, strict=True):
        linear = linear * size + index
    return linear.expand(shape).reshape(-1)


def _last_writes(op: loop.ScatterOp, linear: torch.Tensor, size: int) -> torch.Tensor:
    """Which writes to places below `size` no later one covers; RaceError when `unique` promised all of them."""
    last = last_at(linear, size)
    if op.unique is not None and not bool(last.all()):
        twice = int(linear[~last][0])
        raise RaceError(f"{describe(op)}: promises unique places, but writes element {twice} twice")
    return last


def _written(op: loop.ScatterOp, dest: torch.Tensor, linear: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """The destination, contiguous, after values are combined into it at linear indices."""
    flat = dest.reshape(-1).clone()
    if op.kind.data == "set":
        put(flat, linear, value)
    else:
        flat = combine_at(flat, linear, value, op.kind.data)
    return flat.reshape(dest.shape)


def view(program: Program, op: loop.ViewOp) -> None:
    """Run `loop.view`: the same memory where the type's strides describe the map, else a copy."""
    assert isinstance(op.out.type, TensorType)
    source = program.tensor(op.source)
    device = source.device
    shape = program.shape(op.out.type)
    domain = program.domain(device).nest(op.axes.data, shape, [(0, n) for n in shape])
    if 0 in shape:
        program.values[op.out] = program.undefined(op.out.type)
        return
    frame = LoopFrame(program.machine, domain, program.values)
    indices = frame.check_indices(op, frame.indices(op.map.data, ()), source.shape, None)
    offsets = torch.zeros(shape, dtype=torch.int64, device=device)
    for index, stride in zip(indices, source.stride(), strict=True):
        offsets = offsets + index * stride
    strides = program.strides(op.out.type)
    first = int(offsets.flatten()[0])
    steps = torch.zeros((), dtype=torch.int64, device=device)
    for dim, (size, stride) in enumerate(zip(shape, strides, strict=True)):
        steps = steps + (torch.arange(size, device=device) * stride).reshape(-1, *[1] * (len(shape) - dim - 1))
    if bool((offsets == first + steps).all()):
        program.values[op.out] = source.as_strided(shape, strides, source.storage_offset() + first)
    else:
        precision, kind = program.machine.precision, op.out.type
        copied = frame.gather(op, precision.load(source), indices, None).expand(shape)
        program.values[op.out] = program.place(op, precision.store(copied, kind.element), kind)


def empty(program: Program, op: loop.EmptyOp) -> None:
    """Run `loop.empty`: memory full of canaries."""
    assert isinstance(op.out.type, TensorType)
    program.values[op.out] = program.undefined(op.out.type)


def fusion(program: Program, op: loop.FusionOp) -> None:
    """Run the members in order."""
    for member in op.members:
        program.execute(member)
    for result, value in zip(op.results, loop.yielded(op.body), strict=True):
        program.values[result] = program.values[value]


HANDLERS: Handlers = {
    loop.GenerateOp: generate,
    loop.ScanOp: run_scan,
    loop.ScatterOp: scatter,
    loop.ViewOp: view,
    loop.EmptyOp: empty,
    loop.FusionOp: fusion,
}
