"""The pass `host-compose-views`."""

from __future__ import annotations

from xdsl.ir import SSAValue

from ...dialects import host
from ...dialects.aten.types import TensorType
from ...dialects.raw import ops_of
from ...dialects.sym import ZERO, SymAttr
from ..counters import counter
from ..function_pass import HostPass


class HostComposeViews(HostPass):
    """Views look at memory and not at other views; one that changes nothing is its source.

    Level: host.

    Each view is an object that the program makes at every call, so that what nothing needs costs time.

    Precondition: nothing is freed yet.
    Guarantee: no view of a view with elements of the same type, and none with the type of its source and no offset
    unless it is returned: an output stays a tensor of its own. Views that nothing uses are removed.

        %b = host.view %a offset 4 : !aten.tensor<1x4xf32>
        %c = host.view %b offset 2 : !aten.tensor<2xf32>
        %d = host.view %x offset 0 : type of %x
        host.launch @k(%c, %d)
    becomes
        %c = host.view %a offset 6 : !aten.tensor<2xf32>
        host.launch @k(%c, %x)
    """

    name = "host-compose-views"

    def on_program(self, function: host.FuncOp) -> None:
        """Compose the views of one function, in order: a view's source is composed before it."""
        block = function.body.block
        views = [op for op in ops_of(block) if type(op) is host.ViewOp]
        for view in views:
            _look_through(view)
            if _is_source(view) and counter(HostComposeViews.name):
                view.out.replace_all_uses_with(view.source)
        for view in reversed(views):
            if view.out.first_use is None:
                block.erase_op(view)


def _look_through(view: host.ViewOp) -> None:
    """(offset o of (offset p of x)) == offset o + p of x, where both count elements of one size."""
    inner = view.source.owner
    if type(inner) is not host.ViewOp or not _same_element(view.out, inner.out, inner.source):
        return
    if counter(HostComposeViews.name):
        view.operands[0] = inner.source
        view.offset = SymAttr.of(view.offset.data + inner.offset.data)


def _is_source(view: host.ViewOp) -> bool:
    returned = any(isinstance(use.operation, host.ReturnOp) for use in view.out.uses)
    return view.offset.data == ZERO and view.out.type == view.source.type and not returned


def _same_element(*values: SSAValue) -> bool:
    types = [value.type for value in values]
    return len({type_.element for type_ in types if isinstance(type_, TensorType)}) == 1
