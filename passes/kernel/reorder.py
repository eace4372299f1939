"""The pass `kernel-reorder`."""

from __future__ import annotations

from math import log2

from xdsl.ir import Block

from ...dialects import kernel
from ...dialects.raw import ops_of
from ...dialects.sym import ZERO
from ..analysis.loops import Loop
from ..analysis.nests import Access, Nest
from ..analysis.sizes import Sizes
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .transforms import perfect_chain, permute_loops, reduction_chain

#: distance, in bytes, beyond which one access is nearly as far as another: a page
FAR = 4096
#: how much farther, as a part of FAR, twice such a distance is: prefetchers and tables of pages reach only so far. It
#: decides ties. Fifteen sums over axes of x * y, four axes that lie in opposite orders, took 21.7 ms together at 0 (one
#: of them 1.2 ms instead of 0.6), 20.5 at 1/64 and 20.0 to 20.1 from 1/16 to 1; copies took the same at all of these
DOUBLED = 1 / 16


class KernelReorder(KernelPass):
    """Order the loops of a nest by how far accesses move along them.

    Level: kernel.

    Precondition: loops are serial and without tiles.
    Guarantee: of loops that are directly inside each other, the one along which accesses move the farthest is
    outermost, and the one along which they move the least is innermost, so that iterations that follow each other touch
    neighbours in memory. Loops that are equal in this keep their order. The pass treats nests of `kernel.for` whose
    iterations do not depend on each other, and nested reductions of named monoids, which commute.

        kernel.for i0 in 0 to 8 { kernel.for i1 in 0 to 16 { %v = kernel.load %x[8*i1 + i0] ... } kernel.yield }
    becomes
        kernel.for i1 in 0 to 16 { kernel.for i0 in 0 to 8 { %v = kernel.load %x[8*i1 + i0] ... } kernel.yield }
    """

    name = "kernel-reorder"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Reorder loops in every kernel."""
        reorder_block(function.body.block, facts.sizes)


def reorder_block(block: Block, sizes: Sizes) -> None:
    """Reorder the nests of a block, outer ones first."""
    for op in ops_of(block):
        if not isinstance(op, Loop) or is_pinned(op):
            continue
        chain: list[Loop] = [op]
        if isinstance(op, kernel.ForOp):
            chain = [*perfect_chain(op)]
        elif isinstance(op, kernel.ReduceOp):
            chain = [*reduction_chain(op)]
        if len(chain) > 1 and _may_reorder(chain):
            _reorder(chain, sizes)
        for region in chain[-1].regions:
            reorder_block(region.block, sizes)


def _may_reorder(chain: list[Loop]) -> bool:
    if any(isinstance(op, kernel.ReduceOp) and op.combine is not None for op in chain):
        return False
    axes = {op.axis.data for op in chain}
    if any(not (op.lo.data.free_symbols | op.hi.data.free_symbols).isdisjoint(axes) for op in chain):
        return False
    stores = [op for op in chain[0].walk() if isinstance(op, kernel.StoreOp)]
    return all(store.ordered is None for store in stores)


def _reorder(chain: list[Loop], sizes: Sizes) -> None:
    """Let the loops of a chain run each other's ranges; the ops stay where they are."""
    nest = Nest.of(chain[0])
    distance = {op: sum(_distance(a, op, sizes) for a in nest.accesses) for op in chain}
    wanted = sorted(chain, key=lambda op: -distance[op])
    if wanted != chain and counter("kernel-reorder"):
        permute_loops(chain, wanted)


def _distance(access: Access, loop: Loop, sizes: Sizes) -> float:
    """How far an access moves along an axis, in bytes; beyond a page it hardly matters how far, and decides only
    between axes along which as much moves otherwise. A write counts twice: it also reads the line."""
    stride = access.stride(loop.axis.data)
    if stride is ZERO:
        return 0
    far = _mean_step(access, loop, sizes) if stride is None else abs(sizes.of(stride))
    far = FAR if far is None else far * access.bytes
    if far > FAR:
        far = FAR * (1 + DOUBLED * log2(far / FAR))
    return far * (2 if isinstance(access.op, kernel.StoreOp) else 1)


def _mean_step(access: Access, loop: Loop, sizes: Sizes) -> float | None:
    """How far an access moves a step along an axis that is divided by numbers; None where that is not known."""
    axis, trips = loop.axis.data, sizes.trips(loop)
    if axis in access.varying or access.index.has_mod or trips < 2:
        return None
    way = access.index.subs({axis: trips - 1}) - access.index.subs({axis: 0})
    try:
        length = int(way.evaluate({name: sizes.values.get(name, 0) for name in way.free_symbols}))
    except ZeroDivisionError:
        return None
    return abs(length) / (trips - 1)
