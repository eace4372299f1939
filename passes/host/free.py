"""The pass `host-free`."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from ...dialects import host
from ...dialects.raw import ops_of
from ..analysis.lifetimes import Lifetimes, verify_frees
from ..counters import counter
from ..function_pass import HostPass


class HostFree(HostPass):
    """End the life of each tensor behind its last use.

    Level: host.

    Precondition: nothing is freed yet; allocations that nothing uses may be there and are removed.
    Guarantee: every tensor that is not returned, arguments included, is in one `host.free` right behind the last op
    that uses it or a view of it. A view is freed no later than its source.

        %y = host.empty : T
        host.launch @k(%x, %y)
        %z = aten.mm(%y, %w) : U
        host.return %z
    becomes
        %y = host.empty : T
        host.launch @k(%x, %y)
        host.free %x
        %z = aten.mm(%y, %w) : U
        host.free %y, %w
        host.return %z
    """

    name = "host-free"

    def on_program(self, function: host.FuncOp) -> None:
        """Insert the frees of one function."""
        block = function.body.block
        _remove_unused(block)
        lifetimes = Lifetimes(block)
        ending: dict[int, list[SSAValue]] = {}
        for value in lifetimes.values:
            if not lifetimes.escapes(value):
                ending.setdefault(lifetimes.last[value], []).append(value)
        for position, op in enumerate(ops_of(block)):
            values = ending.get(position)
            if values and counter(HostFree.name):
                block.insert_op_after(host.FreeOp.create(operands=_views_first(values, lifetimes)), op)
        arguments = ending.get(-1)
        first = block.first_op
        if arguments and first is not None:
            block.insert_op_before(host.FreeOp.create(operands=arguments), first)
        verify_frees(block)


def _remove_unused(block: Block) -> None:
    for op in reversed(ops_of(block)):
        if isinstance(op, host.EmptyOp | host.ViewOp) and op.out.first_use is None:
            block.erase_op(op)


def _views_first(values: list[SSAValue], lifetimes: Lifetimes) -> list[SSAValue]:
    """Latest definition first: what is a view of another goes before it."""
    return sorted(values, key=lifetimes.start, reverse=True)
