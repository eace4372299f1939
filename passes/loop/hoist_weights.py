"""`loop-hoist-weights`: copies of frozen weights, and of what is kept of them, are made once."""

from __future__ import annotations

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp
from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp
from ..analysis.kept import frozen_arguments, is_kept_value
from ..analysis.memory import Mutations
from ..analysis.packing import move_to_kept
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._image_layouts import copied_value


class LoopHoistWeights(LoopPass):
    """Move copies that calls of libraries read to the function whose results are kept.

    level:         loop
    precondition:  behind the passes that choose layouts, in front of `loop-inline`; `graph-hoist-weights` has made the
                   function, or this one does
    guarantee:     the same values. A nest that copies a frozen argument, or a result of the kept call, into another
                   layout, for ATen ops alone, is in the kept function. That returns what is still read of it.

        %k = func.call @f_weights(%w) {kept} : (T) -> T
        %c = loop.generate (...) { %v = loop.load %k[i0, i1, i2, i3]  loop.yield %v } : U
        %y = aten.convolution(%x, %c, ...)
    becomes
        %c = func.call @f_weights(%w) {kept} : (T) -> U
        %y = aten.convolution(%x, %c, ...)
    """

    name = "loop-hoist-weights"

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Run on every function with frozen arguments."""
        if not frozen_arguments(function):
            return
        mutations = Mutations(block)
        frozen: set[SSAValue] = {each for each in frozen_arguments(function) if not mutations.writes_to(each)}
        copies = [each for each in block.ops if _is_copy(each, frozen) and counter(self.name)]
        if copies:
            for copy in copies:
                remark("passed", self.name, copy, "the layout of a frozen weight is made once")
            move_to_kept(function, block, copies)


def _is_copy(op: Operation, frozen: set[SSAValue]) -> bool:
    """Whether an op copies what stays the same from call to call, for libraries alone."""
    if type(op) is not GenerateOp or len(op.results) != 1:
        return False
    source, type_ = copied_value(op.results[0]), op.results[0].type
    if source is None or not (source in frozen or is_kept_value(source)) or not isinstance(type_, TensorType):
        return False
    if any(size.as_int() is None for size in (*type_.shape, *type_.strides)):
        return False
    uses = list(op.results[0].uses)
    return bool(uses) and all(isinstance(use.operation, AtenOp) and not use.operation.schema.is_view for use in uses)
