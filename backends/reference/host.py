"""The host level: memory, views, launches, and the lives of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import torch
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import host, kernel
from ...dialects.aten.types import TensorType
from ...errors import program_raises
from ...records import dataclass
from ..host.gpu import is_gpu
from .domain import Domain
from .errors import (
    InterpretationError,
    LifetimeError,
    OutOfBoundsError,
    UninitialisedReadError,
    describe,
    exception,
)
from .kernel import Buffer, KernelFrame, Launch, buffer_parameters
from .memory import GUARD, Memory
from .precision import tensor_device, torch_dtype
from .program import Handlers, Program
from .races import AccessLog, Region
from .tensors import first_element, same_strides, span


@dataclass(frozen=True)
class Freed:
    """Stands for a value whose life has ended."""

    by: Operation


@dataclass
class HostProgram(Program):
    """A run of a `host.func`."""

    kernels: Mapping[str, kernel.FuncOp] = field(default_factory=dict)
    memories: dict[int, Memory] = field(default_factory=dict)
    """By identity of the storage; arguments and what ATen returns have none."""
    last_use: dict[SSAValue, Operation] = field(default_factory=dict)
    _order: dict[Operation, int] = field(default_factory=dict)

    def enter(self, symbols: dict[str, int]) -> HostProgram:
        """The state of a run of a program that this one calls; what both allocate is watched over together."""
        return HostProgram(
            self.machine,
            self.handlers,
            symbols,
            references=self.references,
            kernels=self.kernels,
            memories=self.memories,
        )

    def run(self, block: Block) -> list[Any]:
        """Execute the function, then check the guard zones and the layouts of the results."""
        for number, op in enumerate(block.ops):
            self._order[op] = number
            self.last_use.update(dict.fromkeys(op.operands, op))
        results = super().run(block)
        for memory in self.memories.values():
            memory.check_guards()
        last = block.last_op
        assert last is not None
        for value, result in zip(last.operands, results, strict=True):
            self._check_layout(last, value, result)
        return results

    def _check_layout(self, op: Operation, value: SSAValue, result: Any) -> None:
        if isinstance(value.type, TensorType) and not same_strides(result, strides := self.strides(value.type)):
            raise InterpretationError(f"{describe(op)}: strides {result.stride()} instead of {strides}")

    def memory(self, tensor: torch.Tensor) -> Memory | None:
        """The memory of a tensor, if the function allocated it."""
        return self.memories.get(tensor.untyped_storage()._cdata)

    def origin(self, tensor: torch.Tensor) -> int:
        """Memory of the function has a guard zone in front of it."""
        return 0 if self.memory(tensor) is None else GUARD // tensor.element_size()

    def hold(self, value: SSAValue, tensor: torch.Tensor) -> None:
        """Bind a tensor to a value, which keeps its memory alive."""
        self.values[value] = tensor
        memory = self.memory(tensor)
        if memory is not None:
            memory.holders.add(value)

    def target(self, value: SSAValue) -> torch.Tensor:
        """The tensor of a value that is alive, which may be undefined."""
        found = self.values[value]
        if isinstance(found, Freed):
            raise LifetimeError(f"{self.reader()}: uses a value whose life was ended by {describe(found.by)}")
        return found

    def tensor(self, value: SSAValue) -> torch.Tensor:
        """The tensor that an op reads; all of it must be defined."""
        tensor = self.target(value)
        memory = self.memory(tensor)
        if memory is not None and self.machine.strict:
            undefined = ~memory.defined(tensor)
            if bool(undefined.any()):
                where = undefined.nonzero()[0].tolist()
                raise UninitialisedReadError(
                    f"{self.reader()}: reads element {where}, never written, of {describe(memory.op)}"
                )
        return tensor

    def result(self, value: SSAValue) -> Any:
        """A value that is returned. What was never written at all counts as `torch.empty`."""
        if not isinstance(value.type, TensorType):
            return super().result(value)
        tensor = self.target(value)
        memory = self.memory(tensor)
        if memory is not None and not bool(memory.defined(tensor).any()):
            return tensor
        return self.tensor(value)

    def wrote(self, value: SSAValue) -> None:
        """A whole tensor is defined now."""
        tensor = self.target(value)
        memory = self.memory(tensor)
        if memory is not None:
            memory.defined(tensor).fill_(True)

    def receive(self, op: Operation, results: Sequence[Any], binds: Sequence[str], writes: bool) -> None:
        """Bind what an ATen op returned; results may be views of the function's memory."""
        super().receive(op, results, binds, writes)
        for out in op.results:
            found = self.values[out]
            if isinstance(found, torch.Tensor):
                self.hold(out, found)

    def is_needed(self, memory: Memory) -> bool:
        """Whether an op after the current one uses a value of a memory."""
        uses = (self.last_use.get(v) for v in memory.holders)
        assert self.current is not None
        return any(op is not None and self._order[op] > self._order[self.current] for op in uses)


def empty(program: HostProgram, op: host.EmptyOp) -> None:
    """Run `host.empty`."""
    kind = op.out.type
    assert isinstance(kind, TensorType)
    memory, tensor = Memory.allocate(
        op,
        program.shape(kind),
        program.strides(kind),
        program.machine.precision.stored(kind.element),
        torch_dtype(kind.element).itemsize,
        tensor_device(kind),
    )
    if op.offset is not None:
        _move_in(program, op, memory, program.size(op.offset.data))
    program.memories[tensor.untyped_storage()._cdata] = memory
    program.hold(op.out, tensor)


def _move_in(program: HostProgram, op: host.EmptyOp, tenant: Memory, offset: int) -> None:
    """Check that a tenant fits in its pool, and that no live one is there."""
    pool = program.memory(program.target(op.pool[0]))
    if pool is None:
        raise InterpretationError(f"{describe(op)}: the pool is no memory of this function")
    tenant.pool, tenant.offset = pool, offset
    if offset < 0 or offset + tenant.nbytes > pool.nbytes:
        end = offset + tenant.nbytes
        raise OutOfBoundsError(f"{describe(op)}: bytes {offset} to {end} of a pool of {pool.nbytes}")
    if offset % tenant.itemsize:
        raise InterpretationError(f"{describe(op)}: offset {offset} is no multiple of {tenant.itemsize} bytes")
    for other in program.memories.values():
        if other.pool is pool and other.overlaps(tenant) and program.is_needed(other):
            raise LifetimeError(f"{describe(op)}: overlaps in the pool with {describe(other.op)}, still in use")


def view(program: HostProgram, op: host.ViewOp) -> None:
    """Run `host.view`."""
    kind = op.out.type
    assert isinstance(kind, TensorType)
    source = program.target(op.source)
    dtype = program.machine.precision.stored(kind.element)
    before = op.source.type
    is_another = isinstance(before, TensorType) and before.element != kind.element  # of one dtype, computed wide
    if source.dtype != dtype or (is_another and program.machine.precision.wide):
        source = _reinterpreted(program, op, source, dtype)
    shape, strides, offset = program.shape(kind), program.strides(kind), program.size(op.offset.data)
    first = first_element(source) + offset
    available = _elements(program, source) - offset
    if offset < 0 or span(shape, strides) > available:
        raise OutOfBoundsError(f"{describe(op)}: reaches {span(shape, strides)} elements, {available} are there")
    program.hold(op.out, source.as_strided(shape, strides, first))


def _reinterpreted(program: HostProgram, op: host.ViewOp, source: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    if program.machine.precision.wide:
        raise InterpretationError(f"{describe(op)}: bits cannot be reinterpreted when floats are computed wide")
    start = first_element(source) * source.element_size()
    if start % dtype.itemsize:
        raise InterpretationError(f"{describe(op)}: byte {start} is no place for {dtype}")
    flat = torch.empty(0, dtype=dtype, device=source.device)
    return flat.set_(source.untyped_storage(), start // dtype.itemsize, (0,), (1,))


def _elements(program: HostProgram, tensor: torch.Tensor) -> int:
    """How many elements of memory there are from the first one of a tensor on."""
    memory = program.memory(tensor)
    if memory is not None:
        return memory.nbytes // memory.item_bytes(tensor) - memory.first(tensor)
    return tensor.untyped_storage().nbytes() // tensor.element_size() - first_element(tensor)


def copy(program: HostProgram, op: host.CopyOp) -> None:
    """Run `host.copy`."""
    source, target = program.target(op.source), program.target(op.target)
    from_, to = program.memory(source), program.memory(target)
    if from_ is None or to is None:
        source = program.tensor(op.source)
    if source.shape != target.shape:
        raise InterpretationError(f"{describe(op)}: shape {tuple(source.shape)} to {tuple(target.shape)}")
    kind = op.target.type
    assert isinstance(kind, TensorType)
    with program_raises():  # where elements of the target share a place
        target.copy_(source.to(torch_dtype(kind.element)))
    if from_ is None or to is None:
        program.wrote(op.target)
    else:  # a copy of what was never written is not written either
        to.defined(target).copy_(from_.defined(source))


def free(program: HostProgram, op: host.FreeOp) -> None:
    """Run `host.free`; memory without a holder is gone."""
    for value in op.values:
        memory = program.memory(program.target(value))
        program.values[value] = Freed(op)
        if memory is None:
            continue
        memory.holders.discard(value)
        if not memory.holders:
            memory.check_guards()
            del program.memories[memory.storage.untyped_storage()._cdata]


def launch(program: HostProgram, op: host.LaunchOp) -> None:
    """Run `host.launch`: interpret the kernel, then raise what its status means."""
    name = op.kernel.root_reference.data
    function = program.kernels.get(name)
    if function is None:
        raise InterpretationError(f"{describe(op)}: there is no kernel.func @{name}")
    names = [s.data for s in function.symbols]
    if len(names) != len(op.symbols.data) or len(op.buffers) != len(function.body.block.args):
        raise InterpretationError(f"{describe(op)}: @{name} takes other numbers of buffers or symbols")
    symbols: dict[str, int | torch.Tensor] = {n: program.size(e) for n, e in zip(names, op.symbols.data, strict=True)}
    run = Launch(function)
    device = _launch_device(op)
    values = _buffers(program, op, run, Domain(device, symbols))
    KernelFrame(program.machine, Domain(device, symbols), dict(values), launch=run).run(function.body.block)
    if run.status:
        _raise(op, function, run.status)


def _launch_device(op: host.LaunchOp) -> torch.device:
    """Where a kernel runs: on the GPU if a buffer is there."""
    devices = [tensor_device(b.type) for b in op.buffers]
    return next((d for d in devices if is_gpu(d.type)), torch.device("cpu"))


def _raise(op: host.LaunchOp, function: kernel.FuncOp, status: int) -> None:
    errors = function.errors.data if function.errors is not None else ()
    if status > len(errors):
        raise InterpretationError(f"{describe(op)}: status {status} is not among the kernel's errors")
    name, _, message = errors[status - 1].data.partition(": ")
    raise exception(name, message)


def _buffers(program: HostProgram, op: host.LaunchOp, run: Launch, domain: Domain) -> dict[SSAValue, Buffer]:
    """The buffers of a launch; regions are shared, and an overlap record kept, where memory overlaps."""
    parameters = buffer_parameters(run.function)
    buffers = {
        argument: _buffer(program, op, number, domain, kind, stored)
        for number, (argument, kind, stored) in enumerate(parameters)
    }
    _join_regions(op, run, list(buffers.values()), [stored for _, _, stored in parameters])
    return buffers


def _buffer(
    program: HostProgram, op: host.LaunchOp, number: int, domain: Domain, kind: kernel.BufferType, stored: bool
) -> Buffer:
    """The memory of one argument of a launch, from the first element on; a copy where the kernel runs elsewhere."""
    value, extent = op.buffers[number], domain.evaluate(kind.extent)
    tensor = program.target(value)
    assert isinstance(value.type, TensorType)
    if value.type.element != kind.element:
        raise InterpretationError(f"{describe(op)}: argument {number} is {value.type}, not {kind}")
    available = _elements(program, tensor)
    if tensor.numel() and extent > available:
        raise OutOfBoundsError(
            f"{describe(op)}: argument {number} has {available} elements, the kernel may use {extent}"
        )
    count = max(0, min(int(extent), available))
    memory = program.memory(tensor)
    flat = tensor.as_strided((count,), (1,))
    written = None if memory is None else memory.defined(flat)
    if flat.device != domain.device:
        if stored:
            raise InterpretationError(
                f"{describe(op)}: argument {number} is not on the device of the kernel, which writes it"
            )
        flat, written = flat.to(domain.device), None if written is None else written.to(domain.device)
    return Buffer(flat, count, kind.element, written, Region(count, domain.device), number=number)


def _join_regions(op: host.LaunchOp, run: Launch, buffers: list[Buffer], stored: list[bool]) -> None:
    """Let buffers on one storage share a region, so that accesses to one place are seen as such."""
    by_storage: dict[int, list[Buffer]] = {}
    for buffer in buffers:
        if buffer.extent:
            by_storage.setdefault(buffer.flat.untyped_storage()._cdata, []).append(buffer)
    shared: set[Region] = set()
    for group in by_storage.values():
        if len(group) == 1 or not any(stored[b.number] for b in group):
            continue
        if len({b.flat.dtype for b in group}) > 1:
            raise InterpretationError(f"{describe(op)}: arguments share memory with different element types")
        size = max(first_element(b.flat) + b.flat.numel() for b in group)
        region = Region(size, group[0].flat.device)
        shared.add(region)
        for buffer in group:
            buffer.region, buffer.origin = region, first_element(buffer.flat)
    if shared:
        run.overlap = AccessLog(run.function, frozenset(shared))


HANDLERS: Handlers = {
    host.EmptyOp: empty,
    host.ViewOp: view,
    host.CopyOp: copy,
    host.FreeOp: free,
    host.LaunchOp: launch,
}
