"""A pool for temporaries of constant sizes on a GPU, where the host asks torch's allocator once instead of for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Block, Operation

from ...dialects import host
from ...dialects.aten.types import TensorType, type_of
from ...dialects.machine import TargetsAttr
from ...dialects.raw import ops_of
from ...dialects.sym import Ranges, SymAttr, const
from ...machines import GpuTarget, eager, in_host_memory
from ..analysis.lifetimes import Lifetimes, is_used_by_call, verify_pools
from ..analysis.live_bytes import LiveBytes
from ..analysis.sizes import Sizes
from ..analysis.tensor_bytes import bytes_of
from ..counters import counter
from ..remarks import remark
from ._placing import Request, place_known

#: bytes by which a pool may raise what is live: half of the least that torch's allocator takes from the driver
SLACK = 1 << 20

PASS = "host-plan-memory"


def plan_on_devices(function: host.FuncOp, targets: TargetsAttr) -> None:
    """Plan pools for each GPU that a function allocates on.

    One is for tensors that may be held from the first to the last of them; then those that are born and die together
    share one, which holds nothing longer.
    """
    block = function.body.block
    empties = [op for op in ops_of(block) if isinstance(op, host.EmptyOp) and _is_on_device(op, targets)]
    if not empties:
        return
    lifetimes, sizes = Lifetimes(block), Sizes.of_function(function)
    requests: dict[str, list[Request]] = {}
    for device, request in _requests(empties, lifetimes):
        requests.setdefault(device, []).append(request)
    planned = False
    for device, each in requests.items():
        held = _held(each, lifetimes, sizes)
        together = _together([request for request in each if request not in held], block)
        for chosen in filter(None, (held, *together)):
            total = place_known(sorted(chosen, key=lambda r: (-r.estimate, r.start)))
            _insert(function, device, chosen, total)
            planned = True
            remark(
                "analysis", PASS, function, f"tensors on {device} that share one pool: {len(chosen)}",
                pool_bytes=str(total), separate_bytes=str(sum(r.estimate for r in chosen)),
            )  # fmt: skip
    if planned:
        verify_pools(block, Ranges.of_symbols(s.data for s in function.symbols))


def _is_on_device(op: host.EmptyOp, targets: TargetsAttr) -> bool:
    device = type_of(op.out).device
    return not in_host_memory(device) and isinstance(targets.target(device), GpuTarget)


def _requests(empties: Sequence[host.EmptyOp], lifetimes: Lifetimes) -> Iterator[tuple[str, Request]]:
    """What can lie in a pool, by device."""
    for op in empties:
        if op.pool or op.kept is not None or lifetimes.escapes(op.out):
            continue
        kind = type_of(op.out)
        size = bytes_of(kind).as_int()
        if not size or is_used_by_call(op.out) or not counter(PASS):
            continue
        step = eager(kind.device).aligned_bytes
        aligned = -(-size // step) * step
        start, last = lifetimes.position[op], lifetimes.last[op.out]
        yield kind.device, Request(op, const(size), const(aligned), aligned, start, last)


def _held(requests: Sequence[Request], lifetimes: Lifetimes, sizes: Sizes) -> list[Request]:
    """The requests that one pool serves: without the largest until it holds too little to matter, at all of its ops."""
    live = LiveBytes(lifetimes, sizes)
    chosen = list(requests)
    while len(chosen) > 1:
        total = place_known(sorted(chosen, key=lambda r: (-r.estimate, r.start)))
        first, last = min(r.start for r in chosen), max(r.last for r in chosen)
        changes = [0] * (last + 2)
        for start, end, size in [(first, last, total), *((r.start, r.last, -live.of(r.op.out)) for r in chosen)]:
            changes[start] += size
            changes[end + 1] -= size
        more = list(accumulate(changes))
        if all(live.at[k] + more[k] <= live.until[k] + SLACK for k in range(first, last + 1)):
            return chosen
        limit = max(request.estimate for request in chosen) // 2
        chosen = [request for request in chosen if request.estimate <= limit]
    return []


def _together(requests: Sequence[Request], block: Block) -> list[list[Request]]:
    """The requests that are allocated with nothing done in between, and die at one op; without those alone."""
    done = [op for op in block.ops if not isinstance(op, host.EmptyOp | host.ViewOp)]
    behind = {op: number for number, op in enumerate(done)}
    groups: dict[tuple[int, int], list[Request]] = {}
    for request in requests:
        following: Operation | None = request.op.next_op
        while following is not None and following not in behind:
            following = following.next_op
        groups.setdefault((behind[following] if following is not None else -1, request.last), []).append(request)
    return [group for group in groups.values() if len(group) > 1]


def _insert(function: host.FuncOp, device: str, chosen: Sequence[Request], total: int) -> None:
    first = min(chosen, key=lambda r: r.start).op
    byte = IntegerType(8, Signedness.UNSIGNED)
    pool = host.EmptyOp.of(TensorType.get((const(total),), byte, None, device), location=first.location)
    pool.out.name_hint = "pool"
    function.body.block.insert_op_before(pool, first)
    for request in chosen:
        request.op.operands = (pool.out,)
        request.op.properties["offset"] = SymAttr.of(request.offset)
