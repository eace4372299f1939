"""What lies in memory beside large results, in nests that are made of several.

The inputs of a kernel live as long as its results. Where a large tensor is filled from a small one, as a table's
gradient is from that of its rows, all that the small one is computed of would lie beside the large one if both were
computed together, where apart only the small one does. The large one is written anyway, and for less than
1/`SMALL_SHARE` of that the small one goes through memory once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp
from ..analysis.sizes import Sizes
from ._accesses import loads_in
from ._groups import Group, Groups

LARGE = 1 << 24
"""Bytes of results beside which neither one more launch nor a small value in memory counts: by `machines/` two
cores write them in 0.8 ms, 150 times as long as a launch, and a GPU in about the time of a launch."""
SMALL_SHARE = 64
"""What is small: this many times smaller than the results, so that writing and reading it moves 3 % more at most."""


def fusing_crowds_memory(groups: Groups, left: Group, right: Group, estimates: Sizes) -> str | None:
    """Why the later of two groups should not be fused with the earlier one that makes what it reads: a reason."""
    producer = groups.graph.producer
    own = set(left.nodes)
    handed = [v for v in right.reads if v in producer and producer[v] in own]
    made = [value for node in right.nodes for value in node.op.results]
    if not handed or not _are_small(handed, made, estimates):
        return None
    inputs = [v for v in left.reads if producer.get(v) not in own and v not in right.reads]
    return _reason(inputs, right.nodes[0].op, handed, made, estimates)


def inlining_crowds_memory(producer: GenerateOp, reader: Operation, estimates: Sizes) -> str | None:
    """Why a producer should not be computed in a nest that reads it: a reason."""
    if not _are_small(producer.results, reader.results, estimates):
        return None
    inputs = {load.operands[0]: None for load in loads_in(producer)}
    return _reason(inputs, reader, producer.results, reader.results, estimates)


def bytes_together(values: Iterable[SSAValue], estimates: Sizes) -> int:
    """Bytes that tensors take."""
    return sum(estimates.bytes(cast(TensorType, value.type)) for value in values)


def _are_small(between: Iterable[SSAValue], made: Iterable[SSAValue], estimates: Sizes) -> bool:
    return bytes_together(made, estimates) >= max(LARGE, SMALL_SHARE * bytes_together(between, estimates))


def _reason(
    inputs: Iterable[SSAValue],
    reader: Operation,
    between: Iterable[SSAValue],
    made: Iterable[SSAValue],
    estimates: Sizes,
) -> str | None:
    """Compare the inputs that nothing needs from `reader` on with the values in between."""
    positions = {op: k for k, op in enumerate(_block(reader).ops)}
    held = bytes_together((v for v in inputs if _last_use(v, positions) < positions[reader]), estimates)
    instead = bytes_together(between, estimates)
    if held <= instead:
        return None
    return f"{held} bytes would stay beside {bytes_together(made, estimates)} new ones, instead of {instead}"


def _block(op: Operation) -> Block:
    assert op.parent is not None
    return op.parent


def _last_use(value: SSAValue, positions: dict[Operation, int]) -> int:
    """Position of the last op of the function that uses a value, itself or in its regions."""
    last = -1
    for use in value.uses:
        op = use.operation
        while op not in positions and (above := op.parent_op()) is not None:
            op = above
        last = max(last, positions[op])
    return last
