"""The pass `kernel-pair-accesses`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.access import string_attr
from ...dialects.sym import Expr
from ..analysis.effects import is_plain_store
from ..analysis.loops import loops_around
from ..counters import counter
from .kernel_pass import KernelFacts, KernelPass
from .scheduled import all_for_gpu
from .tiles import is_tiled

Access = kernel.LoadOp | kernel.StoreOp
#: access -> (the one of the lower place, the one behind it)
Pairs = Mapping[Operation, tuple[Access, Access]]


class KernelPairAccesses(KernelPass, kernels=all_for_gpu):
    """Access two neighbours in memory as one, where lanes of a GPU go by two (vectorisation of memory accesses).

    Level: kernel.

    Precondition: `kernel-tile` for a GPU, with the accesses that are to stay; other kernels stay as they are.
    Guarantee: loads, or plain stores, of a block that access `x[2*i]` and `x[2*i + 1]` are `even` and `odd`: halves of
    one access of a word, where the first of two loads is, or the second of two stores. Nothing else is done with such a
    buffer. Lanes that read every other place touch each cache line twice, element by element.

        %a = kernel.load %x[2*i0]  %b = kernel.load %x[2*i0 + 1]
    becomes
        %a = kernel.load even %x[2*i0]  %b = kernel.load odd %x[2*i0 + 1]
    """

    name = "kernel-pair-accesses"

    def on_kernel(self, function: kernel.FuncOp, facts: KernelFacts) -> None:
        """Pair accesses in every kernel for a GPU."""
        for low, high in dict.fromkeys(_pairs_of(function).values()):
            if low.half is None and high.half is None and counter(self.name):
                low.properties["half"], high.properties["half"] = map(string_attr, kernel.HALVES)


def _pairs_of(function: kernel.FuncOp) -> Pairs:
    """The accesses of a kernel that are halves of pairs, in one block each; a buffer is only read or only stored to."""
    kinds: dict[SSAValue, set[type[Operation]]] = {}
    for argument in function.body.block.args:
        users = [use.operation for use in argument.uses]
        if len(users) > 1:
            kinds[argument] = set(map(type, users))
    found: dict[Operation, tuple[Access, Access]] = {}
    if all(len(each) > 1 for each in kinds.values()):
        return found
    for block in _blocks(function.body.block):
        places: dict[tuple[SSAValue, Expr], Access] = {}
        for op in block.ops:
            if isinstance(op, Access) and len(kinds.get(op.buffer, ())) == 1 and _is_plain(op):
                places.setdefault((op.buffer, op.map.data[0]), op)
        for (buffer, place), low in places.items():
            high = places.get((buffer, place + 1))
            if high is None or low in found or high in found or not _starts_pair(low, place):
                continue
            if isinstance(low, kernel.LoadOp) or not kernel.stored_between(low, high):
                found[low] = found[high] = (low, high)
    return found


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        for region in op.regions:
            yield from _blocks(region.block)


def _is_plain(op: Access) -> bool:
    return is_plain_store(op) if isinstance(op, kernel.StoreOp) else op.mask is None and not op.dynamic


def _starts_pair(op: Access, place: Expr) -> bool:
    """Whether lanes go by two along one axis, none by one, and every pair begins at an even place."""
    steps = {loop.axis.data: place.coefficient(loop.axis.data) for loop in loops_around(op)}
    lanes = [steps[loop.axis.data] for loop in loops_around(op) if is_tiled(loop)]
    numbers = [None if step is None else step.as_int() for step in lanes]
    rest = place.subs(dict.fromkeys(steps, place - place)).as_int()
    whole = all(step is not None and (step.as_int() or 0) % 2 == 0 and step.is_constant for step in steps.values())
    return 2 in numbers and whole and rest is not None and rest % 2 == 0
