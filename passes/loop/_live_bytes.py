"""What a fusion would keep in memory beside its results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.ir import Block, SSAValue

from ...dialects.aten.types import ITEM_SIZES, TensorType, torch_name
from ..common.estimates import Estimates
from ._groups import Group, Groups

LARGE = 1 << 24
"""Bytes of results beside which neither one more launch nor a small value in memory counts."""
SMALL_SHARE = 64
"""What is small: this many times smaller than the results."""


def crowds_memory(groups: Groups, left: Group, right: Group, estimates: Estimates) -> str | None:
    """Why the later of two groups should not be fused with the earlier one that makes what it reads: a reason.

    The inputs of a fusion live as long as its results, so all that `left` reads for the last time would lie in memory
    beside the results of `right`, where apart only the values do that `right` gets of it. This counts where a large
    tensor is filled from a small one, as a table's gradient is from that of its rows: the results are written
    anyway, and for less than 1/`SMALL_SHARE` of that the values in between go through memory once.
    """
    producer = groups.graph.producer
    own = set(left.nodes)
    handed = {v for v in right.reads if v in producer and producer[v] in own}
    if not handed:
        return None
    made = sum(_bytes(value, estimates) for node in right.nodes for value in node.op.results)
    between = sum(_bytes(value, estimates) for value in handed)
    if made < max(LARGE, SMALL_SHARE * between):
        return None
    first = right.nodes[0].position
    outside = [v for v in left.reads if producer.get(v) not in own and v not in right.reads]
    ending = [v for v in outside if max(_users(v, groups), default=-1) < first]
    held = sum(_bytes(value, estimates) for value in ending)
    return f"{held} bytes would stay beside {made} new ones, instead of {between}" if held > between else None


def _bytes(value: SSAValue, estimates: Estimates) -> int:
    kind = cast(TensorType, value.type)
    return estimates.product(kind.shape) * ITEM_SIZES[torch_name(kind.element)]


def _users(value: SSAValue, groups: Groups) -> Iterator[int]:
    """Positions of the nodes that use a value of the function; its end for what makes nothing, like a return."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    for use in value.uses:
        op = use.operation
        while op.parent is not block and (above := op.parent_op()) is not None:
            op = above
        yield groups.graph.producer[op.results[0]].position if op.results else len(groups.graph.nodes)
