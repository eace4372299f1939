"""The pass `host-donate`."""

from __future__ import annotations

from xdsl.ir import Block, SSAValue

from ...dialects import host
from ...dialects.aten import CallOp
from ...dialects.aten.types import type_of
from ...dialects.raw import operands_of, ops_of
from ...records import dataclass
from ..analysis.kept import is_kept_value
from ..analysis.lifetimes import Lifetimes, is_tensor
from ..analysis.tensor_bytes import bytes_of
from ..common.functional_calls import is_wrapper
from ..counters import counter
from ..function_pass import HostPass
from ..remarks import remark

#: operator -> one that returns the same and leaves other elements in an argument, and the place of that
_DONATING = {
    "inductile::requantised_convolution.sum": ("inductile::requantised_convolution.sum_", -3),
    "inductile::packed_convolution": ("inductile::packed_convolution_", 10),
}


@dataclass(frozen=True)
class HostDonate(HostPass):
    """Let a library's call use the memory of an argument that nothing reads behind it (buffer donation).

    Level: host.

    Precondition: nothing is freed, planned or reused yet.
    Guarantee: the same results. A call of an operator that would copy an argument, for its library writes it, and of
    which there is a form without that copy, has that form where the argument is memory of the program's own that
    nothing uses behind the call: what oneDNN adds to a convolution is where it puts the sum.

        %y = aten.call pure "inductile::requantised_convolution.sum"(%x, ..., %r, 0.5, 3) : T
    becomes
        %y = aten.call "inductile::requantised_convolution.sum_"(%x, ..., %r, 0.5, 3) writes [4] : T
    """

    name = "host-donate"

    def on_program(self, function: host.FuncOp) -> None:
        """Donate arguments of the calls of every host function."""
        block = function.body.block
        calls = [op for op in ops_of(block) if isinstance(op, CallOp) and op.target in _DONATING]
        if not calls:
            return
        lifetimes = Lifetimes(block)  # of the ops as they are, so that all is decided before any changes
        wanted = [(call, value) for call in calls if (value := _donated(call, lifetimes)) is not None]
        for call, value in wanted:
            if counter(self.name):
                remark("passed", self.name, call, "its argument is donated", bytes=str(bytes_of(type_of(value))))
                _donate(call)


def _donate(call: CallOp) -> None:
    """Put a call that may write an argument in the place of one that may not."""
    name, place = _DONATING[call.target]
    given, block = call.args()[place], call.parent
    assert isinstance(given, SSAValue) and block is not None
    new = CallOp.of(name, call.args(), call.kwargs(), call.result_types, call.location, writes=[given])
    new.attributes.update(call.attributes)
    block.insert_op_before(new, call)
    for old, made in zip(call.results, new.results, strict=True):
        made.name_hint = old.name_hint
        old.replace_all_uses_with(made)
    block.erase_op(call)


def _donated(call: CallOp, lifetimes: Lifetimes) -> SSAValue | None:
    """What a call may write, if that is all that it uses of memory of the program's own, which nothing uses behind."""
    value = call.args()[_DONATING[call.target][1]]
    roots = lifetimes.roots(value) if isinstance(value, SSAValue) else frozenset[SSAValue]()
    if not isinstance(value, SSAValue) or len(roots) != 1:
        return None
    (memory,) = roots
    if isinstance(memory.owner, Block) or is_kept_value(memory) or is_wrapper(memory.owner):
        return None
    users = [operand for operand in operands_of(call) if is_tensor(operand) and memory in lifetimes.roots(operand)]
    return value if len(users) == 1 and lifetimes.last[memory] == lifetimes.position[call] else None
