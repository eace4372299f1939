"""The pass `kernel-privatize`."""

from __future__ import annotations

from ...dialects import kernel
from ...dialects.kernel import BufferType
from ...dialects.sym import ZERO, Expr, MapAttr, Ranges, prove_lt, prove_nonneg, symbol
from ..analysis.loops import Loop, loops_around
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .register_tiles import fits_registers, locals_of
from .scheduled import tiled_for_gpu

Access = kernel.LoadOp | kernel.StoreOp


class KernelPrivatize(KernelPass, kernels=tiled_for_gpu):
    """Give each iteration of a loop a local buffer of its own, as small as its part (array privatisation).

    Level: kernel.

    Precondition: `kernel-tile` for a GPU; other kernels stay as they are.
    Guarantee: a local buffer that fits no register tile, and of which each iteration of a serial loop around all
    its accesses uses a part of its own, is a smaller buffer inside of that loop.

        %row = kernel.local : !kernel.buffer<f32, 1024, local>
        kernel.for i1 in 0 to 8 {
          kernel.for i2 in 0 to 128 map vector tile 128 { ... kernel.store %e, %row[128*i1 + i2] } ... }
    becomes
        kernel.for i1 in 0 to 8 {
          %row = kernel.local : !kernel.buffer<f32, 128, local>
          kernel.for i2 in 0 to 128 map vector tile 128 { ... kernel.store %e, %row[i2] } ... }
    """

    name = "kernel-privatize"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Move each local buffer that is too large for registers into the loop that all its accesses are in.

        Iteration `i` of that loop touches only the `p` elements from `p*i` on, so that no iteration reads what another
        one stored. Inside of the loop the buffer needs `p` elements: the index `p*i + rest`, with `0 <= rest < p`,
        becomes `rest`.
        """
        ranges = facts.ranges
        for op in locals_of(function):
            inner = op
            while not fits_registers(inner, ranges) and (found := _own_parts(inner, ranges)) is not None:
                if not counter(KernelPrivatize.name):
                    return
                inner = _move(inner, *found)


def _own_parts(op: kernel.LocalOp, ranges: Ranges) -> tuple[kernel.ForOp, Expr] | None:
    """The loop around all accesses to a buffer, and how many elements each of its iterations has for itself."""
    assert op.parent is not None
    users = [use.operation for use in op.buffer.uses]
    around = {user: loops_around(user, op.parent) for user in users if isinstance(user, Access)}
    outermost = {loops[0] if loops else None for loops in around.values()}
    loop = outermost.pop() if len(outermost) == 1 else None
    if not isinstance(loop, kernel.ForOp) or len(around) < len(users):
        return None
    if loop.tile is not None or loop.mapping.data != "serial" or loop.lo.data is not ZERO:
        return None
    parts = {_part(user, loop, inner, ranges) for user, inner in around.items()}
    part = parts.pop()
    return (loop, part) if part is not None and not parts else None


def _part(user: Access, loop: kernel.ForOp, around: list[Loop], ranges: Ranges) -> Expr | None:
    """The distance between neighbours along the loop's axis, if the rest of the index stays below it."""
    axis, index = loop.axis.data, user.map.data[0]
    if user.dynamic or axis not in index.free_symbols or any(each.lo.data is not ZERO for each in around):
        return None
    part = index.coefficient(axis)
    if part is None or axis in part.free_symbols:
        return None
    rest = index - part * symbol(axis)
    inside = Ranges.of_axes([(each.axis.data, each.hi.data) for each in around], ranges)
    return part if prove_nonneg(rest, inside) and prove_lt(rest, part, inside) else None


def _move(op: kernel.LocalOp, loop: kernel.ForOp, part: Expr) -> kernel.LocalOp:
    kind = op.buffer.type
    assert isinstance(kind, BufferType)
    first = loop.body.block.first_op
    assert first is not None
    inner = kernel.LocalOp.create(
        result_types=(BufferType.get(kind.element, part, True),), properties=dict(op.properties), location=op.location
    )
    inner.buffer.name_hint = op.buffer.name_hint
    loop.body.block.insert_op_before(inner, first)
    for use in list(op.buffer.uses):
        user = use.operation
        assert isinstance(user, Access)
        user.properties["map"] = MapAttr.of(user.map.data[0] - part * symbol(loop.axis.data))
    op.buffer.replace_all_uses_with(inner.buffer)
    op.detach()
    op.erase()
    return inner
