"""A pool for temporaries of constant sizes on a GPU, where the host asks torch's allocator once instead of for each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import IntegerType, Signedness
from xdsl.ir import Block

from ...dialects import host
from ...dialects.aten.types import TensorType, type_of
from ...dialects.machine import TargetsAttr
from ...dialects.sym import Ranges, SymAttr, const
from ...machines import GpuTarget, in_host_memory
from ..analysis.lifetimes import Lifetimes, is_used_by_call, verify_pools
from ..analysis.live_bytes import LiveBytes
from ..analysis.sizes import Sizes
from ..analysis.tensor_bytes import bytes_of
from ..counters import counter
from ..remarks import remark
from ._placing import Request, place_known

#: bytes to which tensors are aligned, as torch's allocator aligns them
ALIGNMENT = 512
#: bytes by which a pool may raise what is live: half of the least that torch's allocator takes from the driver
SLACK = 1 << 20

PASS = "host-plan-memory"


def plan_on_devices(function: host.FuncOp, targets: TargetsAttr) -> None:
    """Plan a pool for each GPU that a function allocates on."""
    block = function.body.block
    lifetimes, sizes = Lifetimes(block), Sizes.of_function(function)
    requests: dict[str, list[Request]] = {}
    for device, request in _requests(block, lifetimes, targets):
        requests.setdefault(device, []).append(request)
    pools = {device: _chosen(each, lifetimes, sizes) for device, each in requests.items()}
    for device, (chosen, total) in pools.items():
        if chosen:
            _insert(function, device, chosen, total)
            remark(
                "analysis", PASS, function, f"tensors on {device} that share one pool: {len(chosen)}",
                pool_bytes=str(total), separate_bytes=str(sum(r.estimate for r in chosen)),
            )  # fmt: skip
    if any(chosen for chosen, _ in pools.values()):
        verify_pools(block, Ranges.of_symbols(s.data for s in function.symbols))


def _requests(block: Block, lifetimes: Lifetimes, targets: TargetsAttr) -> Iterator[tuple[str, Request]]:
    """What can lie in a pool, by device."""
    for op in block.ops:
        if not isinstance(op, host.EmptyOp) or op.pool or op.kept is not None or lifetimes.escapes(op.out):
            continue
        kind = type_of(op.out)
        if in_host_memory(kind.device) or not isinstance(targets.target(kind.device), GpuTarget):
            continue
        size = bytes_of(kind).as_int()
        if not size or is_used_by_call(op.out) or not counter(PASS):
            continue
        aligned = -(-size // ALIGNMENT) * ALIGNMENT
        start, last = lifetimes.position[op], lifetimes.last[op.out]
        yield kind.device, Request(op, const(size), const(aligned), aligned, start, last)


def _chosen(requests: Sequence[Request], lifetimes: Lifetimes, sizes: Sizes) -> tuple[list[Request], int]:
    """The requests that one pool serves, with their offsets, and its bytes: without the largest until none is held."""
    before = LiveBytes(lifetimes, sizes)
    chosen = list(requests)
    while len(chosen) > 1:
        total = place_known(sorted(chosen, key=lambda r: (-r.estimate, r.start)))
        first, last = min(r.start for r in chosen), max(r.last for r in chosen)
        outside = LiveBytes(lifetimes, sizes, {r.op.out for r in chosen})
        if all(outside.at[k] + total <= before.until[k] + SLACK for k in range(first, last + 1)):
            return chosen, total
        limit = max(request.estimate for request in chosen) // 2
        chosen = [request for request in chosen if request.estimate <= limit]
    return [], 0


def _insert(function: host.FuncOp, device: str, chosen: Sequence[Request], total: int) -> None:
    first = min(chosen, key=lambda r: r.start).op
    byte = IntegerType(8, Signedness.UNSIGNED)
    pool = host.EmptyOp.of(TensorType.get((const(total),), byte, None, device), location=first.location)
    pool.out.name_hint = "pool"
    function.body.block.insert_op_before(pool, first)
    for request in chosen:
        request.op.operands = (pool.out,)
        request.op.properties["offset"] = SymAttr.of(request.offset)
