"""Verifying a module: every op's own checks, and that every value is defined before it is used.

xDSL 0.75 checks no dominance: an op may use a value that is defined below it, and the text of such a module does not
parse back. It also checks each op anew at 35 microseconds, which was a third of what compiling a model cost us. What
the verifier of a scalar op or an access looks at is its operands' types, its result types and its properties, and a
model repeats few combinations of these; one that has passed is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsolatedFromAbove, IsTerminator
from xdsl.utils.exceptions import VerifyException

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


#: ops of these dialects, and these ops, are verified by types and properties alone
_CONTEXT_FREE_DIALECTS = frozenset({"arith", "math", "scalar"})
_CONTEXT_FREE_OPS = frozenset(
    {"loop.load", "loop.index", "loop.assert", "kernel.load", "kernel.store", "kernel.index", "kernel.assert"}
)
_MEMO_LIMIT = 1 << 16
_valid: set[tuple[object, ...]] = set()
_context_free: dict[type[Operation], bool] = {}


def _is_context_free(cls: type[Operation]) -> bool:
    found = _context_free.get(cls)
    if found is None:
        found = cls.name in _CONTEXT_FREE_OPS or cls.name.partition(".")[0] in _CONTEXT_FREE_DIALECTS
        _context_free[cls] = found
    return found


def _check_op(op: Operation) -> Violation | None:
    """Run an op's own verifier, without what is in its regions."""
    key: tuple[object, ...] | None = None
    if _is_context_free(type(op)) and not op.regions:
        key = (
            type(op),
            tuple([o.type for o in op.operands]),
            tuple([r.type for r in op.results]),
            tuple(op.properties.items()),
        )
        if key in _valid:
            return None
    try:
        op.verify(verify_nested_ops=False)
    except Exception as error:
        return Violation(op, _reason(error))
    if key is not None and len(_valid) < _MEMO_LIMIT:
        _valid.add(key)
    return None


def _reason(error: Exception) -> str:
    lines = [line.strip(" ^-\t") for line in str(error).splitlines() if line.strip(" ^-\t")]
    reason = lines[-1] if lines else "no reason given"
    return reason if isinstance(error, VerifyException) else f"{type(error).__name__}: {reason}"


def _violation_in(blocks: Iterable[Block], visible: set[SSAValue]) -> Violation | None:
    listed = list(blocks)
    if len(listed) > 1:  # control flow between blocks: none of our dialects has it
        for block in listed:
            visible.update(block.args, *(op.results for op in block.ops))
    for block in listed:
        found = _violation_in_block(block, visible)
        if found is not None:
            return found
    return None


def _violation_in_block(block: Block, visible: set[SSAValue]) -> Violation | None:
    own: list[SSAValue] = list(block.args)
    visible.update(own)
    last = block.last_op
    for op in block.ops:
        for position, operand in enumerate(op.operands):
            if operand not in visible:
                name = f" (%{operand.name_hint})" if operand.name_hint else ""
                return Violation(op, f"operand {position}{name} is not defined before it")
        found = _check_op(op)
        if found is None and op is last and not op.has_trait(IsTerminator):
            found = _check_last(op)
        if found is not None:
            return found
        for region in op.regions:
            inside = set[SSAValue]() if op.has_trait(IsolatedFromAbove) else visible
            found = _violation_in(region.blocks, inside)
            if found is not None:
                return found
        own += op.results
        visible.update(op.results)
    visible.difference_update(own)
    return None


def _check_last(op: Operation) -> Violation | None:
    """A block ends in a terminator unless its parent wants none; the check is the op's own, and never remembered."""
    try:
        op.verify(verify_nested_ops=False)
    except Exception as error:
        return Violation(op, _reason(error))
    return None
