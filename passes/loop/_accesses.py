"""Reading and rewriting the loads inside nests without the generic accessors, which are slow on hot paths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.access import compact_dynamic, segments
from ...dialects.loop import LoadOp
from ...dialects.sym import Expr, MapAttr


class Access(NamedTuple):
    """Operands of a load by role."""

    source: SSAValue
    dynamic: tuple[SSAValue, ...]
    mask: SSAValue | None
    other: SSAValue | None


_PLAIN = segments(1, 0, 0, 0)
_masked: dict[DenseArrayBase, bool] = {_PLAIN: False}


def access_of(load: LoadOp) -> Access:
    """Source, dynamic indices and mask of a load."""
    operands = tuple(load.operands)
    if len(operands) == 1:
        return Access(operands[0], (), None, None)
    sizes = cast("DenseArrayBase[IntegerType]", load.properties["operandSegmentSizes"])
    masked = _masked.get(sizes)
    if masked is None:
        masked = _masked[sizes] = sizes.get_values()[2] == 1
    if masked:
        return Access(operands[0], operands[1:-2], operands[-2], operands[-1])
    return Access(operands[0], operands[1:], None, None)


def map_of(load: LoadOp) -> MapAttr:
    """The index map of a load."""
    return cast(MapAttr, load.properties["map"])


def set_access(load: LoadOp, access: Access, index_map: MapAttr) -> None:
    """Make a load read something else of the same element type."""
    masked = () if access.mask is None or access.other is None else (access.mask, access.other)
    n = 1 if masked else 0
    load.operands = (access.source, *access.dynamic, *masked)
    load.properties["operandSegmentSizes"] = segments(1, len(access.dynamic), n, n)
    load.properties["map"] = index_map


def redirect(load: LoadOp, source: SSAValue, exprs: tuple[Expr, ...]) -> None:
    """Make a load read `source` at `exprs`, which may use the load's dynamic indices."""
    if len(load.operands) == 1:
        load.operands[0] = source
        load.properties["map"] = MapAttr.of(*exprs)
        return
    access = access_of(load)
    index_map, dynamic = compact_dynamic(exprs, access.dynamic)
    set_access(load, Access(source, dynamic, access.mask, access.other), index_map)


def body_ops(block: Block | None) -> Iterator[Operation]:
    """Ops of a block; the current one may be erased, and what is inserted before it is not visited."""
    op = block.first_op if block is not None else None
    while op is not None:
        following = op.next_op
        yield op
        op = following


def loads_in(op: Operation) -> list[LoadOp]:
    """All loads in the regions of an op, also inside its reduces, in order."""
    found: list[LoadOp] = []
    _collect_loads(op, found)
    return found


def _collect_loads(op: Operation, found: list[LoadOp]) -> None:
    for region in op.regions:
        block = region.blocks.first
        inner = block.first_op if block is not None else None
        while inner is not None:
            if type(inner) is LoadOp:
                found.append(inner)
            elif inner.regions:
                _collect_loads(inner, found)
            inner = inner.next_op
