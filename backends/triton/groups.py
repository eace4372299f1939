"""Loads of what groups of lanes share, such as the scales of a quantised weight: once a group."""

from __future__ import annotations

from ...dialects import kernel
from ...dialects.sym import Expr, symbol
from ...passes.analysis.loops import Loop
from ...passes.kernel.tiles import extent_of, tile_of
from .context import Context, Lanes
from .index import Code
from .values import Value

#: lanes of a group at least: of fewer a thread has several groups
_LEAST = 8


def load_groups(context: Context, op: kernel.LoadOp, place: Code, pointer: str, policy: str) -> str | None:
    """The text of a load whose place is the same for groups of neighbours in lanes; None for other loads.

    A block of an element a group is loaded, and spread. Loaded lane by lane, 1,024 lanes of four rows took 186
    registers of a thread in Triton 3.6, and memory that threads share as large as the tile: spread they take 96.

    pointer: text of the buffer; policy: further arguments
    """
    if not context.frame:
        return None
    lanes, loop = {each.dim: each for each in context.lanes}.get(context.frame[-1]), op.parent_op()
    if lanes is None or lanes.start or not isinstance(loop, kernel.ReduceOp | kernel.ForOp) or op.dynamic:
        return None
    if op.mask is not None or op.in_lanes is not None or op.box is not None or len(context.frame) > 2:
        return None
    size = _group(op.map.data[0], lanes.axis)
    is_whole = loop.axis.data == lanes.axis and loop.mapping.data == "vector" and size and tile_of(loop) % size == 0
    if not size or not is_whole or lanes.dim not in place.dims:
        return None
    if any(each.mask is not None for each in context.lanes if each is not lanes and each.dim in place.dims):
        return None
    groups = _groups(context, lanes, size)
    context.symbols[groups.text] = groups
    at = context.index(op.map.data[0].subs({lanes.axis: symbol(groups.text) * size}))
    arguments = f"{pointer} + {at.closed}"
    if lanes.mask is not None:
        inside = _mask(context, loop, groups, size)
        if inside is None:
            return None
        arguments += f", mask={inside}" + (", other=0" if op.value in context.zeroed else "")
    rows = [context.block_of(dim) if dim in place.dims else "1" for dim in context.frame[:-1]]
    shape, wide = ", ".join([*rows, f"{lanes.block} // {size}", str(size)]), ", ".join([*rows, lanes.block])
    spread = f"tl.broadcast_to(tl.expand_dims(tl.load({arguments}{policy}), {len(context.frame)}), [{shape}])"
    return f"tl.reshape({spread}, [{wide}])"


def _group(expr: Expr, axis: str) -> int | None:
    """How many neighbours along an axis share a place; None where they do not, or not alone by one quotient."""
    atoms = [atom for monomial, _ in expr.terms for atom in monomial if axis in atom.free_symbols]
    sizes = {
        atom.args[1].as_int() if atom.kind == "floordiv" and atom.args[0] is symbol(axis) else None for atom in atoms
    }
    (size,) = sizes if len(sizes) == 1 else (None,)
    return size if size is not None and size >= _LEAST and not size & (size - 1) else None


def _groups(context: Context, lanes: Lanes, size: int) -> Value:
    """The numbers of the groups of a tile."""
    width = "" if context.width is None else f".to({context.width})"
    steps = context.along(f"tl.arange(0, {lanes.block} // {size}){width}", lanes.dim)
    return context.define(steps, context.symbols[lanes.axis].dtype, (lanes.dim,), f"{lanes.axis}_group")


def _mask(context: Context, loop: Loop, groups: Value, size: int) -> Value | None:
    """Which groups are inside of an axis; None where one may be in part."""
    extent = extent_of(loop)
    count = extent.as_int()
    if count is None or count % size:
        return None
    return context.define(f"{groups} < {count // size}", "int1", groups.dims, f"{groups}_mask")
