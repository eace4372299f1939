"""The pass `kernel-sink-prologues`."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...records import dataclass
from ..analysis.effects import independent_nests, written_buffers
from ..analysis.loops import Loop, fresh_axis, kernel_names, nested_axes, ops_in, rename_axes
from ..analysis.nests import work_of_block, work_of_ops
from ..analysis.sizes import Sizes
from ..counters import counter
from .gpu_legality import is_innermost, is_serial
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import free_for_gpu
from .simplify_block import is_pure


@dataclass(frozen=True)
class KernelSinkPrologues(KernelPass, kernels=free_for_gpu):
    """Sink what stands in front of the inner loop of a nest into it, so that both axes can be spread over programs.

    Level: kernel.

    Precondition: in front of `kernel-map`; kernels that are tiled, or are not for a GPU, stay as they are.
    Guarantee: more nests are perfect. Only nests that may have programs of their own change. Programs run again what
    sinks, for each inner iteration, but side by side; so it has to be little: checks, loads and arithmetic, or, in
    front of a loop that has loops inside, rows that cost no more than one iteration of it.

        kernel.for i0 in 0 to 64 {
          %k = kernel.load %i[i0]
          kernel.for i1 in 0 to 4096 { ... %k ... }
        }
    becomes
        kernel.for i0 in 0 to 64 {
          kernel.for i1 in 0 to 4096 { %k = kernel.load %i[i0] ... %k ... }
        }
    """

    name = "kernel-sink-prologues"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Sink what may be in the nests of one kernel."""
        sizes = facts.sizes
        nests = [op for op in function.body.block.ops if isinstance(op, kernel.ForOp) and _is_imperfect(op)]
        if nests and not is_serial(function):
            apart = independent_nests(function.body.block)
            for op in nests:
                if op in apart:
                    sink_between_loops(op, sizes)


def _is_imperfect(op: kernel.ForOp) -> bool:
    """Whether something stands in front of a loop that ends the body of a nest, or of one inside."""
    ops = list(op.body.block.ops)
    inner = ops[-2] if len(ops) > 1 else None
    return isinstance(inner, kernel.ForOp) and (len(ops) > 2 or _is_imperfect(inner))


def sink_between_loops(op: kernel.ForOp, sizes: Sizes) -> None:
    """Sink what may be in one nest, from the outermost loop inwards."""
    written = written_buffers(op.body.block)
    while True:
        others = list(op.body.block.ops)[:-1]
        last = others.pop() if others else None
        if not isinstance(last, kernel.ForOp):
            return
        rows = not is_innermost(last) and work_of_ops(others, sizes) <= work_of_block(last.body.block, sizes)
        if not all(_is_cheap(o) or (rows and _makes_rows(o)) for o in others):
            return
        if any(isinstance(i, kernel.LoadOp) and _is_memory(i, written) for o in others for i in o.walk()):
            return
        if not counter(KernelSinkPrologues.name):
            return
        inner, first = last.body.block, last.body.block.first_op
        assert first is not None
        for other in others:
            _keep_apart(other, last)
            op.body.block.detach_op(other)
            inner.insert_op_before(other, first)
        op = last


def _keep_apart(moved: Operation, into: kernel.ForOp) -> None:
    """Rename an axis in an op that moves into a loop of the same axis, which would hide that one."""
    axis = into.axis.data
    if isinstance(moved, Loop) and (moved.axis.data == axis or axis in nested_axes(moved)):
        function = moved.parent_op()
        while function is not None and not isinstance(function, kernel.FuncOp):
            function = function.parent_op()
        taken = {axis, moved.axis.data, *nested_axes(moved)} if function is None else kernel_names(function)
        rename_axes(moved, {axis: fresh_axis(taken)})


def _is_memory(load: kernel.LoadOp, written: set[SSAValue]) -> bool:
    """Whether a load reads memory that the nest writes, so that it must not move."""
    return load.buffer in written and not load.buffer.type.local  # pyright: ignore[reportAttributeAccessIssue]


def _is_cheap(op: Operation) -> bool:
    return isinstance(op, kernel.LoadOp | kernel.AssertOp) or is_pure(op)


def _makes_rows(op: Operation) -> bool:
    """Whether an op allocates a local buffer, or is a loop that stores to local buffers only."""
    stores = [inner for inner in ops_in(op) if type(inner) is kernel.StoreOp]
    local = all(store.buffer.type.local for store in stores)  # pyright: ignore[reportAttributeAccessIssue]
    return isinstance(op, kernel.LocalOp) or (isinstance(op, Loop) and local)
