"""The kernel level: loops over axes, buffers with linear addresses, and everything that can go wrong with them.

Iterations that the mapping calls independent run side by side, as lanes of torch tensors, and every access is
entered in the loop's `AccessLog`, which finds those that are not. A serial loop is first tried the same way; when
its iterations turn out to depend on each other it is undone and run in order, block by block of its tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, ClassVar, TypeVar

import torch
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import kernel
from ...records import dataclass
from ..limits import check_bytes
from .domain import LANES
from .errors import InterpretationError, RaceError, UninitialisedReadError, describe
from .frame import Frame, evaluate_index
from .places import combine_at, put
from .precision import canary
from .races import AccessLog, PendingStores, Region
from .reductions import Accumulator, Scanner

Tensor = torch.Tensor
Loop = kernel.ForOp | kernel.ReduceOp | kernel.ScanOp
T = TypeVar("T")

#: mappings whose iterations may run at once
INDEPENDENT = frozenset({"grid", "parallel", "vector"})


def _is_only_copied(op: kernel.LoadOp) -> bool:
    """Whether all that a value is for is to be stored as it is, where it was loaded."""
    users = [use.operation for use in op.value.uses]
    return all(
        isinstance(user, kernel.StoreOp)
        and user.parent is op.parent
        and user.kind.data == "set"
        and sum(operand is op.value for operand in user.operands) == 1
        and user.value is op.value
        for user in users
    )


def _has_threads(function: kernel.FuncOp) -> bool:
    """Whether each program is run by several warps, and works on tiles: all threads run a scalar program alike."""
    loops = (op for op in function.walk() if isinstance(op, Loop))
    return function.num_warps is not None and any(op.tile is not None and op.tile.value.data > 1 for op in loops)


@dataclass(eq=False)
class Buffer:
    """Memory that a kernel addresses by element."""

    flat: Tensor
    """All elements, of all lanes for a local buffer."""
    extent: int | Tensor
    """How many of them one lane may address."""
    element: Attribute
    written: Tensor | None
    """Which elements of `flat` are defined; None: all."""
    region: Region
    origin: int = 0
    """Place of the first element in the region."""
    lane: Tensor | None = None
    """First element of each lane, for a local buffer."""
    number: int = -1
    """Position among the kernel's parameters."""

    def places(self, index: Tensor) -> Tensor:
        """Positions in `flat`."""
        return index if self.lane is None else index + self.lane


@dataclass(frozen=True)
class Undefined:
    """A read: the places, and in which lanes nothing had been written there."""

    op: kernel.LoadOp | kernel.StoreOp
    places: Tensor
    lanes: Tensor


@dataclass(eq=False)
class Launch:
    """One run of one kernel."""

    function: kernel.FuncOp
    status: int = 0
    """Code of the first assert that failed."""
    overlap: AccessLog | None = None
    """Record of which parameter touched which place, when the memory of parameters overlaps."""
    pending: PendingStores | None = field(init=False)
    """What programs of several warps stored since their last barrier."""
    undefined: dict[SSAValue, Undefined] = field(default_factory=dict)
    """Of values that are only stored elsewhere, what was read where nothing had been written."""

    def __post_init__(self) -> None:
        self.pending = PendingStores() if _has_threads(self.function) else None


@dataclass(frozen=True)
class KernelFrame(Frame):
    """A loop body of a kernel."""

    launch: Launch = field(kw_only=True)
    logs: tuple[tuple[AccessLog, Tensor], ...] = ()
    """Records of the enclosing loops, outermost first, each with the iteration that a lane is of."""

    def zero_divisor(self, op: Operation, lanes: Tensor) -> None:
        """Report a division by zero unless an assert has failed, after which values are arbitrary."""
        if not self.launch.status:
            super().zero_divisor(op, lanes)

    def load(self, op: kernel.LoadOp) -> None:
        """An element of a buffer in each lane."""
        buffer: Buffer = self.values[op.buffer]
        mask = None if op.mask is None else self.scalar(op.mask)
        (index,) = self.check_indices(op, self.indices(op.map.data, op.dynamic), (buffer.extent,), mask)
        places = buffer.places(index)
        elements = self.machine.precision.load(buffer.flat)
        if elements.numel():
            self._look_for_undefined(op, buffer, places, mask)
            self._log(op, buffer, places, mask, "read")
            self._meet(op, buffer, places, mask)
            # by a list of places: one place alone would be a view, which later stores change
            scalars = elements[places.reshape(-1)].reshape(places.shape)
        else:  # no lane wants an element, or the check would have raised
            scalars = elements.new_zeros(())
        if mask is not None:
            assert op.other is not None
            scalars = torch.where(mask, scalars, self.scalar(op.other))
        self.values[op.value] = scalars

    def store(self, op: kernel.StoreOp) -> None:
        """Write, or combine with, an element of a buffer in each lane."""
        buffer: Buffer = self.values[op.buffer]
        mask = None if op.mask is None else self.scalar(op.mask)
        (index,) = self.check_indices(op, self.indices(op.map.data, op.dynamic), (buffer.extent,), mask)
        places = buffer.places(index)
        if not buffer.flat.numel():
            return
        kind = op.kind.data
        if kind != "set":
            self._look_for_undefined(op, buffer, places, mask)
        self._log(op, buffer, places, mask, "write" if op.atomic is None else "update")
        if kind != "set" and op.atomic is None:
            self._meet(op, buffer, places, mask)
        if self.launch.pending is not None and buffer.lane is None:
            self.launch.pending.store(op, buffer.region, self._select(places, mask) + buffer.origin)
        where = self._select(places, mask)
        value = self.machine.precision.store(self._select(self.scalar(op.value), mask), buffer.element)
        if kind == "set":
            put(buffer.flat, where, value)
        else:
            unique, inverse = torch.unique(where, return_inverse=True)
            put(buffer.flat, unique, combine_at(buffer.flat[unique], inverse, value, kind))
        undefined = self.launch.undefined.get(op.value)
        if buffer.written is not None:
            buffer.written[where] = True if undefined is None else ~self._select(undefined.lanes, mask)
        elif undefined is not None:
            self._refuse(undefined, mask)

    def _select(self, lanes: Tensor, mask: Tensor | None) -> Tensor:
        """Values of the lanes that exist and that a mask takes, in one dimension."""
        wanted = self.wanted(mask)
        spread = lanes.expand(self.domain.shape)
        return spread.reshape(-1) if wanted is None else spread[wanted.expand(self.domain.shape)]

    def _look_for_undefined(
        self, op: kernel.LoadOp | kernel.StoreOp, buffer: Buffer, places: Tensor, mask: Tensor | None
    ) -> None:
        """Refuse to read what nothing has written, but to copy it: then the copy is not written either.

        A program may copy an empty tensor; a local buffer is no tensor of the program.
        """
        if buffer.written is None:
            return
        lanes = ~buffer.written[places]
        found = Undefined(op, places, lanes if mask is None else lanes & mask)
        if buffer.lane is None and isinstance(op, kernel.LoadOp) and _is_only_copied(op):
            self.launch.undefined[op.value] = found
        else:
            self._refuse(found, mask)

    def _refuse(self, found: Undefined, mask: Tensor | None) -> None:
        """Raise where a lane that exists, and that a mask takes, reads what nothing has written."""
        wanted = self.wanted(mask)
        wrong = found.lanes if wanted is None else found.lanes & wanted
        if self.machine.strict and bool(wrong.any()):
            place = int(found.places.expand(wrong.shape)[wrong][0])
            where = self.where(wrong)
            raise UninitialisedReadError(f"{describe(found.op)}: reads element {place}, never written{where}")

    def _log(self, op: Operation, buffer: Buffer, places: Tensor, mask: Tensor | None, how: str) -> None:
        logs = [(log, lanes) for log, lanes in self.logs if buffer.region in log.regions]
        if self.launch.overlap is not None and buffer.region in self.launch.overlap.regions:
            logs.append((self.launch.overlap, torch.tensor(buffer.number, device=self.domain.device)))
        if not logs:
            return
        where = self._select(places, mask) + buffer.origin
        for log, lanes in logs:
            iterations = self._select(lanes, mask)
            if how == "read":
                log.read(op, buffer.region, where, iterations)
            else:
                log.write(op, buffer.region, where, iterations, is_atomic=how == "update")

    def _meet(self, op: kernel.LoadOp | kernel.StoreOp, buffer: Buffer, places: Tensor, mask: Tensor | None) -> None:
        """Refuse to read what another thread may have stored since the last barrier."""
        if self.launch.pending is not None and buffer.lane is None:
            self.launch.pending.load(op, buffer.region, self._select(places, mask) + buffer.origin)

    def barrier(self, op: kernel.BarrierOp) -> None:
        """The threads of each program meet."""
        if self.launch.pending is not None:
            self.launch.pending.clear()

    def wait(self, op: kernel.AwaitOp) -> None:
        """Launches run one after the other here."""

    def release(self, op: kernel.ReleaseOp) -> None:
        """No launch begins before this one has ended."""

    def local(self, op: kernel.LocalOp) -> None:
        """A buffer of canaries for each lane."""
        kind = op.buffer.type
        assert isinstance(kind, kernel.BufferType)
        extent = self.domain.evaluate(kind.extent)
        most = int(extent.max()) if isinstance(extent, Tensor) else extent
        dtype, device = self.machine.precision.stored(kind.element), self.domain.device
        count = most * self.domain.lanes
        check_bytes(count * dtype.itemsize)
        self.values[op.buffer] = Buffer(
            torch.full((count,), canary(dtype), dtype=dtype, device=device),
            extent,
            kind.element,
            torch.zeros(count, dtype=torch.bool, device=device),
            Region(count, device),
            lane=torch.arange(self.domain.lanes, device=device).reshape(self.domain.shape) * most,
        )

    def check(self, op: kernel.AssertOp) -> None:
        """Set the status when a lane fails; the kernel runs on."""
        if not self.launch.status and bool(self.existing(~self.scalar(op.condition)).any()):
            self.launch.status = int(op.code.data.as_int() or 0)

    def loop(self, op: kernel.ForOp) -> None:
        """Run `kernel.for`."""

        def attempt(bodies: Iterator[KernelFrame]) -> None:
            for body in bodies:
                body.run(op.body.block)

        _execute(self, op, attempt)

    def reduce(self, op: kernel.ReduceOp) -> None:
        """Run `kernel.reduce`."""

        def attempt(bodies: Iterator[KernelFrame]) -> tuple[Tensor, ...]:
            total = Accumulator(self, op)
            for body in bodies:
                total.add(body, body.run(op.body.block))
            return total.result()

        self.bind(op, _execute(self, op, attempt))

    def scan(self, op: kernel.ScanOp) -> None:
        """Run `kernel.scan`."""

        def attempt(bodies: Iterator[KernelFrame]) -> None:
            scanner = Scanner(self, op)
            for body in bodies:
                prefix = scanner.add(body, body.run(op.body.block))
                body.values.update(zip(op.then.block.args, prefix, strict=True))
                body.run(op.then.block)

        _execute(self, op, attempt)

    HANDLERS: ClassVar[Mapping[type[Operation], Callable[[Any, Any], None]]] = {
        kernel.LoadOp: load,
        kernel.StoreOp: store,
        kernel.LocalOp: local,
        kernel.IndexOp: evaluate_index,
        kernel.AssertOp: check,
        kernel.BarrierOp: barrier,
        kernel.AwaitOp: wait,
        kernel.ReleaseOp: release,
        kernel.ForOp: loop,
        kernel.ReduceOp: reduce,
        kernel.ScanOp: scan,
    }


def _execute(frame: KernelFrame, op: Loop, attempt: Callable[[Iterator[KernelFrame]], T]) -> T:
    """Give `attempt` the frames in which the body of a loop runs, in order, and return what it returns."""
    written = _written_buffers(frame, op)
    if not written:
        return attempt(_pieces(frame, op, None))
    log = AccessLog(op, frozenset(b.region for b in written))
    if op.mapping.data in INDEPENDENT:
        return attempt(_pieces(frame, op, log))
    before = _Snapshot(frame, written)
    try:
        return attempt(_pieces(frame, op, log))
    except InterpretationError as error:
        if isinstance(error, RaceError) and error.log is not log:
            raise
        before.restore()
    return attempt(_blocks(frame, op, log.regions))


def _written_buffers(frame: KernelFrame, op: Loop) -> list[Buffer]:
    """Buffers from outside that a loop's body stores to."""
    stored = {inner.buffer: None for inner in op.walk() if isinstance(inner, kernel.StoreOp)}
    return [frame.values[b] for b in stored if b in frame.values]


def _trip_count(frame: KernelFrame, op: Loop) -> tuple[int | Tensor, int | Tensor, int]:
    """Lower and upper bound in each lane, and the largest number of iterations."""
    lo, hi = frame.domain.evaluate(op.lo.data), frame.domain.evaluate(op.hi.data)
    if isinstance(op, kernel.ReduceOp) and all(place in frame.values for place in op.within):
        for first, last in [op.within] if op.within else []:
            lo = torch.maximum(frame.scalar(first), torch.as_tensor(lo))
            hi = torch.minimum(frame.scalar(last), torch.as_tensor(hi))
    count = hi - lo
    return lo, hi, max(0, int(count.max()) if isinstance(count, Tensor) else count)


def _inner_lanes(frame: KernelFrame, op: Operation) -> int:
    """Lanes that loops inside `op` add to each of its own, as far as sizes are known."""
    most = 1
    for region in op.regions:
        for inner in region.block.ops:
            own = 1
            if isinstance(inner, Loop):
                known = (inner.lo.data.free_symbols | inner.hi.data.free_symbols) <= frame.domain.symbols.keys()
                own = max(1, _trip_count(frame, inner)[2]) if known else 1
            most = max(most, own * _inner_lanes(frame, inner))
    return most


def _body(frame: KernelFrame, op: Loop, steps: tuple[int, int], log: AccessLog | None) -> KernelFrame:
    """The frame for some iterations of a loop, which are told apart in `log`."""
    lo, hi, count = _trip_count(frame, op)
    ragged = isinstance(lo, Tensor) or isinstance(hi, Tensor)
    domain = frame.domain.along(op.axis.data, lo, steps, hi if ragged else None)
    inner = frame.inside(domain)
    if log is None:
        return inner
    outer = torch.arange(frame.domain.lanes, device=domain.device).reshape(frame.domain.shape)
    step = torch.arange(*steps, device=domain.device).reshape(-1, *[1] * len(frame.domain.shape))
    return replace(inner, logs=(*frame.logs, (log, outer * count + step)))


def _pieces(frame: KernelFrame, op: Loop, log: AccessLog | None) -> Iterator[KernelFrame]:
    """All iterations side by side, in pieces that fit in memory and share one log."""
    count = _trip_count(frame, op)[2]
    size = max(1, 4 * LANES // (frame.domain.lanes * _inner_lanes(frame, op)))
    for first in range(0, count, size):
        yield _body(frame, op, (first, min(first + size, count)), log)


def _blocks(frame: KernelFrame, op: Loop, regions: frozenset[Region]) -> Iterator[KernelFrame]:
    """Iterations in order, those of one tile side by side."""
    count = _trip_count(frame, op)[2]
    size = 1 if op.tile is None else op.tile.value.data
    for first in range(0, count, size):
        log = AccessLog(op, regions) if size > 1 else None
        yield _body(frame, op, (first, min(first + size, count)), log)


class _Snapshot:
    """State to return to when a loop must be run again."""

    def __init__(self, frame: KernelFrame, written: list[Buffer]) -> None:
        self._launch = frame.launch
        self._status = frame.launch.status
        logs = [log for log, _ in frame.logs]
        if frame.launch.overlap is not None:
            logs.append(frame.launch.overlap)
        self._logs = [(log, log.saved()) for log in logs]
        self._pending = None if frame.launch.pending is None else frame.launch.pending.saved()
        self._contents = [(b, b.flat.clone(), None if b.written is None else b.written.clone()) for b in written]

    def restore(self) -> None:
        """Undo what happened since."""
        self._launch.status = self._status
        for log, state in self._logs:
            log.restore(state)
        if self._launch.pending is not None and self._pending is not None:
            self._launch.pending.restore(self._pending)
        for buffer, flat, written in self._contents:
            buffer.flat.copy_(flat)
            if buffer.written is not None and written is not None:
                buffer.written.copy_(written)


def buffer_parameters(function: kernel.FuncOp) -> list[tuple[SSAValue, kernel.BufferType, bool]]:
    """Each parameter of a kernel with its type and whether the kernel writes it."""
    stored = {op.buffer for op in function.walk() if isinstance(op, kernel.StoreOp)}
    found: list[tuple[SSAValue, kernel.BufferType, bool]] = []
    for argument in function.body.block.args:
        assert isinstance(argument.type, kernel.BufferType)
        found.append((argument, argument.type, argument in stored))
    return found
