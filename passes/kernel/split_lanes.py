"""The pass `kernel-split-lanes`, and conditions on an axis."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.arith import AndIOp, CmpiOp, OrIOp, SelectOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import kernel
from ...dialects.sym import Expr, as_expr
from ..counters import counter
from .axes import Loop, flat_vector_loops
from .pinned import is_pinned
from .scheduled import tiled_for_cpu
from .simplify_block import remove_dead
from .transforms import set_range

#: parts of a loop at most: each has the body once more
PARTS = 4
#: `a < b` and its kin as: (where `a - b < offset` decides, whether it is true below)
_ORDERED = {2: (0, True), 3: (1, True), 4: (1, False), 5: (0, False)}

Condition = tuple[int, bool]


@dataclass(frozen=True)
class KernelSplitLanes(ModulePass):
    """Split vector loops where conditions on their axis change: nothing is masked inside (index-set splitting).

    Level: kernel.

    Precondition: `kernel-choose-threads` for a CPU; other kernels stay as they are.
    Guarantee: a vector loop of constant bounds that conditions cut into at most four parts, each long enough to fill
    the lanes, is these parts one after the other, without the conditions. Every iteration runs once, in order.

        kernel.for i0 in 0 to 128 map vector tile 16 {
          %i = kernel.index i0  %n = kernel.index 64  %c = arith.cmpi slt, %i, %n : i64
          %v = arith.select %c, %a, %b : f32 ... }
    becomes
        kernel.for i0 in 0 to 64 map vector tile 16 { ... %a ... }
        kernel.for i0 in 64 to 128 map vector tile 16 { ... %b ... }
    """

    name = "kernel-split-lanes"
    level: ClassVar[str] = "kernel"
    optional: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split loops of every kernel for a CPU."""
        for function, _ in tiled_for_cpu(op):
            split_lanes(function)


def split_lanes(function: kernel.FuncOp) -> None:
    """Split the vector loops of a kernel that have constant bounds where conditions on their axis change.

    The parts run one after the other in the order of the axis, so that every iteration runs once, as before.
    """
    for op in flat_vector_loops(function):
        if not is_pinned(op):
            _split(op)


def _split(op: kernel.ForOp) -> None:
    lo, hi, tile = op.lo.data.as_int(), op.hi.data.as_int(), op.tile
    if lo is None or hi is None or tile is None:
        return
    conditions = [c for inner in op.body.block.ops if (c := condition_on(inner, op)) is not None]
    bounds = sorted({lo, hi, *(cut for cut, _ in conditions if lo < cut < hi)})
    # A part that does not fill its lanes would be slower than masks.
    short = any(end - start < tile.value.data for start, end in pairwise(bounds))
    if not conditions or len(bounds) - 1 > PARTS or short or not counter(KernelSplitLanes.name):
        return
    block = op.parent
    assert block is not None
    for start, end in pairwise(bounds):
        part = op if end == hi else op.clone()
        if part is not op:
            block.insert_op_before(part, op)
        set_range(part, (op.axis.data, as_expr(start), as_expr(end)))
        resolve_conditions(part.body.block, part, start)


def condition_on(op: Operation, loop: Loop) -> Condition | None:
    """Where a comparison changes along an axis, and whether it is true below; None if something else decides too."""
    if not isinstance(op, CmpiOp) or op.predicate.value.data not in _ORDERED:
        return None
    left, right = index_of(op.lhs), index_of(op.rhs)
    difference = None if left is None or right is None else left - right
    coefficient = None if difference is None else difference.coefficient(loop.axis.data)
    if difference is None or coefficient is None or coefficient.as_int() not in (1, -1):
        return None
    rest = difference.subs({loop.axis.data: as_expr(0)}).as_int()
    if rest is None:
        return None
    offset, below = _ORDERED[op.predicate.value.data]
    if coefficient.as_int() == 1:  # i + rest < offset
        return offset - rest, below
    return rest - offset + 1, not below  # -i + rest < offset, that is i >= rest - offset + 1


def index_of(value: SSAValue) -> Expr | None:
    """The expression that a value is; None for a value that is none, or a dynamic one."""
    owner = value.owner
    return owner.expr.data if isinstance(owner, kernel.IndexOp) and not owner.dynamic else None


def resolve_conditions(block: Block, loop: Loop, start: int) -> None:
    """Drop the masks and selections of a block where the conditions on an axis are as they are at `start`."""
    for op in list(block.ops):
        condition = condition_on(op, loop)
        if condition is not None:
            take_condition(op.results[0], (start < condition[0]) == condition[1])
    remove_dead(block)


def take_condition(condition: SSAValue, true: bool) -> None:
    """Resolve masks, selections and logic that a condition of known value decides."""
    for use in list(condition.uses):
        user = use.operation
        place = user.parent  # the block, or one in it
        if place is None:  # another use of the condition in it has decided it
            continue
        if isinstance(user, SelectOp) and use.index == 0:
            _replace(place, user, user.lhs if true else user.rhs)
        elif isinstance(user, kernel.LoadOp) and user.mask is condition and user.other is not None:
            if true:
                load = kernel.LoadOp.of(user.buffer, user.map, tuple(user.dynamic), location=user.location)
                place.insert_op_before(load, user)
                _replace(place, user, load.results[0])
            else:
                _replace(place, user, user.other)
        elif isinstance(user, AndIOp | OrIOp):
            other = user.rhs if user.lhs is condition else user.lhs
            if isinstance(user, AndIOp) == true and other is not condition:  # true and x, false or x
                _replace(place, user, other)
            else:
                take_condition(user.result, true)


def _replace(block: Block, op: Operation, value: SSAValue) -> None:
    op.results[0].replace_all_uses_with(value)
    block.erase_op(op)
