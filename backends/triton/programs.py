"""Which programs run what: nests of grid axes side by side, and one more program for the statements beside them."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from ...dialects import kernel
from ...dialects.sym import ONE, ZERO, Expr
from ...errors import UnsupportedError
from ...passes.analysis.loops import Loop
from ...passes.kernel.tiles import is_grid, steps
from ...records import dataclass


@dataclass(frozen=True)
class Programs:
    """The top level of a kernel.

    shared: statements that every program runs, because nests use their results
    nests:  grid axes of each nest, outermost first; each nest has programs of its own
    rest:   statements of one program of their own, behind those of the nests
    """

    shared: tuple[Operation, ...]
    nests: tuple[tuple[kernel.ForOp, ...], ...]
    rest: tuple[Operation, ...]

    @property
    def is_single(self) -> bool:
        """Whether all programs run the same code."""
        return len(self.nests) + bool(self.rest) <= 1

    @property
    def count(self) -> Expr:
        """How many programs there are."""
        total = ONE if self.rest or not self.nests else ZERO
        for nest in self.nests:
            total = total + count_of(nest)
        return total


def count_of(nest: tuple[kernel.ForOp, ...]) -> Expr:
    """Programs of one nest."""
    total = ONE
    for op in nest:
        total = total * steps(op)
    return total


def programs_of(block: Block) -> Programs:
    """Sort the statements of a kernel's top level."""
    ops = [op for op in block.ops if not isinstance(op, kernel.YieldOp)]
    nests = [_grid_axes(op) for op in ops if is_grid(op)]
    if not nests:
        return Programs((), (), tuple(ops))
    shared = _used_by_nests([nest[0] for nest in nests], block)
    others = [op for op in ops if not is_grid(op) and op not in shared]
    effects = any(isinstance(i, kernel.StoreOp | kernel.AssertOp) for op in others for i in op.walk())
    return Programs(tuple(op for op in ops if op in shared), tuple(nests), tuple(others) if effects else ())


def _used_by_nests(nests: list[kernel.ForOp], block: Block) -> set[Operation]:
    found: set[Operation] = set()
    todo: list[Operation] = list(nests)
    while todo:
        for inner in todo.pop().walk():
            for value in inner.operands:
                owner = value.owner
                if isinstance(owner, Operation) and owner.parent is block and owner not in found:
                    found.add(owner)
                    todo.append(owner)
    return found


def _grid_axes(op: Operation) -> tuple[kernel.ForOp, ...]:
    """The grid axes of a nest, outermost first. UnsupportedError unless there is one chain of them."""
    if not isinstance(op, kernel.ForOp):
        raise UnsupportedError("only a kernel.for runs on the grid")
    inner = [nested for nested in op.body.block.ops if isinstance(nested, Loop) and is_grid(nested)]
    if len(inner) > 1:
        raise UnsupportedError("the grid axes of a nest are nested in each other")
    return (op, *(_grid_axes(inner[0]) if inner else ()))
