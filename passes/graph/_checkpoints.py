"""What `torch.utils.checkpoint` and the caller's rights over results mean for a partition."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation, SSAValue

from ..analysis.memory import roots
from ._joint import CHECKPOINT, HAS_HOOK, region, word


def forced_ops(ops: Iterable[Operation]) -> set[Operation]:
    """Ops of checkpointed regions that run again.

    Not those at the border of two regions, else the second region would be run from the input of the first. Nor those
    whose result leaves its region through a hook on the gradient: the hook may be what makes running it again possible.
    """
    tagged = {op for op in ops if word(op, CHECKPOINT) == "recompute"}
    found: set[Operation] = set()
    for op in tagged:
        readers = [use.operation for result in op.results for use in result.uses]
        mine = region(op)
        regions = [region(reader) for reader in readers if reader in tagged]
        at_border = mine is not None and any(other is not None and other > mine for other in regions)
        if not at_border and not (HAS_HOOK in op.attributes and not regions):
            found.add(op)
    return found


def pinned_ops(ops: Iterable[Operation], forced: set[Operation]) -> set[Operation]:
    """Ops that must not run again: those that the user wants saved, and borders of checkpointed regions."""
    return {op for op in ops if op not in forced and word(op, CHECKPOINT)}


def unsaved_values(outputs: Iterable[SSAValue], read: Iterable[SSAValue]) -> set[SSAValue]:
    """Results of the forward graph that must not be saved, for the caller may overwrite them.

    Eager's autograd complains of that only if it saved such a result itself: if it is among `read`, what the backward
    graph reads as it is. The others may be computed again there.
    """
    returned = {root for value in outputs for root in (value, *roots(value))}
    returned -= {root for value in read for root in (value, *roots(value))}
    return {value for value in returned if isinstance(value.owner, Operation)}
