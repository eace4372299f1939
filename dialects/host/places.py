"""Places of pools: planned memory, and views of it, that one tensor of a program stands for."""

from __future__ import annotations

from typing import TypeAlias, cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..aten.types import ITEM_SIZES, TensorType, torch_name
from ..raw import operands_of, ops_of
from ..sym import Expr
from .memory import EmptyOp, FreeOp, ViewOp

Place: TypeAlias = tuple[SSAValue, Expr, Attribute]
"""A pool, the first byte in it, and the type of what is there."""


def place_of(op: Operation) -> Place | None:
    """Where in a pool the tensor of an op lies; None for one that is no planned memory and no view of any."""
    if type(op) is EmptyOp and op.offset is not None:
        return op.pool[0], op.offset.data, op.out.type
    if type(op) is not ViewOp:
        return None
    memory = op.source.owner
    if type(memory) is not EmptyOp or memory.offset is None:
        return None
    kind = op.out.type
    assert isinstance(kind, TensorType)
    return memory.pool[0], memory.offset.data + op.offset.data * ITEM_SIZES[torch_name(kind.element)], kind


def number_of(op: Operation) -> int | None:
    """The number of the place that an op says."""
    number = op.properties.get("place")
    return number.value.data if type(number) is IntegerAttr else None


def verify_places(block: Block) -> None:
    """Check that ops with the number of one place lie in one place, and that none is used when its pool has ended.

    Raises VerifyException.
    """
    known: dict[int, Place] = {}
    ended: set[SSAValue] = set()
    ops = ops_of(block)
    numbers = {id(op): number for op in ops if (number := number_of(op)) is not None}
    for op in ops if numbers else ():
        if type(op) is FreeOp:
            ended.update(op.values)
            continue
        for operand in operands_of(op) if ended else ():
            where = place_of(cast(Operation, operand.owner)) if id(operand.owner) in numbers else None
            if where is not None and where[0] in ended:
                raise VerifyException(f"{op.name} uses %{operand.name_hint or '?'}, whose place ended with its pool")
        number = numbers.get(id(op))
        if number is None:
            continue
        where = place_of(op)
        if where is None:
            raise VerifyException(f"place {number} is for planned memory and views of it, not for other {op.name}")
        if known.setdefault(number, where) != where:
            raise VerifyException(f"place {number} is in two pools, at two offsets or of two types")
