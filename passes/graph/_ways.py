"""Choices between two ways in joint graphs: one of them stays, in forward and backward."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeGuard

from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.aten import AtenOp, CallOp, MemoryFormat
from ...dialects.aten.types import type_of
from ...dialects.raw import operands_of, ops_of
from ..common.choices import EITHER_WAY, OF_WAY
from ._alternatives import drop
from ._segments import is_view

#: ops of one tensor that make 0 of 0
_LINEAR = frozenset({"_to_copy", "clone", "sum", "neg", "contiguous", "alias", "detach"})
#: those of a second operand whose result is 0 where the first is
_SCALED = frozenset({"mul", "div"})


def ways_of(ops: Iterable[Operation]) -> list[CallOp]:
    """The choices of a joint graph, or of what torch made of one."""
    return [op for op in ops if isinstance(op, CallOp) and op.target == EITHER_WAY]


def number_of_way(op: CallOp) -> int:
    """The number of a choice, or of the one that a gradient is of."""
    number = op.args()[2 if op.target == EITHER_WAY else 1]
    assert isinstance(number, int)
    return number


def gradients_of_way(way: CallOp) -> list[CallOp]:
    """What both ways of a choice add to gradients."""
    assert way.parent is not None
    number = number_of_way(way)
    of_way = (op for op in way.parent.ops if isinstance(op, CallOp) and op.target == OF_WAY)
    return [op for op in of_way if number_of_way(op) == number]


def take_way(block: Block, number: int, second: bool) -> None:
    """Keep one way of a choice, what it adds to gradients too, and drop what only the other one needs."""
    found = [op for op in ops_of(block) if _is_of_choice(op)]
    left: list[SSAValue] = []
    for op in [each for each in found if number_of_way(each) == number]:
        operands = operands_of(op)
        if op.target == EITHER_WAY:
            op.results[0].replace_all_uses_with(operands[second])
            left.append(operands[not second])
        elif op.args()[2] == int(second):
            op.results[0].replace_all_uses_with(operands[0])
        else:
            _leave_out(op.results[0])
            left.append(operands[0])
        block.erase_op(op)
    drop(block, left)
    function = block.parent_op()
    if isinstance(function, FuncOp):
        function.update_function_type()


def _is_of_choice(op: Operation) -> TypeGuard[CallOp]:
    return isinstance(op, CallOp) and op.target in (EITHER_WAY, OF_WAY)


def _leave_out(value: SSAValue) -> None:
    """Let nothing read a gradient that is 0, by what it is added to, or by what is 0 with it."""
    for use in list(value.uses):
        op = use.operation
        other = _other_summand(op, value)
        if other is not None:
            op.results[0].replace_all_uses_with(other)
        elif _is_zero_with(op, value):
            _leave_out(op.results[0])
        else:
            op.operands[use.index] = _zero(value, op)
            continue
        assert op.parent is not None
        op.parent.erase_op(op)


def _other_summand(op: Operation, value: SSAValue) -> SSAValue | None:
    """What a value is added to, as the sum lies in memory; None where something else is done with it."""
    if not isinstance(op, AtenOp) or op.target != "aten.add.Tensor" or op.arg("alpha") != 1:
        return None
    others = [each for each in operands_of(op) if each is not value]
    if len(others) != 1 or others[0].type == op.results[0].type:
        return others[0] if others else None
    (other,), wanted = others, type_of(op.results[0])
    kind = type_of(other)
    if (kind.shape, kind.element, kind.device) != (wanted.shape, wanted.element, wanted.device):
        return None
    if all(isinstance(use.operation, ReturnOp) for use in op.results[0].uses):
        return other  # nobody asked for the strides in which gradients of both are added
    if not wanted.is_contiguous:
        return None
    copy = AtenOp.of(
        "aten.clone", {"self": other, "memory_format": MemoryFormat("contiguous_format")}, (wanted,), op.location
    )
    copy.attributes.update(op.attributes)
    assert op.parent is not None
    op.parent.insert_op_before(copy, op)
    return copy.results[0]


def _is_zero_with(op: Operation, value: SSAValue) -> bool:
    if not isinstance(op, AtenOp) or len(op.results) != 1 or operands_of(op)[0] is not value:
        return False
    alone = len(operands_of(op)) == 1
    return (alone and (is_view(op) or op.packet in _LINEAR)) or op.packet in _SCALED


def _zero(value: SSAValue, before: Operation) -> SSAValue:
    """Zeros in place of a value."""
    type_ = type_of(value)
    sizes = tuple(size.as_int() if size.as_int() is not None else size for size in type_.shape)
    args = {"size": sizes, "fill_value": 0.0, "dtype": type_.element, "device": type_.device, "pin_memory": False}
    zeros = AtenOp.of("aten.full", args, (type_,), before.location)
    assert before.parent is not None
    before.parent.insert_op_before(zeros, before)
    return zeros.results[0]


def settle(blocks: Sequence[Block]) -> None:
    """Keep the first way of every choice that nobody decided about."""
    for block in blocks:
        numbers = {
            number_of_way(op) for op in ops_of(block) if isinstance(op, CallOp) and op.target in (EITHER_WAY, OF_WAY)
        }
        for number in sorted(numbers):
            take_way(block, number, second=False)
