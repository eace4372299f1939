"""Tiled axes: how long they are, what one tile covers, whether all tiles are full."""

from __future__ import annotations

from ...dialects.sym import ZERO, Expr, Ranges, bounds, ceildiv, is_multiple, simplify
from ..analysis.loops import Loop


def tile_of(op: Loop) -> int:
    """Elements of the axis that one step takes; 1 without a tile."""
    return 1 if op.tile is None else op.tile.value.data


def is_tiled(op: Loop) -> bool:
    """Whether a scalar in the loop stands for several elements."""
    return tile_of(op) > 1


def is_grid(op: object) -> bool:
    """Whether the axis is spread over programs."""
    return isinstance(op, Loop) and op.mapping.data == "grid"


def extent_of(op: Loop) -> Expr:
    """Length of the axis."""
    return op.hi.data - op.lo.data


def covers(length: Expr, tile: int, ranges: Ranges) -> bool:
    """Whether one tile is certainly as long as an axis."""
    _, most = bounds(length, ranges)
    return most is not None and most <= tile


def is_persistent(op: Loop, ranges: Ranges) -> bool:
    """Whether one tile covers the axis, so that nothing loops and every element stays at hand."""
    return is_tiled(op) and not is_grid(op) and covers(extent_of(op), tile_of(op), ranges)


def all_full(op: Loop, ranges: Ranges) -> bool:
    """Whether no tile reaches beyond the axis."""
    if is_persistent(op, ranges):  # its one tile is there even if the axis is empty
        least, _ = bounds(extent_of(op), ranges)
        return least is not None and least >= tile_of(op)
    if simplify(extent_of(op) % tile_of(op), ranges) is ZERO:
        return True
    return all(is_multiple(bound, tile_of(op), ranges) for bound in (op.lo.data, op.hi.data))


def steps(op: Loop) -> Expr:
    """Tiles along the axis."""
    return ceildiv(extent_of(op), tile_of(op))
