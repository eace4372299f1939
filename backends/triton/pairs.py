"""Accesses of neighbours in memory as one: `x[2*i]` and `x[2*i + 1]` are `tl.split` of a load, or `tl.join` of a store.

Lanes that read every other place touch each cache line twice, element by element; as pairs they read words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import kernel
from ...dialects.sym import Expr
from ...passes.kernel.axes import loops_around
from ...passes.kernel.effects import is_plain_store
from ...passes.kernel.tiles import is_tiled

Access = kernel.LoadOp | kernel.StoreOp
#: access -> (the one of the lower place, the one behind it)
Pairs = Mapping[Operation, tuple[Access, Access]]


def pairs_of(function: kernel.FuncOp) -> Pairs:
    """The accesses of a kernel that are halves of pairs, in one block each; a buffer is only read or only stored to."""
    kinds: dict[SSAValue, set[type[Operation]]] = {}
    for argument in function.body.block.args:
        kinds[argument] = {type(use.operation) for use in argument.uses}
    found: dict[Operation, tuple[Access, Access]] = {}
    for block in _blocks(function.body.block):
        places: dict[tuple[SSAValue, Expr], Access] = {}
        for op in block.ops:
            if isinstance(op, Access) and len(kinds.get(op.buffer, ())) == 1 and _is_plain(op):
                places.setdefault((op.buffer, op.map.data[0]), op)
        for (buffer, place), low in places.items():
            high = places.get((buffer, place + 1))
            if high is None or low in found or high in found or not _starts_pair(low, place):
                continue
            if isinstance(low, kernel.LoadOp) or not _stored_between(low, high):
                found[low] = found[high] = (low, high)
    return found


def _blocks(block: Block) -> Iterator[Block]:
    yield block
    for op in block.ops:
        for region in op.regions:
            yield from _blocks(region.block)


def _stored_between(one: Access, other: Access) -> bool:
    """Whether either place may be stored to in between; the first store of a pair is done where the second one is."""
    block = one.parent_block()
    assert block is not None
    ops = list(block.ops)
    first, last = sorted((ops.index(one), ops.index(other)))
    stores = [op for outer in ops[first + 1 : last] for op in outer.walk() if isinstance(op, kernel.StoreOp)]
    same = [op for op in stores if op.buffer is one.buffer]
    return any(_may_meet(op, half) for op in same for half in (one, other))


def _may_meet(op: kernel.StoreOp, half: Access) -> bool:
    difference = (op.map.data[0] - half.map.data[0]).as_int()
    return bool(op.dynamic) or difference is None or difference == 0


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
