"""Reading ops without the views that xDSL makes of their fields.

`op.operands` makes an object at each access, whose every element is one more call, and `op.next_op` is a call of a
property; sweeps over whole functions spend much of their time there. These give the same, straight from the fields.
They are private, which the pinned version of xDSL and a test against the public properties make safe.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter

from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue, Use

#: the operands as a tuple that later changes of the op do not touch; slices of it are slow
operands_of: Callable[[Operation], tuple[SSAValue, ...]] = attrgetter("_operands")
#: the blocks of a region and the ops of a block, as lists that are linked
first_block_of: Callable[[Region], Block | None] = attrgetter("_first_block")
block_behind: Callable[[Block], Block | None] = attrgetter("_next_block")
first_op_of: Callable[[Block], Operation | None] = attrgetter("_first_op")
#: the op behind one in its block
op_behind: Callable[[Operation], Operation | None] = attrgetter("_next_op")

#: the blocks that a terminator may lead to
successors_of: Callable[[Operation], tuple[Block, ...]] = attrgetter("_successors")
#: the type of a value
type_of: Callable[[SSAValue], Attribute] = attrgetter("_type")

_first_use: Callable[[SSAValue], Use | None] = attrgetter("first_use")
_use_behind: Callable[[Use], Use | None] = attrgetter("_next_use")
_user: Callable[[Use], Operation] = attrgetter("_operation")


def maker_of(value: SSAValue) -> Operation | None:
    """The op that makes a value; None for an argument of a block."""
    return value.op if type(value) is OpResult else None


#: the name that a value should have in text, without a number behind it
hint_of: Callable[[SSAValue], str | None] = attrgetter("_name")


def set_hint(value: SSAValue, hint: str | None) -> None:
    """Give a value the name that another one has, or had. The setter of xDSL looks at each character once more."""
    value._name = hint  # pyright: ignore[reportPrivateUsage]


def erase_unused(op: Operation) -> None:
    """Erase an op whose results nothing uses. `Block.erase_op` makes a placeholder for each of them first."""
    if any(_first_use(result) is not None for result in op.results):
        raise ValueError(f"{op.name} is erased, and its results are used")
    op.detach()
    op.drop_all_references()


def users_of(value: SSAValue) -> list[Operation]:
    """The ops that use a value, each as often as it does, as they are now."""
    users: list[Operation] = []
    use = _first_use(value)
    while use is not None:
        users.append(_user(use))
        use = _use_behind(use)
    return users


def ops_behind(op: Operation) -> Iterator[Operation]:
    """The ops behind one in its block, in order."""
    following = op_behind(op)
    while following is not None:
        yield following
        following = op_behind(following)


def ops_of(block: Block) -> list[Operation]:
    """The ops of a block, in order, as they are now."""
    ops: list[Operation] = []
    op = first_op_of(block)
    while op is not None:
        ops.append(op)
        op = op_behind(op)
    return ops


def ops_in(op: Operation) -> list[Operation]:
    """An op and all that is nested in it, outer before inner, as they are now: what `walk` gives one by one."""
    found = [op]
    for region in op.regions:
        block = first_block_of(region)
        while block is not None:
            inner = first_op_of(block)
            while inner is not None:
                if inner.regions:
                    found += ops_in(inner)
                else:
                    found.append(inner)
                inner = op_behind(inner)
            block = block_behind(block)
    return found
