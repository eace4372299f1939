"""The pass `kernel-vectorize`."""

from __future__ import annotations

from ...dialects import kernel
from ...dialects.sym import ZERO
from ...machines import CpuTarget, GpuTarget
from ..analysis.loops import Loop, loops_in
from ..analysis.sizes import Sizes
from ..counters import counter
from .cpu_lanes import vectorize_for_cpu
from .gpu_blocks import GpuBlocks
from .gpu_legality import is_innermost
from .gpu_nest import UNROLLED, GpuNest, is_row_of_few, may_tile
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .scheduled import untiled
from .spread import has_programs
from .tiles import extent_of, is_grid
from .transforms import set_mapping


class KernelVectorize(KernelPass, kernels=untiled):
    """Choose the axes that run in lanes: SIMD lanes of a CPU, or lanes of a GPU's program (vectorisation).

    Level: kernel.

    Precondition: behind `kernel-map`; kernels that are tiled stay as they are, and so do nests that have lanes.
    Guarantee: for a CPU, the axis of a perfect nest along which most accesses lie side by side is innermost and
    `vector`, with a tile of as many lanes as fill registers. If no axis of the nest may be, each innermost loop
    that may is `vector`. Where that axis would only copy what is scattered along it, in short runs along another
    one, runs are innermost and stay loops: compilers move them as words. No loop is `vector` where the target's
    description says nothing of lanes. For a GPU, innermost loops of a program are `vector`, whose tiles are for
    `kernel-tile` to choose. Where lanes lie better along the row around them, innermost loops that are short are
    `unroll` if they are a `for`; sums there stay `serial`, and each lane runs them for itself.

        kernel.for i0 in 0 to s0 map parallel { %m = kernel.reduce max i1 in 0 to 4096 { ... } ... }
    becomes
        kernel.for i0 in 0 to s0 map parallel { %m = kernel.reduce max i1 in 0 to 4096 map vector tile 64 { ... } ... }
    """

    name = "kernel-vectorize"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Choose lanes for every kernel that is not tiled yet."""
        sizes = facts.sizes
        if isinstance(facts.target, CpuTarget) and not facts.target.vector_bytes:
            return
        if isinstance(facts.target, CpuTarget):
            vectorize_for_cpu(function, facts.target, sizes, self.name)
        elif isinstance(facts.target, GpuTarget):
            _vectorize_for_gpu(function, facts.target, sizes)


def _vectorize_for_gpu(function: kernel.FuncOp, target: GpuTarget, sizes: Sizes) -> None:
    if not has_programs(function):
        return
    for op in [each for each in function.body.block.ops if isinstance(each, Loop) and not is_pinned(each)]:
        if not (isinstance(op, kernel.ForOp) and is_grid(op)):
            _rows(op, op, sizes, target)
            continue
        nest = GpuNest(function, op, target, sizes, GpuBlocks.of(target))
        inner = [each for each in nest.body.ops if isinstance(each, Loop)]
        if nest.column_axis is not None and inner:
            _columns(nest, nest.column_axis)
        elif inner and not _takes_lanes(inner):
            for each in inner:
                _rows(each, op, sizes, target)


def _takes_lanes(loops: list[Loop]) -> bool:
    """Whether a sum has lanes already: `kernel-join-axes` gave it a tile."""
    return any(op.mapping.data == "vector" for op in loops)


def _columns(nest: GpuNest, column: kernel.ForOp) -> None:
    """Rows of lanes along the inner axes, unless each lane runs these for itself."""
    alone = nest.walks_columns(column)
    for op in nest.innermost():
        if alone:
            _write_out(op)
        else:
            _lanes(op)


def _rows(op: Loop, nest: Loop, sizes: Sizes, target: GpuTarget) -> None:
    """Put lanes along the innermost loops in one of a nest; what is around them runs one after the other."""
    if is_innermost(op):
        _lanes(op)
    elif is_row_of_few(op, nest, sizes, target):
        for nested in loops_in(op.body.block):
            _write_out(nested)
        _lanes(op)
    else:
        for nested in (n for region in op.regions for n in region.block.ops if isinstance(n, Loop)):
            _rows(nested, nest, sizes, target)


def _lanes(op: Loop) -> None:
    if may_tile(op) and op.mapping.data == "serial" and counter(KernelVectorize.name):
        set_mapping(op, "vector")


def _write_out(op: Loop) -> None:
    length = extent_of(op).as_int()
    short = length is not None and length <= UNROLLED and op.lo.data is ZERO and isinstance(op, kernel.ForOp)
    if short and counter("kernel-vectorize-unroll"):
        set_mapping(op, "unroll")
