"""Which loads of a kernel see memory that the same kernel writes in place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Operation

from ...dialects.loop import FusionOp, GenerateOp, LoadOp, ReduceOp, ScanOp, ScatterOp
from ...dialects.sym import AxesAttr, Expr, Ranges
from .scatters import boxes_apart, continues

Place = str | None
"""The fusion axis that an index runs along; None for an axis of size 1."""


def places_around(op: Operation) -> dict[str, str]:
    """By name, the fusion axis of each axis around an op inside a member; `_` where it has none."""
    places: dict[str, str] = {}
    around = op.parent_op()
    while around is not None and not isinstance(around, FusionOp):
        on = cast("ArrayAttr[StringAttr] | None", around.properties.get("on"))
        axes = cast(AxesAttr, around.properties["axes"])
        names = [n.data for n in on.data] if on is not None else ["_"] * len(axes.data)
        places.update(zip(axes.names, names, strict=True))
        around = around.parent_op() if isinstance(around, ReduceOp) else None
    return places


def _placed(exprs: Sequence[Expr], places: dict[str, str], sizes: dict[str, Expr]) -> list[Place] | None:
    """The fusion axis that is each index; None as a whole when some index is no axis with a place."""
    found: list[Place] = []
    for expr in exprs:
        atom = expr.as_atom
        name = atom.name if atom is not None and atom.kind == "symbol" else ""
        size = sizes.get(name)
        if expr.as_int() == 0 or (size is not None and size.as_int() == 1):
            found.append(None)
        elif places.get(name, "_") != "_":
            found.append(places[name])
        else:
            return None
    return found


def _sizes_around(op: Operation) -> dict[str, Expr]:
    sizes: dict[str, Expr] = {}
    around = op.parent_op()
    while around is not None and not isinstance(around, FusionOp):
        sizes.update(cast(AxesAttr, around.properties["axes"]).data)
        around = around.parent_op() if isinstance(around, ReduceOp) else None
    return sizes


def member_index(member: GenerateOp | ScanOp) -> list[Place]:
    """The fusion axis of each dimension of a member's results."""
    names = [n.data for n in member.on.data] if member.on is not None else []
    return [None if name == "_" else name for name in names]


def reads_only_at(load: LoadOp, fusion: FusionOp, index: list[Place]) -> bool:
    """Whether a load reads, at each point of the kernel, just the element that a member at `index` has there."""
    placed = _placed(load.map.data, places_around(load), _sizes_around(load))
    return placed == index and not load.dynamic


def reads_only_own_element(load: LoadOp, scatter: ScatterOp, fusion: FusionOp) -> bool:
    """Whether a load of a scatter's destination reads, at each point, just the element that is written there."""
    if load.parent is scatter.body.block and scatter.unique is not None:
        return not load.dynamic and not scatter.dynamic and load.map == scatter.map
    inside = load.parent_op()
    while inside is not None and not isinstance(inside, FusionOp):
        if inside is scatter:
            return False
        inside = inside.parent_op()
    names = scatter.on.data if scatter.on is not None else ()
    places = dict(zip(scatter.axes.names, (n.data for n in names), strict=False))
    written = _placed(scatter.map.data, places, dict(scatter.axes.data))
    is_before = load.parent_op() is not None and _member_of(load).is_before_in_block(scatter)
    return is_before and written is not None and scatter.unique is not None and reads_only_at(load, fusion, written)


def reads_apart(load: LoadOp, scatter: ScatterOp, fusion: FusionOp, ranges: Ranges) -> bool:
    """Whether a load of a scatter's destination reads no element that the scatter, or one of the kernel that goes on
    in its result, writes at any point."""
    index, axes = load.map.data, tuple(_sizes_around(load).items())
    return all(boxes_apart(index, axes, op.map.data, op.axes.data, ranges) for op in continues(scatter, fusion))


def _member_of(op: Operation) -> Operation:
    around = op
    while (parent := around.parent_op()) is not None and not isinstance(parent, FusionOp):
        around = parent
    return around
