"""Nests whose schedule somebody chose: `pinned` on the outermost loop. No pass that chooses changes their loops."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation

from ...dialects import kernel
from ..analysis.loops import Loop, is_loop
from ..remarks import remark

#: a loop as text: axis, range, mapping, tile
Schedule = tuple[str, ...]
Schedules = dict[Schedule, Operation]


def nest_of(op: Operation) -> Operation:
    """The outermost op of a kernel that is around an op, or the op itself."""
    while (parent := op.parent_op()) is not None and not isinstance(parent, kernel.FuncOp):
        op = parent
    return op


def is_pinned(op: Operation) -> bool:
    """Whether the nest around an op is pinned."""
    return "pinned" in nest_of(op).properties


def has_pinned(function: kernel.FuncOp) -> bool:
    """Whether a kernel has a pinned nest."""
    return any("pinned" in op.properties for op in function.body.block.ops)


def pin(op: Operation) -> None:
    """Pin the nest around a loop."""
    nest_of(op).properties["pinned"] = UnitAttr()


def pinned_schedules(module: ModuleOp) -> Schedules:
    """The schedule of each pinned nest, with the nest."""
    nests = [
        op
        for function in module.body.block.ops
        if isinstance(function, kernel.FuncOp)
        for op in function.body.block.ops
        if "pinned" in op.properties
    ]
    return {tuple(_loops(nest, "")): nest for nest in nests if is_loop(nest)}


def _loops(op: Loop, indent: str) -> Iterator[str]:
    yield f"{indent}{_shown(op)}"
    for region in op.regions:
        yield from _inside(region.block, indent + " ")


def _inside(block: Block, indent: str) -> Iterator[str]:
    for op in block.ops:
        if is_loop(op):
            yield from _loops(op, indent)


def _shown(op: Loop) -> str:
    tile = "" if op.tile is None else f" tile {op.tile.value.data}"
    return f"{op.axis.data} in {op.lo.data} to {op.hi.data} map {op.mapping.data}{tile}"


def remark_changes(before: Schedules, module: ModuleOp, pass_name: str) -> None:
    """A remark for each pinned schedule that a pass did not keep."""
    after = pinned_schedules(module)
    for schedule, nest in before.items():
        if schedule not in after:
            now = next((each for each, op in after.items() if op is nest), None)
            changed = _first_change(schedule, now) if now is not None else "the nest is no more"
            remark("missed", pass_name, nest if now is not None else None, f"a pinned schedule is not kept: {changed}")


def _first_change(before: Schedule, after: Schedule) -> str:
    for old, new in zip(before, after, strict=False):
        if old != new:
            return f"{old.strip()} is now {new.strip()}"
    return f"{len(before)} loops are now {len(after)}"
