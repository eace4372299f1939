"""Reading ops without the views that xDSL makes of their fields.

`op.operands` makes an object at each access, whose every element is one more call, and `op.next_op` is a call of a
property; sweeps over whole functions spend much of their time there. These give the same, straight from the fields.
They are private, which the pinned version of xDSL and a test against the public properties make safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

from xdsl.ir import Attribute, Block, Operation, SSAValue

#: the operands as a tuple that later changes of the op do not touch; slices of it are slow
operands_of: Callable[[Operation], tuple[SSAValue, ...]] = attrgetter("_operands")
#: the op behind one in its block
op_behind: Callable[[Operation], Operation | None] = attrgetter("_next_op")

#: the blocks that a terminator may lead to
successors_of: Callable[[Operation], tuple[Block, ...]] = attrgetter("_successors")
#: the type of a value
type_of: Callable[[SSAValue], Attribute] = attrgetter("_type")


def ops_behind(op: Operation) -> Iterator[Operation]:
    """The ops behind one in its block, in order."""
    following = op_behind(op)
    while following is not None:
        yield following
        following = op_behind(following)


def ops_of(block: Block) -> list[Operation]:
    """The ops of a block, in order, as they are now."""
    ops: list[Operation] = []
    op = block.first_op
    while op is not None:
        ops.append(op)
        op = op_behind(op)
    return ops
