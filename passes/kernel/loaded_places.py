"""Where along an axis a condition on loaded numbers can hold, told by a running kernel from their extrema in a tile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ...dialects import kernel
from ...dialects.sym import Expr, SymAttr, symbol
from ...records import dataclass
from ..analysis.slices import backward_slice
from .hidden_places import Places
from .transforms import substitute_axes

#: by arith's predicate of signed integers: the one that holds where it does not, and the one of swapped operands
_OPPOSITE = {0: 1, 1: 0, 2: 5, 3: 4, 4: 3, 5: 2}
_SWAPPED = {0: 0, 1: 1, 2: 4, 3: 5, 4: 2, 5: 3}
_NAMES = ("eq", "ne", "slt", "sle", "sgt", "sge")


@dataclass(frozen=True)
class Condition:
    """A condition that places have to meet; None for `parts` of `any` or `all` others.

    compared: (a number of a row, arith's predicate, a number of a place): some row of the tile has to meet it
    told:     (a truth of a place, what it has to be)
    """

    kind: str = "anywhere"
    parts: tuple[Condition, ...] = ()
    compared: tuple[SSAValue, int, SSAValue] | None = None
    told: tuple[SSAValue, bool] | None = None

    def common(self, other: Condition) -> Condition:
        """What meets both."""
        if self.kind == "anywhere" or other.kind == "anywhere":
            return other if self.kind == "anywhere" else self
        return Condition("all", (self, other))

    def hull(self, other: Condition) -> Condition:
        """What meets either."""
        return (
            self if self.kind == "anywhere" else other if other.kind == "anywhere" else Condition("any", (self, other))
        )

    def rows(self) -> list[SSAValue]:
        """The numbers of rows that are compared."""
        own = [] if self.compared is None else [self.compared[0]]
        return [*own, *(value for part in self.parts for value in part.rows())]


@dataclass(frozen=True)
class LoadedPlaces(Places):
    """Looks for conditions on what is loaded.

    row: the axis of the rows
    """

    row: str = ""
    anywhere: ClassVar[Any] = Condition()

    def told(self, condition: SSAValue, holds: bool) -> Condition:
        """A truth that varies along the axis, and not along the rows."""
        is_place = condition.type == i1 and self._is_simple(condition) and self._side(condition) == self.axis
        return Condition("told", told=(condition, holds)) if is_place else self.anywhere

    def compared(self, op: arith.CmpiOp, holds: bool) -> Condition:
        """A comparison of a number of a row with one of a place, of which one is loaded."""
        predicate = op.predicate.value.data
        if predicate not in _OPPOSITE or not all(map(self._is_simple, op.operands)):
            return self.anywhere
        if not any(map(_is_loaded, op.operands)):
            return self.anywhere
        if not holds:
            predicate = _OPPOSITE[predicate]
        sides = [self._side(value) for value in op.operands]
        if sides == [self.row, self.axis]:
            return Condition("compared", compared=(op.lhs, predicate, op.rhs))
        if sides == [self.axis, self.row]:
            return Condition("compared", compared=(op.rhs, _SWAPPED[predicate], op.lhs))
        return self.told(op.result, holds) if set(sides) == {self.axis, ""} else self.anywhere

    def _side(self, value: SSAValue) -> str | None:
        """Along which of both axes a scalar varies; empty for neither, None for both."""
        axes = kernel.axes_of(value) & {self.axis, self.row}
        return None if len(axes) == 2 else next(iter(axes), "")

    @staticmethod
    def _is_simple(value: SSAValue) -> bool:
        """Whether a scalar is an integer that is computed without loops, and reads no local buffer."""
        op = value.owner
        if not isinstance(op, Operation) or op.regions or not isinstance(value.type, IntegerType):
            return False
        if isinstance(op, kernel.LoadOp):
            is_plain = op.mask is None and not op.buffer.type.local  # pyright: ignore[reportAttributeAccessIssue]
            return is_plain and all(map(LoadedPlaces._is_simple, op.dynamic))
        return all(map(LoadedPlaces._is_simple, op.operands))


def _is_loaded(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, kernel.LoadOp) or (isinstance(op, Operation) and any(map(_is_loaded, op.operands)))


class Builder:
    """Builds the code that finds the first and the last place that meets a condition."""

    def __init__(self, extrema: Mapping[SSAValue, tuple[SSAValue, SSAValue]], axes: Mapping[str, Expr]) -> None:
        """extrema: of the numbers of rows, in the tile; axes: the axis of the places under another name."""
        self.extrema = extrema
        self.axes = axes
        self.ops: list[Operation] = []

    def add(self, op: Operation) -> SSAValue:
        """Append an op with one result."""
        self.ops.append(op)
        return op.results[0]

    def holds(self, condition: Condition) -> SSAValue:
        """A truth: whether a place meets a condition."""
        if condition.compared is not None:
            return self._compared(*condition.compared)
        if condition.told is not None:
            value, wanted = condition.told
            found = self.copied(value)
            if wanted:
                return found
            true = self.add(arith.ConstantOp(IntegerAttr(1, i1)))
            return self.add(arith.XOrIOp(found, true))
        first, second = (self.holds(part) for part in condition.parts)
        return self.add((arith.AndIOp if condition.kind == "all" else arith.OrIOp)(first, second))

    def _compared(self, row: SSAValue, predicate: int, place: SSAValue) -> SSAValue:
        """Whether some number between the extrema of the rows can meet a comparison."""
        lowest, highest = self.extrema[row]
        value = self.copied(place)
        name = _NAMES[predicate]
        if name == "eq":
            above, below = arith.CmpiOp(lowest, value, "sle"), arith.CmpiOp(highest, value, "sge")
            return self.add(arith.AndIOp(self.add(above), self.add(below)))
        if name == "ne":
            above, below = arith.CmpiOp(lowest, value, "ne"), arith.CmpiOp(highest, value, "ne")
            return self.add(arith.OrIOp(self.add(above), self.add(below)))
        return self.add(arith.CmpiOp(lowest if name in ("slt", "sle") else highest, value, name))

    def copied(self, value: SSAValue) -> SSAValue:
        """What a scalar is computed from, with its axes under their new names."""
        return copied(value, self.axes, self.ops)


def copied(value: SSAValue, axes: Mapping[str, Expr], ops: list[Operation]) -> SSAValue:
    """Append copies of the ops that compute a scalar, with other names of axes."""
    block, mapping = Block(), {}
    for op in backward_slice([value]):
        block.add_op(op.clone(mapping))
    substitute_axes(block, axes)
    for op in list(block.ops):
        op.detach()
        ops.append(op)
    return mapping[value]


def index(expr: Expr) -> kernel.IndexOp:
    """An index expression as a value."""
    return kernel.IndexOp.create(properties={"expr": SymAttr.of(expr)}, result_types=(i64,))


def extrema(value: SSAValue, row: str, bounds: tuple[Expr, Expr], size: int, name: str) -> kernel.ReduceOp:
    """The lowest and the highest of a number of the rows of a tile, along an axis of a new name."""
    ops: list[Operation] = []
    found = copied(value, {row: symbol(name)}, ops)
    ops.append(kernel.YieldOp.create(operands=(found, found)))
    return kernel.ReduceOp.of(name, *bounds, ["min", "max"], Region(Block(ops)), "vector", size)
