"""Where along an axis a condition on loaded numbers can hold, told by a running kernel from their extrema in a tile."""
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
from __future__ import annotations
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
from collections.abc import Mapping
from ..analysis.slices import backward_slice
from dataclasses import dataclass
from ..analysis.slices import backward_slice
from typing import Any, ClassVar
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
from xdsl.dialects import arith
from ..analysis.slices import backward_slice
from xdsl.dialects.builtin import IntegerAttr, IntegerType, i1, i64
from ..analysis.slices import backward_slice
from xdsl.ir import Block, Operation, Region, SSAValue
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
from ...dialects import kernel
from ..analysis.slices import backward_slice
from ...dialects.sym import Expr, SymAttr, symbol
from ..analysis.slices import backward_slice
from .hidden_places import Places
from ..analysis.slices import backward_slice
from .transforms import substitute_axes
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
#: by arith's predicate of signed integers: the one that holds where it does not, and the one of swapped operands
from ..analysis.slices import backward_slice
_OPPOSITE = {0: 1, 1: 0, 2: 5, 3: 4, 4: 3, 5: 2}
from ..analysis.slices import backward_slice
_SWAPPED = {0: 0, 1: 1, 2: 4, 3: 5, 4: 2, 5: 3}
from ..analysis.slices import backward_slice
_NAMES = ("eq", "ne", "slt", "sle", "sgt", "sge")
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
@dataclass(frozen=True)
from ..analysis.slices import backward_slice
class Condition:
from ..analysis.slices import backward_slice
    """A condition that places have to meet; None for `parts` of `any` or `all` others.
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    compared: (a number of a row, arith's predicate, a number of a place): some row of the tile has to meet it
from ..analysis.slices import backward_slice
    told:     (a truth of a place, what it has to be)
from ..analysis.slices import backward_slice
    """
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    kind: str = "anywhere"
from ..analysis.slices import backward_slice
    parts: tuple[Condition, ...] = ()
from ..analysis.slices import backward_slice
    compared: tuple[SSAValue, int, SSAValue] | None = None
from ..analysis.slices import backward_slice
    told: tuple[SSAValue, bool] | None = None
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def common(self, other: Condition) -> Condition:
from ..analysis.slices import backward_slice
        """What meets both."""
from ..analysis.slices import backward_slice
        if self.kind == "anywhere" or other.kind == "anywhere":
from ..analysis.slices import backward_slice
            return other if self.kind == "anywhere" else self
from ..analysis.slices import backward_slice
        return Condition("all", (self, other))
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def hull(self, other: Condition) -> Condition:
from ..analysis.slices import backward_slice
        """What meets either."""
from ..analysis.slices import backward_slice
        return (
from ..analysis.slices import backward_slice
            self if self.kind == "anywhere" else other if other.kind == "anywhere" else Condition("any", (self, other))
from ..analysis.slices import backward_slice
        )
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def rows(self) -> list[SSAValue]:
from ..analysis.slices import backward_slice
        """The numbers of rows that are compared."""
from ..analysis.slices import backward_slice
        own = [] if self.compared is None else [self.compared[0]]
from ..analysis.slices import backward_slice
        return [*own, *(value for part in self.parts for value in part.rows())]
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
@dataclass(frozen=True)
from ..analysis.slices import backward_slice
class LoadedPlaces(Places):
from ..analysis.slices import backward_slice
    """Looks for conditions on what is loaded.
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    row: the axis of the rows
from ..analysis.slices import backward_slice
    """
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    row: str = ""
from ..analysis.slices import backward_slice
    anywhere: ClassVar[Any] = Condition()
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def told(self, condition: SSAValue, holds: bool) -> Condition:
from ..analysis.slices import backward_slice
        """A truth that varies along the axis, and not along the rows."""
from ..analysis.slices import backward_slice
        is_place = condition.type == i1 and self._is_simple(condition) and self._side(condition) == self.axis
from ..analysis.slices import backward_slice
        return Condition("told", told=(condition, holds)) if is_place else self.anywhere
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def compared(self, op: arith.CmpiOp, holds: bool) -> Condition:
from ..analysis.slices import backward_slice
        """A comparison of a number of a row with one of a place, of which one is loaded."""
from ..analysis.slices import backward_slice
        predicate = op.predicate.value.data
from ..analysis.slices import backward_slice
        if predicate not in _OPPOSITE or not all(map(self._is_simple, op.operands)):
from ..analysis.slices import backward_slice
            return self.anywhere
from ..analysis.slices import backward_slice
        if not any(map(_is_loaded, op.operands)):
from ..analysis.slices import backward_slice
            return self.anywhere
from ..analysis.slices import backward_slice
        if not holds:
from ..analysis.slices import backward_slice
            predicate = _OPPOSITE[predicate]
from ..analysis.slices import backward_slice
        sides = [self._side(value) for value in op.operands]
from ..analysis.slices import backward_slice
        if sides == [self.row, self.axis]:
from ..analysis.slices import backward_slice
            return Condition("compared", compared=(op.lhs, predicate, op.rhs))
from ..analysis.slices import backward_slice
        if sides == [self.axis, self.row]:
from ..analysis.slices import backward_slice
            return Condition("compared", compared=(op.rhs, _SWAPPED[predicate], op.lhs))
from ..analysis.slices import backward_slice
        return self.told(op.result, holds) if set(sides) == {self.axis, ""} else self.anywhere
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def _side(self, value: SSAValue) -> str | None:
from ..analysis.slices import backward_slice
        """Along which of both axes a scalar varies; empty for neither, None for both."""
from ..analysis.slices import backward_slice
        axes = kernel.axes_of(value) & {self.axis, self.row}
from ..analysis.slices import backward_slice
        return None if len(axes) == 2 else next(iter(axes), "")
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    @staticmethod
from ..analysis.slices import backward_slice
    def _is_simple(value: SSAValue) -> bool:
from ..analysis.slices import backward_slice
        """Whether a scalar is an integer that is computed without loops, and reads no local buffer."""
from ..analysis.slices import backward_slice
        op = value.owner
from ..analysis.slices import backward_slice
        if not isinstance(op, Operation) or op.regions or not isinstance(value.type, IntegerType):
from ..analysis.slices import backward_slice
            return False
from ..analysis.slices import backward_slice
        if isinstance(op, kernel.LoadOp):
from ..analysis.slices import backward_slice
            is_plain = op.mask is None and not op.buffer.type.local  # pyright: ignore[reportAttributeAccessIssue]
from ..analysis.slices import backward_slice
            return is_plain and all(map(LoadedPlaces._is_simple, op.dynamic))
from ..analysis.slices import backward_slice
        return all(map(LoadedPlaces._is_simple, op.operands))
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
def _is_loaded(value: SSAValue) -> bool:
from ..analysis.slices import backward_slice
    op = value.owner
from ..analysis.slices import backward_slice
    return isinstance(op, kernel.LoadOp) or (isinstance(op, Operation) and any(map(_is_loaded, op.operands)))
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
class Builder:
from ..analysis.slices import backward_slice
    """Builds the code that finds the first and the last place that meets a condition."""
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def __init__(self, extrema: Mapping[SSAValue, tuple[SSAValue, SSAValue]], axes: Mapping[str, Expr]) -> None:
from ..analysis.slices import backward_slice
        """extrema: of the numbers of rows, in the tile; axes: the axis of the places under another name."""
from ..analysis.slices import backward_slice
        self.extrema = extrema
from ..analysis.slices import backward_slice
        self.axes = axes
from ..analysis.slices import backward_slice
        self.ops: list[Operation] = []
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def add(self, op: Operation) -> SSAValue:
from ..analysis.slices import backward_slice
        """Append an op with one result."""
from ..analysis.slices import backward_slice
        self.ops.append(op)
from ..analysis.slices import backward_slice
        return op.results[0]
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def holds(self, condition: Condition) -> SSAValue:
from ..analysis.slices import backward_slice
        """A truth: whether a place meets a condition."""
from ..analysis.slices import backward_slice
        if condition.compared is not None:
from ..analysis.slices import backward_slice
            return self._compared(*condition.compared)
from ..analysis.slices import backward_slice
        if condition.told is not None:
from ..analysis.slices import backward_slice
            value, wanted = condition.told
from ..analysis.slices import backward_slice
            found = self.copied(value)
from ..analysis.slices import backward_slice
            if wanted:
from ..analysis.slices import backward_slice
                return found
from ..analysis.slices import backward_slice
            true = self.add(arith.ConstantOp(IntegerAttr(1, i1)))
from ..analysis.slices import backward_slice
            return self.add(arith.XOrIOp(found, true))
from ..analysis.slices import backward_slice
        first, second = (self.holds(part) for part in condition.parts)
from ..analysis.slices import backward_slice
        return self.add((arith.AndIOp if condition.kind == "all" else arith.OrIOp)(first, second))
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def _compared(self, row: SSAValue, predicate: int, place: SSAValue) -> SSAValue:
from ..analysis.slices import backward_slice
        """Whether some number between the extrema of the rows can meet a comparison."""
from ..analysis.slices import backward_slice
        lowest, highest = self.extrema[row]
from ..analysis.slices import backward_slice
        value = self.copied(place)
from ..analysis.slices import backward_slice
        name = _NAMES[predicate]
from ..analysis.slices import backward_slice
        if name == "eq":
from ..analysis.slices import backward_slice
            above, below = arith.CmpiOp(lowest, value, "sle"), arith.CmpiOp(highest, value, "sge")
from ..analysis.slices import backward_slice
            return self.add(arith.AndIOp(self.add(above), self.add(below)))
from ..analysis.slices import backward_slice
        if name == "ne":
from ..analysis.slices import backward_slice
            above, below = arith.CmpiOp(lowest, value, "ne"), arith.CmpiOp(highest, value, "ne")
from ..analysis.slices import backward_slice
            return self.add(arith.OrIOp(self.add(above), self.add(below)))
from ..analysis.slices import backward_slice
        return self.add(arith.CmpiOp(lowest if name in ("slt", "sle") else highest, value, name))
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
    def copied(self, value: SSAValue) -> SSAValue:
from ..analysis.slices import backward_slice
        """What a scalar is computed from, with its axes under their new names."""
from ..analysis.slices import backward_slice
        return copied(value, self.axes, self.ops)
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
def copied(value: SSAValue, axes: Mapping[str, Expr], ops: list[Operation]) -> SSAValue:
from ..analysis.slices import backward_slice
    """Append copies of the ops that compute a scalar, with other names of axes."""
from ..analysis.slices import backward_slice
    block, mapping = Block(), {}
from ..analysis.slices import backward_slice
    for op in backward_slice([value]):
from ..analysis.slices import backward_slice
        block.add_op(op.clone(mapping))
from ..analysis.slices import backward_slice
    substitute_axes(block, axes)
from ..analysis.slices import backward_slice
    for op in list(block.ops):
from ..analysis.slices import backward_slice
        op.detach()
from ..analysis.slices import backward_slice
        ops.append(op)
from ..analysis.slices import backward_slice
    return mapping[value]
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
def index(expr: Expr) -> kernel.IndexOp:
from ..analysis.slices import backward_slice
    """An index expression as a value."""
from ..analysis.slices import backward_slice
    return kernel.IndexOp.create(properties={"expr": SymAttr.of(expr)}, result_types=(i64,))
from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice

from ..analysis.slices import backward_slice
def extrema(value: SSAValue, row: str, bounds: tuple[Expr, Expr], size: int, name: str) -> kernel.ReduceOp:
from ..analysis.slices import backward_slice
    """The lowest and the highest of a number of the rows of a tile, along an axis of a new name."""
from ..analysis.slices import backward_slice
    ops: list[Operation] = []
from ..analysis.slices import backward_slice
    found = copied(value, {row: symbol(name)}, ops)
from ..analysis.slices import backward_slice
    ops.append(kernel.YieldOp.create(operands=(found, found)))
from ..analysis.slices import backward_slice
    return kernel.ReduceOp.of(name, *bounds, ["min", "max"], Region(Block(ops)), "vector", size)
from ..analysis.slices import backward_slice
