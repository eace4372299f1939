"""Reductions that compute more than is used."""

from __future__ import annotations

from xdsl.ir import Block, Region, SSAValue

from ...dialects import kernel
from ...dialects.loop import MONOIDS, yielded
from ...dialects.raw import ops_of
from ..counters import counter

#: monoid -> what computes its first result alone
_FIRST_ALONE = {"argmax": "max", "argmin": "min"}


def prune_reductions(block: Block) -> bool:
    """Remove combiners and indices of extrema whose results nothing uses. Returns whether there were any."""
    changed = False
    for op in ops_of(block):
        if isinstance(op, kernel.ReduceOp) and op.combine is None:
            changed |= _prune(block, op)
    for op in ops_of(block):
        for region in op.regions:
            changed |= prune_reductions(region.block)
    return changed


def _prune(block: Block, op: kernel.ReduceOp) -> bool:
    names: list[str] = []
    kept: list[int] = []
    start = 0
    for combiner in op.combiners:
        name = combiner.data
        positions = range(start, start + MONOIDS[name].arity)
        start = positions.stop
        used = [k for k in positions if op.results[k].first_use is not None]
        if used == [positions[0]] and name in _FIRST_ALONE:
            names.append(_FIRST_ALONE[name])
            kept += used
        elif used:
            names.append(name)
            kept += positions
    if len(kept) == len(op.results) or not kept or not counter("kernel-cse"):
        return False
    _replace(block, op, names, kept)
    return True


def _replace(block: Block, op: kernel.ReduceOp, names: list[str], kept: list[int]) -> None:
    values = yielded(op.body)
    body = op.body.block
    last = body.last_op
    assert last is not None
    body.erase_op(last)
    body.add_op(kernel.YieldOp.create(operands=tuple(values[k] for k in kept), location=last.location))
    region: Region = op.detach_region(op.body)
    tile = op.tile.value.data if op.tile is not None else None
    new = kernel.ReduceOp.of(
        op.axis.data, op.lo.data, op.hi.data, names, region, op.mapping.data, tile, location=op.location
    )
    block.insert_op_before(new, op)
    results: list[SSAValue] = list(op.results)
    for position, result in zip(kept, new.results, strict=True):
        results[position].replace_all_uses_with(result)
    block.erase_op(op)
