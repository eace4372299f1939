"""The pass `host-plan-memory`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp, Signedness
from xdsl.ir import Block
from xdsl.passes import ModulePass

from ...dialects import host
from ...dialects.aten.types import TensorType
from ...dialects.sym import ZERO, Expr, Ranges, SymAttr, ceildiv, const, prove_le
from ..counters import counter
from ..kernel.cost import Sizes
from ..remarks import remark
from ._take_over import sizes_of
from .lifetimes import Lifetimes, verify_pools
from .sizes import bytes_of

#: bytes to which each tensor in a pool is aligned: a cache line, and enough for every vector access
ALIGNMENT = 64
_BYTE = IntegerType(8, Signedness.UNSIGNED)


@dataclass(frozen=True)
class HostPlanMemory(ModulePass):
    """Put the temporaries of a function into one pool, at offsets proved disjoint.

    Level: host.

    Precondition: nothing is freed or planned yet.
    Guarantee: where a function allocates two or more tensors on a device that it does not return, they lie in one
    pool, at offsets such that tensors that live at once do not overlap; this is proved for all values of the symbols.
    The pool's type says how many bytes it takes.

        %a = host.empty : !aten.tensor<100xf32>
        ...
        %b = host.empty : !aten.tensor<20xf32>
    becomes
        %pool = host.empty : !aten.tensor<448xui8>
        %a = host.empty in %pool at 0 : !aten.tensor<100xf32>
        ...
        %b = host.empty in %pool at 448 : !aten.tensor<20xf32>     (at 0 if %a is dead here)
    """

    name = "host-plan-memory"
    level: ClassVar[str] = "host"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plan the memory of every host function."""
        for function in op.body.block.ops:
            if isinstance(function, host.FuncOp):
                _plan_function(function)


@dataclass
class _Request:
    """A tensor to place: its size in bytes, the same rounded up, an estimate of that, and the ops between which it
    lives, both included."""

    op: host.EmptyOp
    size: Expr
    bytes: Expr
    estimate: int
    start: int
    last: int
    offset: Expr = ZERO

    def overlaps(self, other: _Request) -> bool:
        """Whether both live at once."""
        return self.start <= other.last and other.start <= self.last


@dataclass
class _Slot:
    """A stretch of a pool for tensors of unknown sizes none of which is larger than `bytes`."""

    bytes: Expr
    requests: list[_Request] = field(default_factory=list)


def _plan_function(function: host.FuncOp) -> None:
    block = function.body.block
    ranges = Ranges.of_symbols(s.data for s in function.symbols)
    sizes = sizes_of(function)
    by_device: dict[str, list[_Request]] = {}
    for request in _requests(block, sizes):
        by_device.setdefault(_tensor(request.op).device, []).append(request)
    for device, requests in by_device.items():
        if len(requests) > 1:
            _plan_pool(function, device, requests, ranges)
    verify_pools(block, ranges)


def _requests(block: Block, sizes: Sizes) -> list[_Request]:
    lifetimes = Lifetimes(block)
    found: list[_Request] = []
    for op in block.ops:
        if not isinstance(op, host.EmptyOp) or op.pool or lifetimes.escapes(op.out):
            continue
        size = bytes_of(_tensor(op))
        if size is not ZERO and counter(HostPlanMemory.name):
            aligned = ceildiv(size, const(ALIGNMENT)) * ALIGNMENT
            start, last = lifetimes.position[op], lifetimes.last[op.out]
            found.append(_Request(op, size, aligned, sizes.of(aligned), start, last))
    return found


def _tensor(op: host.EmptyOp) -> TensorType:
    assert isinstance(op.out.type, TensorType)
    return op.out.type


def _plan_pool(function: host.FuncOp, device: str, requests: list[_Request], ranges: Ranges) -> None:
    """Place requests, largest first: those of known size where they fit, the others in slots behind."""
    ordered = sorted(requests, key=lambda r: (-r.estimate, r.start))
    known = [r for r in ordered if r.bytes.is_constant]
    total = const(_place_known(known))
    for slot in _slots([r for r in ordered if not r.bytes.is_constant], ranges):
        for request in slot.requests:
            request.offset = total
        total = total + slot.bytes
    block = function.body.block
    pool = host.EmptyOp.of(TensorType.get((total,), _BYTE, None, device), location=function.location)
    pool.out.name_hint = "pool"
    first = min(requests, key=lambda r: r.start).op
    block.insert_op_before(pool, first)
    for request in requests:
        request.op.operands = (pool.out,)
        request.op.properties["offset"] = SymAttr.of(request.offset)
    separate = sum((r.size for r in requests), ZERO)
    remark(
        "analysis", "host-plan-memory", function, f"{len(requests)} tensors on {device} share one pool",
        pool_bytes=str(total), separate_bytes=str(separate),
    )  # fmt: skip


def _place_known(requests: list[_Request]) -> int:
    """Give each request the lowest offset at which nothing that lives with it lies; the bytes needed."""
    placed: list[tuple[int, int, _Request]] = []
    end = 0
    for request in requests:
        size, offset = request.estimate, 0
        for start, stop in sorted((start, stop) for start, stop, other in placed if other.overlaps(request)):
            if offset + size <= start:
                break
            offset = max(offset, stop)
        request.offset = const(offset)
        placed.append((offset, offset + size, request))
        end = max(end, offset + size)
    return end


def _slots(requests: list[_Request], ranges: Ranges) -> list[_Slot]:
    """Put each request into the first slot that is surely large enough and free while it lives."""
    slots: list[_Slot] = []
    for request in requests:
        for slot in slots:
            if any(other.overlaps(request) for other in slot.requests):
                continue
            if request.bytes is slot.bytes or prove_le(request.size, slot.bytes, ranges):
                slot.requests.append(request)
                break
        else:
            slots.append(_Slot(request.bytes, [request]))
    return slots
