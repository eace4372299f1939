"""The pass `host-order`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import host, kernel
from ...dialects.aten import AtenOp
from ...dialects.aten.types import type_of
from ...dialects.raw import operands_of, ops_of
from ...dialects.sym import SymIntOp
from ...machines import in_host_memory
from ...records import dataclass
from ..analysis.functions import kernels_of
from ..analysis.kept import is_kept_call
from ..analysis.lifetimes import Lifetimes, is_tensor
from ..analysis.live_bytes import LiveBytes
from ..analysis.memory_order import HostMemory, Touched, has_effect
from ..analysis.sizes import Sizes
from ..counters import counter
from ..remarks import remark
from ._schedule import Schedule, Step, lower_peak

#: ops that are no steps: they take no time, and stand where they are needed
_PLACED = (host.EmptyOp, host.ViewOp, SymIntOp)
#: moves in one program at most; each is chosen among all, so that a few lower the peak most
MOST_MOVES = 32


@dataclass(frozen=True)
class HostOrder(ModulePass):
    """Run what makes much when little is alive, on a GPU.

    Level: host.

    Precondition: nothing is freed or planned yet; `host-reuse` and `kernel-merge-launches` are done.
    Guarantee: the same launches and calls, each behind all that it depends on. The most bytes that are alive at once,
    the arguments that the function is `given` among them, are less or the order is as before: a launch that turns a
    large value into a larger one waits until other memory is free, or goes first where it turns it into a smaller one.
    What has an effect stays where it is, and what draws random numbers behind all that drew some before, though others
    may pass it. A function on the CPU is left alone, where what was just made is in the cache.

        %g = aten.mm(%t, %x) : !aten.tensor<768x3072xbf16>     // more and more of them, while little of %s is free
        %w = host.empty : !aten.tensor<768x3072xf32>
        host.launch @cast(%g, %w)
        ...                                                    // here %s is used for the last time
        host.return %w
    becomes
        %g = aten.mm(%t, %x) : !aten.tensor<768x3072xbf16>
        ...
        %w = host.empty : !aten.tensor<768x3072xf32>
        host.launch @cast(%g, %w)
        host.return %w
    """

    name = "host-order"
    level: ClassVar[str] = "host"
    optional: ClassVar[bool] = True

    least: int = 100
    """The part of the peak, one of so many, that a program has to save: else its order stays."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Order every host function on a GPU."""
        kernels = kernels_of(op)
        for function in op.body.block.ops:
            if isinstance(function, host.FuncOp) and _is_on_gpu(function):
                _order(function, kernels, self.least)


def _is_on_gpu(function: host.FuncOp) -> bool:
    made = [op.out for op in ops_of(function.body.block) if isinstance(op, host.EmptyOp)]
    values = [value for value in (*function.body.block.args, *made) if is_tensor(value)]
    return any(not in_host_memory(type_of(value).device) for value in values)


def _order(function: host.FuncOp, kernels: Mapping[str, kernel.FuncOp], least: int) -> None:
    block = function.body.block
    ops, schedule = _schedule(function, kernels)
    before, steps = schedule.peak, list(schedule.steps)
    if not before or (before - schedule.floor) * least < before:
        return
    moves = lower_peak(schedule, MOST_MOVES)
    saved = before - schedule.peak
    if not moves or saved * least < before or not counter(HostOrder.name):
        return
    by_step = dict(zip(steps, ops, strict=True))
    _arrange(block, [by_step[step] for step in schedule.steps])
    figures = {"peak_bytes": str(schedule.peak), "before": str(before)}
    remark("passed", HostOrder.name, function, f"less is alive at once, by moves: {len(moves)}", **figures)


def _schedule(function: host.FuncOp, kernels: Mapping[str, kernel.FuncOp]) -> tuple[list[Operation], Schedule]:
    """The ops that are steps, and their schedule; allocations and views belong to the steps that use them."""
    block = function.body.block
    lifetimes = Lifetimes(block)
    memory = HostMemory(lifetimes, kernels)
    numbers: dict[SSAValue, int] = {}

    def numbered(values: Iterable[SSAValue]) -> frozenset[int]:
        return frozenset(numbers.setdefault(value, len(numbers)) for value in values)

    ops: list[Operation] = []
    steps: list[Step] = []
    fresh: set[int] = set()
    own = list(filter(is_tensor, function.given_arguments))
    for op in block.ops:
        made = [result for result in op.results if is_tensor(result) and lifetimes.roots(result) == {result}]
        made = [] if is_kept_call(op) else made
        own += made
        if isinstance(op, _PLACED):
            fresh |= numbered(made)
        elif not isinstance(op, host.ReturnOp):
            touched = memory.of(op)
            used, written = numbered(touched.used), numbered(touched.written)
            makes = numbered(made) | (used & fresh)
            fresh -= used
            fixed, draws = _is_fixed(op, kernels), isinstance(op, AtenOp) and op.schema.is_random
            steps.append(Step(makes, Touched(used, makes | written), fixed, draws))
            ops.append(op)
    live = LiveBytes(lifetimes, Sizes.of_function(function))
    size = {numbers.setdefault(value, len(numbers)): live.of(value) for value in own}
    last = block.last_op
    assert last is not None
    return ops, Schedule(steps, size, numbered(memory.roots(operands_of(last))))


def _is_fixed(op: Operation, kernels: Mapping[str, kernel.FuncOp]) -> bool:
    """Whether an op has to stay in order with all others: what shows elsewhere, and calls of operators not ATen's.

    Random numbers are drawn in order among themselves only: on a GPU the backward of attention counts as random.
    """
    if isinstance(op, host.LaunchOp):
        return has_effect(op, kernels)
    if not isinstance(op, AtenOp) or op.schema.is_mutable or has_effect(op, kernels):
        return True
    return any(not is_tensor(result) and result.first_use is not None for result in op.results)


def _arrange(block: Block, steps: list[Operation]) -> None:
    """Put the steps in order, and what is no step right before the first one that uses it."""
    last = block.last_op
    assert last is not None
    between = [op for op in block.ops if isinstance(op, _PLACED)]
    waiting = set(between)
    for op in (*between, *steps):
        op.detach()

    def place(op: Operation) -> None:
        for operand in operands_of(op):
            owner = operand.owner
            if isinstance(owner, Operation) and owner in waiting:
                waiting.discard(owner)
                place(owner)
        if op is not last:
            block.insert_op_before(op, last)

    for op in (*steps, last):
        place(op)
    for op in between:
        if op in waiting:  # nothing uses it
            place(op)
