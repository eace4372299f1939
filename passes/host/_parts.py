"""The steps of a program in an order in which those that can be recorded stand together."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Mapping, Sequence
from dataclasses import field

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import host, kernel
from ...dialects.aten import AtenOp, TensorType
from ...dialects.raw import operands_of
from ...dialects.sym import SymIntOp
from ...records import dataclass
from ..analysis.lifetimes import Lifetimes, is_tensor
from ..analysis.memory import may_return_alias
from ..analysis.memory_order import HostMemory, MemoryOrder, has_effect
from ..analysis.mentions import mentioned_symbols, symbols_of_type
from ._capturable import obstacle_of


def is_place(op: Operation) -> bool:
    """Whether an op only says where memory is, or computes a number: it stands where it is needed, more than once."""
    if isinstance(op, host.EmptyOp | host.ViewOp | SymIntOp):
        return True
    return isinstance(op, AtenOp) and op.schema.is_view and not op.schema.is_mutable and obstacle_of(op) is None


@dataclass(eq=False)
class Step:
    """An op that does something.

    number:   its place in the program
    reason:   why it cannot be recorded; None where it can
    behind:   steps that have to come before it
    """

    op: Operation
    number: int
    reason: str | None
    behind: set[Step] = field(default_factory=set)


@dataclass
class Part:
    """Steps in order that are all recorded, or all run."""

    recorded: bool
    steps: list[Step] = field(default_factory=list)


class Dependences:
    """Visits the steps of a function in order and says which must stay before which."""

    def __init__(self, function: host.FuncOp, kernels: Mapping[str, kernel.FuncOp], device: str) -> None:
        self.kernels = kernels
        self.device = device
        self.memory = HostMemory(Lifetimes(function.body.block), kernels)
        self.order = MemoryOrder[SSAValue, Step]()
        self.arguments = frozenset(function.body.block.args)
        self.bound = {name for op in function.body.block.ops for name in getattr(op, "binds", ())}
        self.binder: dict[str, Step] = {}
        self.makers: dict[SSAValue, Step] = {}
        self.effect: Step | None = None
        self.random: Step | None = None
        self.outside: set[Step] = set()
        """Steps that wrote arguments since the last effect."""

    def steps(self, block: Block) -> list[Step]:
        """The steps of a function's block."""
        found: list[Step] = []
        for op in block.ops:
            if not is_place(op) and not isinstance(op, host.ReturnOp):
                step = Step(op, len(found), self._reason(op))
                self._order(step)
                found.append(step)
        return found

    def _reason(self, op: Operation) -> str | None:
        reason = obstacle_of(op)
        if reason is not None:
            return reason
        # what an op gives and nobody reads crosses no border: attention's sizes and seeds, an absent mask
        values = (*operands_of(op), *(result for result in op.results if result.first_use is not None))
        names = mentioned_symbols(op).union(*(symbols_of_type(v.type) for v in values))
        if not names.isdisjoint(self.bound):
            return "its sizes depend on data"
        if any(not is_tensor(v) and str(v.type) != "index" for v in values):
            return "it takes or gives a number that is no integer"
        if any(isinstance(v.type, TensorType) and v.type.device != self.device for v in values):
            return "it is on another device"
        if may_return_alias(op) and op.results:
            return "it may return a view of what it is given"
        return None

    def _order(self, step: Step) -> None:
        op = step.op
        touched = self.memory.of(op)
        step.behind |= self.order.visit(step, touched)
        step.behind |= {self.makers[value] for value in operands_of(op) if value in self.makers}
        step.behind |= {self.binder[name] for name in mentioned_symbols(op) if name in self.binder}
        self.makers |= dict.fromkeys(op.results, step)
        self.binder |= dict.fromkeys(getattr(op, "binds", ()), step)
        if isinstance(op, AtenOp) and op.schema.is_random:
            step.behind |= {self.random} if self.random is not None else set()
            self.random = step
        self._order_effects(step, not touched.written.isdisjoint(self.arguments))
        step.behind.discard(step)

    def _order_effects(self, step: Step, writes_argument: bool) -> None:
        """What shows outside of the program stays in order: errors, effects of calls, and writes to arguments."""
        shows = has_effect(step.op, self.kernels)
        if not shows and not writes_argument:
            return
        step.behind |= {self.effect} if self.effect is not None else set()
        if shows:
            step.behind |= self.outside
            self.outside = set()
            self.effect = step
        else:
            self.outside.add(step)


def few_parts(steps: Sequence[Step], least: int) -> list[Part]:
    """The steps in as few parts as an order that goes on as long as it can gives; those of less than `least` run."""
    orders = [_exhausting(steps, start) for start in (False, True)]
    parts = min(orders, key=len)
    merged: list[Part] = []
    for part in parts:
        recorded = part.recorded and len(part.steps) >= least
        if merged and merged[-1].recorded == recorded:
            merged[-1].steps += part.steps
        else:
            merged.append(Part(recorded, list(part.steps)))
    return merged


def _exhausting(steps: Sequence[Step], start: bool) -> list[Part]:
    """All that is ready of one kind, then all of the other, and so on; steps of a part in the order of the program."""
    waiting = {step: len(step.behind) for step in steps}
    followers: dict[Step, list[Step]] = {}
    for step in steps:
        for before in step.behind:
            followers.setdefault(before, []).append(step)
    ready: dict[bool, list[tuple[int, Step]]] = {False: [], True: []}
    for step in steps:
        if not step.behind:
            heapq.heappush(ready[step.reason is None], (step.number, step))
    parts: list[Part] = []
    kind = start
    while ready[False] or ready[True]:
        if not ready[kind]:
            kind = not kind
        part = Part(kind)
        while ready[kind]:
            _, step = heapq.heappop(ready[kind])
            part.steps.append(step)
            for follower in followers.get(step, ()):
                waiting[follower] -= 1
                if not waiting[follower]:
                    heapq.heappush(ready[follower.reason is None], (follower.number, follower))
        parts.append(part)
    return parts


def reasons(parts: Sequence[Part]) -> Collection[tuple[Step, str]]:
    """The steps that run because they cannot be recorded, and why."""
    return [(step, step.reason) for part in parts for step in part.steps if step.reason is not None]
