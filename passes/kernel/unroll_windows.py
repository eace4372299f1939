"""`kernel-unroll-windows`: reductions of small windows are written out, so that lanes of a CPU run no loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import ZERO
from ..analysis.loops import loops_in
from ..analysis.nests import Nest, is_unit
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .pinned import is_pinned
from .scheduled import untiled_for_cpu
from .simplify_block import simplify
from .transforms import copy_body, reduction_chain
from .window_places import EXTREMES, Inserter, find_extreme, has_rising_places, restored_place, window_points

#: most elements of a window, and most ops that it becomes
MOST_ELEMENTS, MOST_OPS = 64, 800


class UnrollWindows(KernelPass, kernels=untiled_for_cpu):
    """Write out reductions of small windows, whose elements lie beside those of neighbours along another loop.

    level:         kernel
    precondition:  loops are serial and without tiles, as in front of `kernel-map`
    guarantee:     the same values: elements of a window are combined in order. On a CPU, a `sum`, `max` or `min` of a
                   float over at most `MOST_ELEMENTS` points whose number is known, inside of a `kernel.for` along which
                   what it loads lies side by side or stays in place, is straight-line code. `kernel-tile` gives that
                   loop's axis to the lanes, and what is the same in all of them, as weights are, is loaded in front.
                   So is an `argmax` or `argmin` whose places rise by constants; its lanes carry 32-bit distances.

        kernel.for i0 in 0 to 64 {
          %s = kernel.reduce sum i1 in 0 to 2 {
            %a = kernel.load %x[i0 + i1]  %b = kernel.load %w[i1]  %p = arith.mulf %a, %b : f32  kernel.yield %p
          }
          kernel.store %s, %y[i0]  kernel.yield
        }
    becomes
        kernel.for i0 in 0 to 64 {
          %zero = arith.constant 0.0 : f32
          %a = kernel.load %x[i0]      %b = kernel.load %w[0]  %p = arith.mulf %a, %b : f32
          %s = arith.addf %zero, %p : f32
          %c = kernel.load %x[i0 + 1]  %d = kernel.load %w[1]  %q = arith.mulf %c, %d : f32
          %t = arith.addf %s, %q : f32
          kernel.store %t, %y[i0]  kernel.yield
        }
    """

    name = "kernel-unroll-windows"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Unroll in every kernel for the CPU that has no target yet."""
        self._unroll_in(function)

    def _unroll_in(self, function: kernel.FuncOp) -> None:
        block = function.body.block
        loops = [loop for loop in loops_in(block) if isinstance(loop, kernel.ForOp)]
        changed = False
        for loop in loops:
            for op in list(loop.body.block.ops):
                if isinstance(op, kernel.ReduceOp) and not is_pinned(op):
                    chain = reduction_chain(op)
                    if is_window(chain, loop) and counter(self.name):
                        remark("passed", self.name, op, "written out")
                        unroll(chain)
                        changed = True
        if changed:
            simplify(block)


def is_window(chain: Sequence[kernel.ReduceOp], loop: kernel.ForOp) -> bool:
    """Whether a chain of reductions directly in a loop is of a small window that the lanes of the loop should run."""
    outer, body = chain[0], chain[-1].body.block
    trips = [(op.hi.data - op.lo.data).as_int() for op in chain]
    known = [count for count in trips if count is not None]
    if len(known) < len(trips) or any(op.lo.data.as_int() is None for op in chain):
        return False
    combiners = [c.data for c in outer.combiners]
    if len(combiners) != 1 or combiners[0] not in (*_COMBINED, *EXTREMES):
        return False
    copies, ops = prod(known), list(body.ops)
    if not 0 < copies <= MOST_ELEMENTS or copies * len(ops) > MOST_OPS or any(map(_prevents, ops)):
        return False
    if not isinstance(outer.results[0].type, AnyFloat) or (combiners[0] in EXTREMES and not has_rising_places(chain)):
        return False
    return _is_beside(Nest.of(outer), loop, [op.axis.data for op in chain])


def _prevents(op: Operation) -> bool:
    return bool(op.regions) or isinstance(op, kernel.StoreOp | kernel.AssertOp | kernel.LocalOp)


def _is_beside(nest: Nest, loop: kernel.ForOp, window: Sequence[str]) -> bool:
    """Whether loads that change along a loop are of neighbours, or no nearer to each other in the window.

    A row that is summed along memory is no such window: its lanes run along the row.
    """
    axis, moves = loop.axis.data, False
    for access in nest.accesses:
        stride = access.stride(axis)
        if stride is ZERO:
            continue
        moves = True
        if stride is None or (not is_unit(stride) and (stride.as_int() or LARGE) > NEAR):
            return False
        if not is_unit(stride) and not any(is_unit(access.stride(name)) for name in window):
            return False
    return moves


#: longest distance of neighbours that lanes still load in one piece
NEAR, LARGE = 2, 1 << 30


#: what the first element of a window is combined with, and by what; the maximum of a NaN is one, as in a reduction
_COMBINED: dict[str, tuple[float, Callable[[SSAValue, SSAValue], Operation]]] = {
    "sum": (0.0, arith.AddfOp),
    "max": (float("-inf"), arith.MaximumfOp),
    "min": (float("inf"), arith.MinimumfOp),
}


def unroll(chain: Sequence[kernel.ReduceOp]) -> None:
    """Replace a chain of reductions by the combination of copies of what the innermost yields, in order."""
    outer, body = chain[0], chain[-1].body.block
    parent = outer.parent
    assert parent is not None
    elements = (copy_body(body, values, parent, outer) for values in window_points(chain))
    monoid, insert = outer.combiners.data[0].data, Inserter(outer)
    if monoid in EXTREMES:
        totals = find_extreme(monoid, list(elements), insert)
    else:
        identity, combine = _COMBINED[monoid]
        total: SSAValue = insert.number(identity, outer.results[0].type)
        for (value,) in elements:
            total = insert(combine(total, value))
        totals = (total,)
    for old, new in zip(outer.results, totals, strict=True):
        new.name_hint = old.name_hint
        if (restored := restored_place(old)) is not None:
            restored.replace_all_uses_with(new)
        old.replace_all_uses_with(new)
    parent.erase_op(outer)
