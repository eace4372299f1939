"""What the steps of a program do to memory, and which of them have to stay in order for it.

| question                                                                      | answer                |
|-------------------------------------------------------------------------------|-----------------------|
| Which memory does an op of a host program use, and what of it does it write?  | `HostMemory`          |
| Which operands does an op write?                                              | `written_operands`    |
| Does the order of two steps matter?                                           | `Touched.conflicts`   |
| Which earlier steps have to stay before the next one?                         | `MemoryOrder`         |
| Does an op of a host program show elsewhere than in memory?                   | `has_effect`          |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from xdsl.ir import Operation, SSAValue

from ...dialects import host, kernel
from ...dialects.aten import AtenOp, CallOp
from ...dialects.raw import operands_of
from ...records import dataclass
from .launches import may_fail, written_by
from .lifetimes import Lifetimes, is_tensor

Memory = TypeVar("Memory")
Step = TypeVar("Step")


@dataclass(frozen=True)
class Touched(Generic[Memory]):
    """The memory that a step uses, and what of that it writes or makes."""

    used: frozenset[Memory] = frozenset()
    written: frozenset[Memory] = frozenset()

    def conflicts(self, other: Touched[Memory]) -> bool:
        """Whether the order of two steps matters: one writes what the other uses."""
        return not (self.written.isdisjoint(other.used) and other.written.isdisjoint(self.used))

    def __or__(self, other: Touched[Memory]) -> Touched[Memory]:
        """What both steps do."""
        return Touched(self.used | other.used, self.written | other.written)


class MemoryOrder(Generic[Memory, Step]):
    """The order that memory demands of steps, which are visited as they stand in the program."""

    def __init__(self) -> None:
        self._writer: dict[Memory, Step] = {}
        self._readers: dict[Memory, list[Step]] = {}

    def visit(self, step: Step, touched: Touched[Memory]) -> set[Step]:
        """The steps that have to stay before one: who wrote last what it uses, and who has read since what it writes.

        Others have to stay before it too; these stay before one of those.
        """
        before: set[Step] = set()
        for memory in touched.used:
            if memory in self._writer:
                before.add(self._writer[memory])
            if memory in touched.written:
                before.update(self._readers.pop(memory, ()))
                self._writer[memory] = step
            else:
                self._readers.setdefault(memory, []).append(step)
        return before


class HostMemory:
    """What the ops of one host function do to memory, which is named by the values that own it."""

    def __init__(self, lifetimes: Lifetimes, kernels: Mapping[str, kernel.FuncOp]) -> None:
        self._lifetimes = lifetimes
        self._kernels = kernels

    def of(self, op: Operation) -> Touched[SSAValue]:
        """The memory that an op uses and writes; what it makes counts as both."""
        made = self.roots(op.results)
        written = self.roots(written_operands(op, self._kernels)) | {root for root in made if root.owner is op}
        return Touched(self.roots(operands_of(op)) | made, written)

    def roots(self, values: Iterable[SSAValue]) -> frozenset[SSAValue]:
        """The memory that some values may lie in."""
        return frozenset(root for value in values if is_tensor(value) for root in self._lifetimes.roots(value))


def written_operands(op: Operation, kernels: Mapping[str, kernel.FuncOp]) -> Sequence[SSAValue]:
    """The operands that an op of a host program writes, or may write: of an opaque call nobody knows."""
    if isinstance(op, host.LaunchOp):
        return written_by(op, kernels.get(op.kernel.root_reference.data))
    if isinstance(op, host.CopyOp):
        return (op.target,)
    if isinstance(op, host.CallOp):
        return () if op.kept is not None else op.arguments
    if isinstance(op, CallOp):
        return op.written if op.writes is not None or op.pure is not None else op.inputs
    return op.written if isinstance(op, AtenOp) else ()


def has_effect(op: Operation, kernels: Mapping[str, kernel.FuncOp]) -> bool:
    """Whether an op of a host program shows elsewhere than in memory: by an error, or an effect of what it calls."""
    if isinstance(op, host.LaunchOp):
        return may_fail(op, kernels)
    if isinstance(op, host.CopyOp):
        return False
    if isinstance(op, CallOp):
        return op.pure is None and op.writes is None
    return not op.results or bool(getattr(op, "binds", ()))
