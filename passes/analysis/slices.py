"""Which ops values are computed by: backward slices, and what regions use from around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.raw import operands_of


def _anything(op: Operation) -> bool:
    return True


def backward_slice(values: Iterable[SSAValue], enters: Callable[[Operation], bool] = _anything) -> Iterator[Operation]:
    """The ops that values are computed by, each once, behind those that it reads.

    The walk goes back through the ops that it `enters`; what other ops make is given. What the regions of an op use
    from around it counts as its operands.
    """
    done: set[Operation] = set()
    stack: list[tuple[Operation | Block, bool]] = [(value.owner, False) for value in reversed(list(values))]
    while stack:
        op, is_ready = stack.pop()
        if isinstance(op, Block) or op in done:
            continue
        if is_ready:
            done.add(op)
            yield op
        elif enters(op):
            stack.append((op, True))
            stack += [(value.owner, False) for value in reversed(inputs_of(op))]


def inputs_of(op: Operation) -> Sequence[SSAValue]:
    """The values that an op uses, in its regions too, of those that are not made in these."""
    if not op.regions:
        return operands_of(op)
    made: set[SSAValue] = set()
    found: dict[SSAValue, None] = {}
    for inner in op.walk():
        found.update((value, None) for value in operands_of(inner) if value not in made)
        made.update(argument for region in inner.regions for block in region.blocks for argument in block.args)
        made.update(() if inner is op else inner.results)
    return list(found)
