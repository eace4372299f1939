"""Boxes of matrices that a copy engine brings: tensor descriptors, and the loads through them (TMA).

The engine wants addresses that are multiples of 16 bytes. So a kernel has the constant `BOXES`, which is False in the
variant for buffers at other addresses: there the same loads are plain. The descriptors are made by each program, in
memory that the host passes to the kernel for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dialects import kernel
from ...dialects.sym import symbol
from .kernel import BOXES
from .values import Value

if TYPE_CHECKING:
    from .context import Context, Lanes


class Boxes:
    """The descriptors of one kernel: (buffer, length of rows, sides of a box) -> name."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, int, str, str], str] = {}
        self._lines: list[str] = []

    def __len__(self) -> int:
        return len(self._names)

    @property
    def lines(self) -> list[str]:
        """Lines for the head of the kernel that make the descriptors."""
        return [f"    if {BOXES}:", *(f"        {line}" for line in self._lines)] if self._lines else []

    def name(self, context: Context, buffer: str, box: kernel.Box, sides: tuple[Lanes, Lanes]) -> str:
        """Name of the descriptor of boxes with these sides."""
        key = (buffer, box.length, sides[0].block, sides[1].block)
        if key not in self._names:
            name = self._names[key] = context.names.fresh(f"{buffer}_boxes")
            shape, block = f"[{box.rows}, {box.length}]", f"[{sides[0].block}, {sides[1].block}]"
            self._lines.append(f"{name} = tl.make_tensor_descriptor({buffer}, {shape}, [{box.length}, 1], {block})")
        return self._names[key]


def load_box(context: Context, op: kernel.LoadOp, plain: str) -> str:
    """Text of a load of a box, in the order of the frame, and of the plain load where the engine may not be used."""
    assert op.box is not None
    box = kernel.box_of(op, op.box.value.data)
    if isinstance(box, str) or len(context.frame) != 2:
        return plain
    lanes = {each.axis: each for each in context.lanes}
    sides = lanes[box.outer], lanes[box.inner]
    name = context.boxes.name(context, context.buffers[op.buffer], box, sides)
    places = []
    for side, place in zip(sides, (box.row, box.column), strict=True):
        first = f"{side.axis}_first"
        start = side.start or "0"
        if place is symbol(side.axis):
            places.append(start)
            continue
        context.symbols[first] = Value(start if start.isidentifier() or start.isdigit() else f"({start})", "int32")
        places.append(context.index(place.subs({side.axis: symbol(first)})).text)
    text = f"{name}.load([{', '.join(places)}])"
    if sides[0].dim != context.frame[0]:
        text = f"tl.trans({text})"
    return f"{text} if {BOXES} else {plain}"
