"""`graph-hoist-weights`: what parameters alone decide is computed once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects.raw import operands_of, ops_of
from ...records import dataclass
from ..analysis.kept import KEPT, add_kept_function, frozen_arguments, insert_kept_call
from ..analysis.slices import backward_slice
from ..common.copies import copy_op
from ..counters import counter
from ..function_pass import AtenPass
from ..remarks import remark
from ._binding_times import BindingTimes, Limits, known_bytes, size_text


@dataclass(frozen=True)
class HoistWeights(AtenPass):
    """Split a function by binding times: what frozen arguments alone decide goes to a function that runs once.

    level:         aten
    precondition:  `graph-cse`; behind the passes that lay weights out anew, before `graph-outline-repeats`. Arguments
                   that are parameters, buffers or constants are marked `frozen`; without a mark nothing is done.
    guarantee:     the same values. A private function, `kept`, makes of frozen arguments what the other one reads of
                   them; its results are no output, and nothing writes them. It returns no view of an argument.

    A value stays where it is if it takes more than `growth` times the memory of the arguments that it is made of, as a
    dequantised weight does, unless it takes no more than `small` bytes, or a pass of ours made it to lay a weight out
    in another way (`packing`). Values of common arguments count together. What fuses with its readers stays, too,
    where keeping it saves less than `least` bytes of traffic in a call.

        func.func @f(%x: T, %w: T {frozen}) -> T {
          %0 = aten.exp(%w) : T
          %1 = aten.mm(%x, %0) : T
          func.return %1 : T
        }
    becomes
        func.func @f(%x: T, %w: T {frozen}) -> T {
          %0 = func.call @f_weights(%w) {kept} : (T) -> T
          %1 = aten.mm(%x, %0) : T
          func.return %1 : T
        }
        func.func private @f_weights(%w: T) -> T attributes {kept} {
          %0 = aten.exp(%w) : T
          func.return %0 : T
        }
    """

    name = "graph-hoist-weights"

    growth: float = Limits.growth
    small: int = Limits.small
    least: int = Limits.least

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function with frozen arguments from which nothing was hoisted yet."""
        if frozen_arguments(function) and not any(KEPT in each.attributes for each in block.ops):
            times = BindingTimes(function, block, Limits(self.growth, self.small, self.least))
            kept = times.kept()
            for rejected, reason in times.rejected.items():
                if reason and rejected in times.late:
                    remark("missed", self.name, rejected, f"it is computed in each call: {reason}")
            kept = [value for value in kept if counter(self.name)] if kept else []
            if kept:
                self._tell(kept, times)
                _hoist(function, block, kept, times)

    def _tell(self, kept: Sequence[SSAValue], times: BindingTimes) -> None:
        for value in kept:
            made = known_bytes(value)
            text = f"it is computed once: {size_text(made)} kept of {size_text(times.bytes_read(value))} of weights"
            remark("passed", self.name, cast(Operation, value.owner), text, bytes=made)


def _hoist(function: FuncOp, block: Block, kept: Sequence[SSAValue], times: BindingTimes) -> None:
    """Make the function of the kept values, and let the ops of each call read its results."""
    ops = list(backward_slice(kept))
    used = {value for op in ops for value in operands_of(op) if isinstance(value, BlockArgument)}
    given = [argument for argument in block.args if argument in used]
    callee = _callee(function, ops, given, kept)
    call = insert_kept_call(function, callee, given, kept)
    moved = set(ops) - times.late
    for value, result in zip(kept, call.results, strict=True):
        value.replace_uses_with_if(result, lambda use: use.operation not in moved)
    for op in reversed(ops_of(block)):
        if op in moved and all(result.first_use is None for result in op.results):
            block.erase_op(op)


def _callee(function: FuncOp, ops: Sequence[Operation], given: Sequence[SSAValue], kept: Sequence[SSAValue]) -> FuncOp:
    block = Block(arg_types=[value.type for value in given])
    values: dict[SSAValue, SSAValue] = dict(zip(given, block.args, strict=True))
    for argument, value in zip(block.args, given, strict=True):
        argument.name_hint = value.name_hint
    for op in ops:
        block.add_op(copy_op(op, values))
    block.add_op(ReturnOp.create(operands=[values[value] for value in kept]))
    return add_kept_function(function, block)
