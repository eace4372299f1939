"""The pass `host-plan-memory`."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp, Signedness
from xdsl.ir import Block
from xdsl.passes import ModulePass

from ...dialects import host
from ...dialects.aten.types import TensorType, type_of
from ...dialects.machine import targets_of
from ...dialects.raw import ops_of
from ...dialects.sym import ZERO, Expr, Ranges, SymAttr, ceildiv, const, prove_le
from ...machines import HOST, eager, in_host_memory
from ...records import dataclass
from ..analysis.lifetimes import LifetimeError, Lifetimes, is_used_by_call, verify_pools
from ..analysis.live_bytes import LiveBytes
from ..analysis.sizes import Sizes
from ..analysis.tensor_bytes import bytes_of
from ..counters import counter
from ..remarks import remark
from ._device_pools import plan_on_devices
from ._known_sizes import best_place, known_behind
from ._placing import Request, place_known

#: bytes of a single tensor from which on keeping its memory saves more than it costs
WORTH_KEEPING = 1 << 16
#: bytes by which a pool may raise the peak: less than one large tensor takes by being mapped in whole pages
PAGE = 4096
_BYTE = IntegerType(8, Signedness.UNSIGNED)


@dataclass(frozen=True)
class HostPlanMemory(ModulePass):
    """Put the temporaries of a function into one pool, at offsets proved disjoint.

    Level: host.

    Precondition: nothing is freed or planned yet; programs in which something is stay as they are.
    Guarantee: where a function allocates tensors on the CPU that it does not return nor hand to an operator that may
    keep them, they lie in one pool, at offsets such that tensors that live at once do not overlap; this is proved for
    all values of the symbols. The pool's type says how many bytes it takes. It is kept between calls, so that large
    intermediates are not mapped page by page in every call. It holds from the first call on, so there is none where it
    would raise the peak of live bytes, next to what ATen allocates; nor for a single small tensor. Tensors of sizes
    that an op binds behind the place of the pool stay outside of it.
    On a GPU torch's allocator keeps memory, and a pool saves the host from asking it. One has tensors of constant
    sizes, as large ones as do not raise the bytes live anywhere by more than `SLACK`, and lives from the first of them
    to the last; of the others those share a pool that are born and die together. A recorded program asks once, so that
    `cudagraphs` leaves all as they are.

        %a = host.empty : !aten.tensor<100xf32>
        ...
        %b = host.empty : !aten.tensor<20xf32>
    becomes
        %pool = host.empty kept : !aten.tensor<448xui8>
        %a = host.empty in %pool at 0 : !aten.tensor<100xf32>
        ...
        %b = host.empty in %pool at 448 : !aten.tensor<20xf32>     (at 0 if %a is dead here)
    """

    name = "host-plan-memory"
    level: ClassVar[str] = "host"
    optional: ClassVar[bool] = True

    memory_pool: bool = True
    cudagraphs: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Plan the memory of every host function."""
        if not self.memory_pool:
            return
        targets = targets_of(op)
        for function in op.body.block.ops:
            if not isinstance(function, host.FuncOp) or function.kept is not None or _is_planned(function):
                continue  # one that runs once keeps no pool
            _plan_function(function)
            if not self.cudagraphs:
                plan_on_devices(function, targets)


def _is_planned(function: host.FuncOp) -> bool:
    """Whether memory lies in a pool, or is freed: a pipeline has been through the program."""
    ops = function.body.block.ops
    return any(isinstance(op, host.FreeOp) or (isinstance(op, host.EmptyOp) and op.offset is not None) for op in ops)


@dataclass
class _Slot:
    """A stretch of a pool for tensors of unknown sizes none of which is larger than `bytes`."""

    bytes: Expr
    requests: list[Request] = field(default_factory=list)


def _plan_function(function: host.FuncOp) -> None:
    block = function.body.block
    ranges = Ranges.of_symbols(s.data for s in function.symbols)
    sizes = Sizes.of_function(function)
    lifetimes = Lifetimes(block)
    requests = _known_in_time(block, _requests(block, lifetimes, sizes))
    try:
        _plan_pool(function, requests, ranges, sizes, lifetimes)
        verify_pools(block, ranges)
    except LifetimeError as error:
        if all(r.bytes.is_constant for r in requests):
            raise
        # the plan of symbolic sizes may be right and yet beyond what can be proved
        remark("missed", "host-plan-memory", function, f"tensors of symbolic sizes stay outside of the pool: {error}")
        _take_out(block, requests)
        known = [r for r in requests if r.bytes.is_constant]
        _plan_pool(function, known, ranges, sizes, Lifetimes(block))
        verify_pools(block, ranges)


def _take_out(block: Block, requests: list[Request]) -> None:
    """Undo a plan."""
    for request in requests:
        request.op.operands = ()
        request.op.properties.pop("offset", None)
    for op in list(block.ops):
        if isinstance(op, host.EmptyOp) and op.kept is not None and op.out.first_use is None:
            block.erase_op(op)


def _requests(block: Block, lifetimes: Lifetimes, sizes: Sizes) -> list[Request]:
    step = eager(HOST).aligned_bytes
    found: list[Request] = []
    for op in ops_of(block):
        if not isinstance(op, host.EmptyOp) or op.pool or op.kept is not None or lifetimes.escapes(op.out):
            continue
        if not in_host_memory(type_of(op.out).device) or is_used_by_call(op.out):
            continue
        size = bytes_of(type_of(op.out))
        if size is not ZERO and counter(HostPlanMemory.name):
            aligned = ceildiv(size, const(step)) * step
            start, last = lifetimes.position[op], lifetimes.last[op.out]
            found.append(Request(op, size, aligned, sizes.of(aligned), start, last))
    return found


def _known_in_time(block: Block, requests: list[Request]) -> list[Request]:
    """The requests that one pool can serve: it is allocated where their sizes are known, and before all of them."""
    behind = known_behind(block)
    place = best_place((behind(r.bytes), r.start, r.estimate) for r in requests)
    served = [r for r in requests if behind(r.bytes) <= place < r.start]
    if len(served) < len(requests):
        reason = f"tensors outside of the pool, where not all sizes are known: {len(requests) - len(served)}"
        remark("missed", HostPlanMemory.name, requests[0].op, reason)
    return served


def _plan_pool(
    function: host.FuncOp, requests: list[Request], ranges: Ranges, sizes: Sizes, lifetimes: Lifetimes
) -> None:
    """Place requests, largest first: those of known size where they fit, the others in slots behind."""
    if len(requests) < 2 and not any(r.estimate >= WORTH_KEEPING for r in requests):
        return
    ordered = sorted(requests, key=lambda r: (-r.estimate, r.start))
    known = [r for r in ordered if r.bytes.is_constant]
    total = const(place_known(known))
    for slot in _slots([r for r in ordered if not r.bytes.is_constant], ranges):
        for request in slot.requests:
            request.offset = total
        total = total + slot.bytes
    block = function.body.block
    separate = sum((r.size for r in requests), ZERO)
    figures = {"pool_bytes": str(total), "separate_bytes": str(separate)}
    if _raises_peak(lifetimes, requests, sizes.of(total), sizes):
        remark("missed", "host-plan-memory", function, "a pool would raise the peak of live bytes", **figures)
        return
    pool = host.EmptyOp.of(TensorType.get((total,), _BYTE, None, HOST), location=function.location, kept=True)
    pool.out.name_hint = "pool"
    first = min(requests, key=lambda r: r.start).op
    block.insert_op_before(pool, first)
    for request in requests:
        request.op.operands = (pool.out,)
        request.op.properties["offset"] = SymAttr.of(request.offset)
    remark("analysis", "host-plan-memory", function, f"tensors that share one pool: {len(requests)}", **figures)


def _raises_peak(lifetimes: Lifetimes, requests: list[Request], pool: int, sizes: Sizes) -> bool:
    """Whether a pool takes, next to the tensors outside of it, more than all tensors do by themselves."""
    outside = LiveBytes(lifetimes, sizes, {r.op.out for r in requests})
    return pool + outside.peak > LiveBytes(lifetimes, sizes).peak + PAGE


def _slots(requests: list[Request], ranges: Ranges) -> list[_Slot]:
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
