"""`kernel-unmask-lanes`: what all lanes of a CPU may read, or may not read, together is read without a mask."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import filterfalse

from xdsl.dialects.arith import ConstantOp, SelectOp
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.access import dynamic_name
from ...dialects.sym import ZERO, Expr, Ranges, bounds, prove_le, prove_lt, symbol
from ..analysis.effects import written_buffers
from ..analysis.loops import Loop, flat_vector_loops, loops_around, loops_in
from ..counters import counter
from ..remarks import remark
from .kernel_pass import KernelFacts, KernelPass
from .lane_indices import expr_of
from .pinned import is_pinned
from .scheduled import tiled_for_cpu


class UnmaskLanes(KernelPass, kernels=tiled_for_cpu):
    """Read without a mask where all lanes share the mask, and check once what all lanes check.

    level:         kernel
    precondition:  kernels are scheduled for a CPU, and `kernel-hoist-invariants` is done
    guarantee:     the same values and errors. A load in lanes whose mask and loaded indices are the same in all of them
                   reads where these indices are 0, if the mask is false and that place is known to be in the buffer,
                   and its value is then replaced by the one for outside; so that lanes read whole registers. An assert
                   whose condition stands in front of a flat loop of lanes that runs at least once stands there, too.

        %i = kernel.load %rows[i0]  ... %ok: 0 <= %i < 1024
        kernel.for i1 in 0 to 256 map vector tile 32 {
          kernel.assert %ok, 1
          %a = kernel.load %x[256*d0 + i1] (d0 = %i) if %ok else %zero ... }
    becomes
        %i = kernel.load %rows[i0]  ... %ok: 0 <= %i < 1024
        kernel.assert %ok, 1
        %j = arith.select %ok, %i, 0
        kernel.for i1 in 0 to 256 map vector tile 32 {
          %b = kernel.load %x[256*d0 + i1] (d0 = %j)
          %a = arith.select %ok, %b, %zero ... }
    """

    name = "kernel-unmask-lanes"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Rewrite the loops over lanes of one kernel."""
        ranges, written = facts.ranges, written_buffers(function.body.block)
        for loop in filterfalse(is_pinned, flat_vector_loops(function)):
            if _runs(loop, ranges):
                _check_once(loop, self.name)
        for loop in loops_in(function.body.block):
            if loop.mapping.data == "vector" and not is_pinned(loop):
                for load in _shared_masks(loop, written):
                    if _is_safe(load, ranges) and counter(self.name):
                        remark("passed", self.name, load, "all lanes share its mask")
                        _unmask(load, loop)


def _runs(loop: Loop, ranges: Ranges) -> bool:
    least, _ = bounds(loop.hi.data - loop.lo.data, ranges)
    return least is not None and least >= 1


def _check_once(loop: kernel.ForOp, name: str) -> None:
    """Move asserts about values from outside in front of a loop."""
    parent, inside = loop.parent, set(loop.body.block.ops)
    assert parent is not None
    for op in list(loop.body.block.ops):
        if isinstance(op, kernel.AssertOp) and op.condition.owner not in inside and counter(name):
            op.detach()
            parent.insert_op_before(op, loop)


def _shared_masks(loop: Loop, written: set[SSAValue]) -> list[kernel.LoadOp]:
    """The loads in lanes of which no lane changes the mask or a loaded index, though there is one."""
    varying: set[SSAValue] = set()
    found: list[kernel.LoadOp] = []
    for region in loop.regions:
        _visit(region.block, loop.axis.data, written, varying, found)
    return found


def _visit(block: Block, axis: str, written: set[SSAValue], varying: set[SSAValue], found: list[kernel.LoadOp]) -> None:
    """Note what an axis changes, op by op: what a loop makes, or gets as an argument, and what is read of memory that
    the kernel writes, it may change."""
    varying.update(block.args)
    for op in block.ops:
        if isinstance(op, kernel.LoadOp) and _is_shared(op, varying):
            found.append(op)
        expr = expr_of(op)
        moves = expr is not None and axis in expr.free_symbols
        changes = isinstance(op, kernel.LoadOp) and op.buffer in written
        if op.regions or moves or changes or not varying.isdisjoint(op.operands):
            varying.update(op.results)
        for region in op.regions:
            _visit(region.block, axis, written, varying, found)


def _is_shared(load: kernel.LoadOp, varying: set[SSAValue]) -> bool:
    """Whether a load has a mask and loaded indices, none of which varies."""
    mask, dynamic = load.mask, load.dynamic
    return mask is not None and len(dynamic) > 0 and varying.isdisjoint((mask, *dynamic))


def _is_safe(load: kernel.LoadOp, ranges: Ranges) -> bool:
    """Whether a load is in its buffer at all points of its loops where the loaded indices are 0."""
    index = load.map.data[0].subs({dynamic_name(k): ZERO for k in range(len(load.dynamic))})
    index, axes = _from_zero(index, loops_around(load))
    facts = Ranges.of_axes(axes, ranges)
    assert isinstance(load.buffer.type, kernel.BufferType)
    extent = load.buffer.type.extent
    return prove_le(ZERO, index, facts) and prove_lt(index, extent, facts)


def _from_zero(index: Expr, loops: Iterable[Loop]) -> tuple[Expr, list[tuple[str, Expr]]]:
    """An index by axes that all begin at 0, and these, outermost first."""
    axes: list[tuple[str, Expr]] = []
    for loop in reversed(list(loops)):
        name, lo = loop.axis.data, loop.lo.data
        moved = {name: symbol(name) + lo}
        index = index.subs(moved)
        axes = [(name, loop.hi.data - lo), *((other, size.subs(moved)) for other, size in axes)]
    return index, axes


def _unmask(load: kernel.LoadOp, lanes: Loop) -> None:
    """Select what indices a load takes, and what its value is, rather than whether it reads."""
    mask, other = load.mask, load.other
    assert mask is not None and other is not None
    front = lanes if all(_is_outside(value, lanes) for value in (mask, *load.dynamic)) else load
    indices: list[SSAValue] = []
    for value in load.dynamic:
        assert isinstance(value.type, IntegerType)
        zero = ConstantOp(IntegerAttr(0, value.type))
        chosen = SelectOp(mask, value, zero)
        _insert(front, zero, chosen, location=load)
        indices.append(chosen.result)
    read = kernel.LoadOp.of(load.buffer, load.map, indices, location=load.location)
    value = SelectOp(mask, read.value, other)
    value.result.name_hint = load.value.name_hint
    _insert(load, read, value, location=load)
    load.value.replace_all_uses_with(value.result)
    assert load.parent is not None
    load.parent.erase_op(load)


def _insert(front: Operation, *ops: Operation, location: Operation) -> None:
    block = front.parent
    assert block is not None
    for op in ops:
        op.location = location.location
        block.insert_op_before(op, front)


def _is_outside(value: SSAValue, loop: Loop) -> bool:
    owner: Operation | Block | None = value.owner
    while owner is not None and owner is not loop:
        owner = owner.parent_op()
    return owner is None
