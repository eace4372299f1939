"""The pass `kernel-map`."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr

from ...dialects import kernel
from ...machines import CpuTarget, GpuTarget
from ...records import dataclass
from ..analysis.dependences import keeps_apart
from ..analysis.effects import independent_nests, meeting_stores
from ..analysis.loops import loops_in, named_in_bounds, ops_in
from ..analysis.sizes import Sizes
from ..counters import counter
from .gpu_blocks import GpuBlocks, columns_side_by_side
from .gpu_legality import is_serial
from .gpu_nest import GpuNest
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .scheduled import untiled
from .transforms import perfect_chain, permute_loops, set_mapping


@dataclass(frozen=True)
class KernelMap(KernelPass, kernels=untiled):
    """Say which iterations run at once: on processors of a GPU, or in threads of a CPU (mapping).

    Level: kernel.

    Precondition: all loops are serial and without tiles; iterations of a `kernel.for` are independent unless a store
    in it is `ordered`, `atomic`, or to a local buffer from outside, which carries sums. Kernels that are tiled stay as
    they are, and so do nests that have a mapping.
    Guarantee: for a GPU, the loops of each nest that may have programs of its own are `grid`. Where the lanes of a
    program lie best along one of them, it has a tile, as many lanes as belong side by side, and the local buffers
    inside are `columnwise`; else lanes will lie along inner axes (`kernel-vectorize`). For a CPU, loops of a perfect
    nest are `parallel`, those along which no stores meet; the others stay serial, and are inside of them. How many of
    them run in threads is for `kernel-choose-threads` to say. A kernel that is launched on CPU tensors is mapped for
    the CPU in any case. For a target of one core all loops stay serial.

        kernel.for i0 in 0 to s0 { kernel.for i1 in 0 to 4096 { ... } }
    becomes, for `cpp` and for `cuda:90`,
        kernel.for i0 in 0 to s0 map parallel { kernel.for i1 in 0 to 4096 map parallel { ... } }
        kernel.for i0 in 0 to s0 map grid { kernel.for i1 in 0 to 4096 map grid { ... } }
    """

    name = "kernel-map"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Map every kernel that is not tiled yet."""
        nests = [nest for nest in function.body.block.ops if isinstance(nest, kernel.ForOp)]
        if isinstance(facts.target, CpuTarget):
            for nest in filter(_unmapped, nests if facts.target.cores > 1 else ()):
                _spread_over_threads(nest)
        elif isinstance(facts.target, GpuTarget) and nests and not is_serial(function):
            _spread_over_programs(function, nests, facts.target, facts.sizes)


def _unmapped(nest: kernel.ForOp) -> bool:
    return (
        not is_pinned(nest)
        and nest.mapping.data == "serial"
        and all(op.mapping.data == "serial" for op in loops_in(nest.body.block))
    )


def _spread_over_threads(op: kernel.ForOp) -> None:
    """Call the loops of a perfect nest parallel, and bring those outside along which no stores meet."""
    chain = perfect_chain(op)
    if not named_in_bounds(chain).isdisjoint(loop.axis.data for loop in chain):
        chain = [op]  # one says how far another runs: they cannot change places
    stores = [*meeting_stores(op), *_carrying_stores(op)]
    apart = [loop for loop in chain if all(keeps_apart(store, loop) for store in stores)] if stores else chain
    if not apart or not counter(KernelMap.name):
        return
    if len(apart) < len(chain):
        permute_loops(chain, [*apart, *(loop for loop in chain if loop not in apart)])
    for loop in chain[: len(apart)]:
        set_mapping(loop, "parallel")


def _carrying_stores(op: kernel.ForOp) -> list[kernel.StoreOp]:
    """Stores to local buffers that are there before a loop: its iterations may hand something on in them."""
    stores = (inner for inner in ops_in(op) if isinstance(inner, kernel.StoreOp))
    return [s for s in stores if isinstance(local := s.buffer.owner, kernel.LocalOp) and not op.is_ancestor(local)]


def _spread_over_programs(function: kernel.FuncOp, nests: list[kernel.ForOp], target: GpuTarget, sizes: Sizes) -> None:
    """Give nests that depend on nothing beside them programs of their own."""
    apart = independent_nests(function.body.block)
    for op in (each for each in nests if each in apart and _unmapped(each)):
        if not counter(KernelMap.name):
            continue
        nest = GpuNest(function, op, target, sizes, GpuBlocks.of(target))
        for loop in nest.chain:
            set_mapping(loop, "grid")
        column = None if nest.is_flat else nest.column()
        if column is not None and counter("kernel-map-column"):
            set_mapping(column, "grid", _columns(nest, column))
            for local in nest.chain[-1].walk():
                if isinstance(local, kernel.LocalOp):
                    local.properties["columnwise"] = UnitAttr()


def _columns(nest: GpuNest, column: kernel.ForOp) -> int:
    """How many columns one program takes; few of those that are only reduced, where most processors had none."""
    inner, columns, target = nest.innermost(), nest.sizes.trips(column), nest.target
    rows = nest.trips(loop for loop in nest.chain if loop is not column)
    least = min((a.bytes for a in nest.accesses), default=4)
    if any(isinstance(op, kernel.ScanOp) for op in inner):
        return columns_side_by_side(columns, least, rows, target)
    lanes = columns_side_by_side(columns, least, None, target)
    few = 2 * rows * columns <= lanes * target.processors and all(isinstance(op, kernel.ReduceOp) for op in inner)
    return columns_side_by_side(columns, least, rows, target) if few else lanes
