"""The pass `host-share-places`."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from ...dialects import host
from ...dialects.host.places import Place, place_of
from ...records import dataclass
from ..counters import counter
from ..function_pass import HostPass


@dataclass(frozen=True)
class HostSharePlaces(HostPass):
    """Memory that is planned at one place of a pool, with one type, is one tensor of the program.

    Level: host.

    A layer that repeats uses the same places again. Each tensor is an object that the program makes at every call.

    Precondition: memory is planned, views look at memory and not at other views, nothing is freed yet.
    Guarantee: planned memory, and views of it, that lie in the same bytes of one pool with the same type, and that
    something other than a launch uses, have the number of their place. What launches alone use is an address. A place
    ends with its pool, which `host-free` frees behind all that lies in it.

        %a = host.empty in %pool at 64 : T
        %c = aten.relu(%a) : T
        %b = host.empty in %pool at 64 : T
        %d = aten.neg(%b) : T
    becomes
        %a = host.empty in %pool at 64 place 0 : T
        %c = aten.relu(%a) : T
        %b = host.empty in %pool at 64 place 0 : T
        %d = aten.neg(%b) : T
    """

    name = "host-share-places"

    def on_program(self, function: host.FuncOp) -> None:
        """Number the places of one function that more than one tensor lies in."""
        tenants: dict[Place, list[host.EmptyOp | host.ViewOp]] = {}
        for op in function.body.block.ops:
            if isinstance(op, host.EmptyOp | host.ViewOp) and _is_more_than_an_address(op.out):
                place = place_of(op)
                if place is not None:
                    tenants.setdefault(place, []).append(op)
        shared = [ops for ops in tenants.values() if len(ops) > 1 and counter(HostSharePlaces.name)]
        for number, ops in enumerate(shared):
            for op in ops:
                op.place = IntegerAttr(number, i64)


def _is_more_than_an_address(value: SSAValue) -> bool:
    """Whether something needs more than the address of a value."""
    return any(not isinstance(use.operation, host.LaunchOp | host.ViewOp) for use in value.uses)
