"""Functions that run once: of what stays the same from call to call, their results are kept.

    func.func @forward(%x: T, %w: T {frozen}) -> T {
      %p = func.call @forward_weights(%w) {kept} : (T) -> T
      ...
    }
    func.func private @forward_weights(%w: T) -> T attributes {kept} { ... }

`frozen` on an argument says that it is a parameter, a buffer or a constant, which callers rarely change: what runs the
program looks whether it did. A `kept` function is pure and gets frozen arguments alone; so is its call marked. Whether
it runs in a call, or its results are those of an earlier one, shows nowhere but in time: nothing may write them, and no
result of the program lies in their memory.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, SymbolRefAttr, UnitAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ...dialects import host
from ...dialects.aten import TensorType
from .functions import calls_of

FROZEN, KEPT, PACKING = "frozen", "kept", "packing"
_UNIT = UnitAttr()


def mark_frozen(function: FuncOp, numbers: Collection[int]) -> None:
    """Mark arguments by their numbers, beside what is said of them."""
    if not numbers:
        return
    count = len(function.body.block.args)
    old = [{} for _ in range(count)] if function.arg_attrs is None else [dict(a.data) for a in function.arg_attrs.data]
    for number in numbers:
        old[number][FROZEN] = _UNIT
    function.arg_attrs = ArrayAttr([DictionaryAttr(each) for each in old])


def frozen_arguments(function: FuncOp) -> list[BlockArgument]:
    """The arguments that are marked; a declaration has none."""
    block = function.body.blocks.first
    if function.arg_attrs is None or block is None:
        return []
    pairs = zip(block.args, function.arg_attrs.data, strict=True)
    return [argument for argument, marks in pairs if FROZEN in marks.data]


def is_frozen(value: SSAValue) -> bool:
    """Whether a value is a frozen argument."""
    function = value.owner.parent_op() if isinstance(value.owner, Block) else None
    return isinstance(function, FuncOp) and value in frozen_arguments(function)


def add_kept_function(function: FuncOp, block: Block) -> FuncOp:
    """A kept function with a body that returns, behind the one that will call it."""
    assert block.last_op is not None and function.parent is not None
    types = FunctionType.from_lists([a.type for a in block.args], [value.type for value in block.last_op.operands])
    callee = FuncOp(f"{function.sym_name.data}_weights", types, Region(block), visibility="private")
    callee.location = function.location
    callee.attributes.update({KEPT: _UNIT, "symbols": ArrayAttr([])})
    function.parent.insert_op_after(callee, function)
    return callee


def insert_kept_call(function: FuncOp, callee: FuncOp, given: Sequence[SSAValue], values: Sequence[SSAValue]) -> CallOp:
    """A call of a kept function in front of all else, with a result for each of some values, named after it."""
    call = CallOp.create(
        operands=given,
        result_types=[value.type for value in values],
        properties={"callee": SymbolRefAttr(callee.sym_name.data)},
        attributes={KEPT: _UNIT},
        location=function.location,
    )
    block = function.body.block
    first = block.first_op
    assert first is not None
    block.insert_op_before(call, first)
    for value, result in zip(values, call.results, strict=True):
        result.name_hint = value.name_hint
    return call


def mark_packing(op: Operation, source: SSAValue) -> None:
    """Say of an op that a pass made it to lay a frozen value out anew: then it is kept, though it be a bit larger."""
    if is_frozen(source):
        op.attributes[PACKING] = _UNIT


def is_kept_function(function: Operation) -> bool:
    """Whether the results of a function, of either level, are kept."""
    return KEPT in (function.properties if isinstance(function, host.FuncOp) else function.attributes)


def is_kept_call(op: Operation | Block) -> bool:
    """Whether an op calls a function whose results are kept."""
    if type(op) is CallOp:
        return KEPT in op.attributes
    return type(op) is host.CallOp and op.kept is not None


def is_kept_value(value: SSAValue) -> bool:
    """Whether a value lies in memory that is kept, which must not be written."""
    return is_kept_call(value.owner)


def kept_problem(function: FuncOp) -> str | None:
    """What is wrong with the marks on a function and its arguments; None when nothing is."""
    for argument in frozen_arguments(function):
        if not isinstance(argument.type, TensorType):
            return f"argument {argument.index} is marked {FROZEN} and is no tensor: it is {argument.type}"
    kept = function.attributes.get(KEPT)
    if any((KEPT in call.attributes) != (kept is not None) for call in calls_of(function)):
        return f"is {'not ' if kept is None else ''}{KEPT}, and a call of it says otherwise"
    if kept is None:
        return _problem_of_calls(function)
    if function.is_declaration:
        return f"is {KEPT}, and has no body"
    if not isinstance(kept, UnitAttr):
        return f"{KEPT} has no value, and is {kept}"
    if function.sym_visibility is None:
        return f"is {KEPT}, and not private"
    if not all(isinstance(type_, TensorType) for type_ in function.function_type.outputs.data):
        return f"is {KEPT}, and returns something else than tensors"
    return None


def _problem_of_calls(function: FuncOp) -> str | None:
    """What is wrong with the calls of kept functions in a function."""
    block = function.body.blocks.first
    calls = [] if block is None else [op for op in block.ops if type(op) is CallOp and KEPT in op.attributes]
    if not calls:
        return None
    frozen = set(frozen_arguments(function))
    for call in calls:
        other = next((k for k, value in enumerate(call.operands) if value not in frozen), None)
        if other is not None:
            return f"operand {other} of a {KEPT} call is no {FROZEN} argument"
    return None
