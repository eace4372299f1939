"""`loop-hoist-weights`: copies of frozen weights, and of what is kept of them, are made once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import FunctionType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import SymbolTable

from ...dialects.aten import AtenOp
from ...dialects.aten.types import TensorType
from ...dialects.loop import GenerateOp, LoadOp
from ...dialects.raw import operands_of
from ..analysis.kept import add_kept_function, frozen_arguments, insert_kept_call, is_kept_call, is_kept_value
from ..analysis.memory import Mutations
from ..common.copies import copy_op
from ..counters import counter
from ..function_pass import LoopPass
from ..remarks import remark
from ._accesses import loads_in
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
            _move(function, block, cast("Sequence[GenerateOp]", copies))


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


def _move(function: FuncOp, block: Block, copies: Sequence[GenerateOp]) -> None:
    call = next((op for op in block.ops if is_kept_call(op)), None)
    old = cast("CallOp | None", call)
    callee = _callee_of(function, old)
    inner = callee.body.block
    last = cast(ReturnOp, inner.last_op)
    given = [] if old is None else list(operands_of(old))
    made: list[tuple[SSAValue, SSAValue]] = (
        [] if old is None else list(zip(old.results, operands_of(last), strict=True))
    )
    values: dict[SSAValue, SSAValue] = {**dict(zip(given, inner.args, strict=True)), **dict(made)}
    for copy in copies:
        source = cast(LoadOp, next(iter(loads_in(copy)))).source
        if source not in values:
            given.append(source)
            values[source] = new = inner.insert_arg(source.type, len(inner.args))
            new.name_hint = source.name_hint
        clone = copy_op(copy, values)
        inner.insert_op_before(clone, last)
        made.append((copy.results[0], clone.results[0]))
    gone = {load for copy in copies for load in loads_in(copy)}
    read = [(outer, new) for outer, new in made if any(use.operation not in gone for use in outer.uses)]
    last.operands = [new for _, new in read]
    callee.function_type = FunctionType.from_lists([a.type for a in inner.args], [new.type for _, new in read])
    _replace(function, block, callee, given, [value for value, _ in read], [*copies, *([] if old is None else [old])])


def _replace(
    function: FuncOp, block: Block, callee: FuncOp, given: Sequence[SSAValue], read: Sequence[SSAValue],
    removed: Sequence[Operation],
) -> None:  # fmt: skip
    """Put a call of the function as it is now in front, and take away what it stands for."""
    call = insert_kept_call(function, callee, given, read)
    for value, result in zip(read, call.results, strict=True):
        value.replace_all_uses_with(result)
    for op in removed:
        block.erase_op(op)


def _callee_of(function: FuncOp, call: CallOp | None) -> FuncOp:
    """The kept function of a call; a new one, which returns nothing yet, where there is none."""
    if call is not None:
        return cast(FuncOp, SymbolTable.lookup_symbol(call, call.callee))
    return add_kept_function(function, Block([ReturnOp.create()]))
