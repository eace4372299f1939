"""Verifying a module: every op's own checks, and that every value is defined before it is used.

xDSL 0.75 checks no dominance: an op may use a value that is defined below it, and the text of such a module does not
parse back. It also checks each op anew at 35 microseconds, which was a third of what compiling a model cost us. What
the verifier of nearly all ops looks at is their signature: types of operands and results, properties, and of each
region what its block takes and ends in. A model repeats few signatures; one that has passed is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.traits import (
    HasAncestor,
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    SymbolOpInterface,
    SymbolTable,
    SymbolUserOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from ..dialects.raw import op_behind, operands_of
from .common.results import result_problem
from .printing import first_line
from .remarks import format_location


@dataclass(frozen=True)
class Violation:
    """The first op that does not verify, and why."""

    op: Operation | None
    reason: str

    def __str__(self) -> str:
        if self.op is None:
            return self.reason
        where = format_location(self.op.location)
        return f"{self.op.name}: {self.reason}, in: {first_line(self.op)}{f' ({where})' if where else ''}"


def find_violation(module: ModuleOp) -> Violation | None:
    """The first op that does not verify; None for a valid module."""
    return _check_op(module) or _violation_in(module.body.blocks, set())


#: dialects whose verifiers look at an op's signature, but for those of the ops named below
_BY_SIGNATURE = frozenset({"arith", "math", "scalar", "sym", "aten", "loop", "kernel", "host"})
_LOOK_INSIDE = frozenset({"loop.fusion"})
#: traits that look at what is around an op or inside it
_LOOK_AROUND = (HasAncestor, HasParent, IsolatedFromAbove, SymbolOpInterface, SymbolTable, SymbolUserOpInterface)
_MEMO_LIMIT = 1 << 16
_valid: set[tuple[object, ...]] = set()


@dataclass(frozen=True)
class _Kind:
    """What the walk asks of a class of ops."""

    by_signature: bool
    is_terminator: bool
    is_isolated: bool


_kinds: dict[type[Operation], _Kind] = {}


def _kind(cls: type[Operation]) -> _Kind:
    found = _kinds.get(cls)
    if found is None:
        known = cls.name.partition(".")[0] in _BY_SIGNATURE and cls.name not in _LOOK_INSIDE
        by_signature = known and not any(isinstance(trait, _LOOK_AROUND) for trait in cls.traits)
        found = _kinds[cls] = _Kind(by_signature, cls.has_trait(IsTerminator), cls.has_trait(IsolatedFromAbove))
    return found


def _signature(op: Operation) -> tuple[object, ...] | None:
    """All that the verifier of an op looks at, if it is verified by its signature."""
    if op.attributes or op.successors:
        return None
    types = [operand.type for operand in operands_of(op)]
    key = (type(op), *types, None, *[r.type for r in op.results], None, *op.properties.items())
    return (*key, *map(_edges, op.regions)) if op.regions else key


def _edges(region: Region) -> object:
    """What the block of a region takes and ends in; something that is like nothing else for any other region."""
    block = region.first_block
    last = None if block is None else block.last_op
    if block is None or last is None or block is not region.last_block:
        return object()
    return (*[a.type for a in block.args], type(last), *[operand.type for operand in operands_of(last)])


def _check_op(op: Operation, is_last: bool = False) -> Violation | None:
    """Run an op's own verifier, without what is in its regions. A terminator stands last, and nothing else does."""
    kind = _kind(type(op))
    key = _signature(op) if kind.by_signature and kind.is_terminator == is_last else None
    if key is not None and key in _valid:
        return None
    try:
        (_header(op) if type(op) is FuncOp else op).verify(verify_nested_ops=False)
    except Exception as error:
        return Violation(op, _reason(error))
    problem = result_problem(op) if type(op) is FuncOp else None
    if problem is not None:
        return Violation(op, problem)
    if key is not None and len(_valid) < _MEMO_LIMIT:
        _valid.add(key)
    return None


def _header(function: FuncOp) -> Operation:
    """A function without the ops of its body: its verifier goes through them all once more to see that they use no
    values from outside, which the walk checks anyway."""
    blocks = list(function.body.blocks)
    if len(blocks) != 1:
        return function
    return FuncOp.create(
        properties=function.properties,
        attributes=function.attributes,
        regions=(Region(Block(arg_types=[a.type for a in blocks[0].args])),),
        location=function.location,
    )


def _reason(error: Exception) -> str:
    lines = [line.strip(" ^-\t") for line in str(error).splitlines() if line.strip(" ^-\t")]
    reason = lines[-1] if lines else "no reason given"
    return reason if isinstance(error, VerifyException) else f"{type(error).__name__}: {reason}"


def _violation_in(blocks: Iterable[Block], visible: set[int]) -> Violation | None:
    listed = list(blocks)
    if len(listed) > 1:  # control flow between blocks: none of our dialects has it
        for block in listed:
            visible.update(map(id, block.args), *(map(id, op.results) for op in block.ops))
    for block in listed:
        found = _violation_in_block(block, visible)
        if found is not None:
            return found
    return None


def _violation_in_block(block: Block, visible: set[int]) -> Violation | None:
    own = [*map(id, block.args)]  # of live values, so no two are equal; a hash of values is a call of Python
    visible.update(own)
    last = block.last_op
    op = block.first_op
    while op is not None:
        for operand in operands_of(op):
            if id(operand) not in visible:
                return _undefined(op, operand)
        found = _check_op(op, op is last)
        if found is not None:
            return found
        if op.regions:
            inside = set[int]() if _kind(type(op)).is_isolated else visible
            for region in op.regions:
                found = _violation_in(region.blocks, inside)
                if found is not None:
                    return found
        results = [*map(id, op.results)]
        own += results
        visible.update(results)
        op = op_behind(op)
    visible.difference_update(own)
    return None


def _undefined(op: Operation, operand: SSAValue) -> Violation:
    position = op.operands.index(operand)
    name = f" (%{operand.name_hint})" if operand.name_hint else ""
    return Violation(op, f"operand {position}{name} is not defined before it")
