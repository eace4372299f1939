"""What `torch.utils.checkpoint` and the caller's rights over results mean for a partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from xdsl.ir import Operation, SSAValue

from ..common.memory import roots
from ._joint import CHECKPOINT, HAS_HOOK, region, word
from ._recompute import RecomputeClass


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


def pinned_ops(
    ops: Iterable[Operation],
    classes: Mapping[Operation, RecomputeClass],
    forced: set[Operation],
    outputs: Iterable[SSAValue],
) -> set[Operation]:
    """Ops that must not run again: those that the user wants saved, borders of regions, and readers of outputs.

    The caller may overwrite a result of the forward graph. Eager's autograd then complains only if it saved that
    result; so only ops of the backward graph that read it themselves may need it.
    """
    returned = {root for value in outputs for root in roots(value)} | set(outputs)
    returned = {value for value in returned if isinstance(value.owner, Operation)}
    found: set[Operation] = set()
    for op in ops:
        if op in forced:
            continue
        if word(op, CHECKPOINT) or (
            classes[op] is not RecomputeClass.FREE and any(_reads(value, returned) for value in op.operands)
        ):
            found.add(op)
    return found


def _reads(value: SSAValue, returned: set[SSAValue]) -> bool:
    return value in returned or any(root in returned for root in roots(value))
