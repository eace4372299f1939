"""A joint function behind `graph-partition` as two: one of forward and one of backward."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import DenseArrayBase, FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, Region, SSAValue

from ...passes.analysis.functions import first_function
from ...passes.common.copies import copy_op
from ...passes.graph import _joint as marks
from ...records import dataclass


@dataclass(frozen=True)
class Halves:
    """Both functions, each in a module.

    forward:  of all arguments that are no gradients; returns the results of forward, then what is saved
    backward: of what is saved, then the gradients
    results:  how many results forward has
    saved:    numbers of the arguments of forward that backward gets, too
    tangents: numbers of the arguments that are gradients
    """

    forward: ModuleOp
    backward: ModuleOp
    results: int
    saved: tuple[int, ...]
    tangents: tuple[int, ...]


def halves_of(module: ModuleOp) -> Halves:
    """Split the joint function of a module as its marks say."""
    function = first_function(module)
    block, count = function.body.block, marks.forward_results(function)
    returned = block.last_op
    assert isinstance(returned, ReturnOp) and count is not None
    roles = marks.argument_marks(function)
    tangents = [k for k, role in enumerate(roles) if marks.TANGENT in role]
    saved = [k for k, role in enumerate(roles) if marks.SAVED in role]
    ops = [op for op in block.ops if op is not returned]
    kept = [result for op in ops for result in _saved_results(op)]
    forward = [op for op in ops if marks.word(op, marks.PARTITION) != "backward"]
    backward = [op for op in ops if marks.word(op, marks.PARTITION) != "forward"]
    given = [arg for k, arg in enumerate(block.args) if k not in tangents]
    read = [*(block.args[k] for k in saved), *kept, *(block.args[k] for k in tangents)]
    return Halves(
        _function("forward", given, forward, [*returned.operands[:count], *kept], module),
        _function("backward", read, backward, returned.operands[count:], module),
        count,
        tuple(saved),
        tuple(tangents),
    )


def _saved_results(op: Operation) -> list[SSAValue]:
    numbers = op.attributes.get(marks.SAVED)
    return [op.results[int(k)] for k in numbers.get_values()] if isinstance(numbers, DenseArrayBase) else []


def _function(
    name: str, given: Sequence[SSAValue], ops: Sequence[Operation], results: Iterable[SSAValue], around: ModuleOp
) -> ModuleOp:
    """A module with a function of some values, without what it does not need."""
    results = list(results)
    needed = {value.owner for value in results if value not in given}
    for op in reversed(ops):
        if op in needed:
            needed.update(value.owner for value in op.operands if value not in given)
    block = Block(arg_types=[value.type for value in given])
    values: dict[SSAValue, SSAValue] = dict(zip(given, block.args, strict=True))
    for op in ops:
        if op not in needed:
            continue
        own: dict[SSAValue, SSAValue] = {r: values[r] for r in op.results if r in values}
        copy = copy_op(op, values)
        values.update(own)
        for each in (marks.PARTITION, marks.SAVED):
            copy.attributes.pop(each, None)
        block.add_op(copy)
    returned = [values[value] for value in results]
    block.add_op(ReturnOp(*returned))
    type_ = FunctionType.from_lists([arg.type for arg in block.args], [value.type for value in returned])
    return ModuleOp([FuncOp(name, type_, Region(block))], attributes=dict(around.attributes))
