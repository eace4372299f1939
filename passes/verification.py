"""Verifying a module: xDSL's own checks, and that every value is defined before it is used.

xDSL 0.75 checks no dominance: an op may use a value that is defined below it, and the text of such a module does not
parse back.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsolatedFromAbove
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
    try:
        module.verify()
    except Exception as error:
        return _locate(module, error)
    return _undefined_use(module.body.blocks, set())


def _locate(module: ModuleOp, error: Exception) -> Violation:
    """The op whose own check fails; xDSL's error names it only by a drawing of the whole module."""
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except Exception as found:
            return Violation(op, _reason(found))
    return Violation(None, _reason(error))


def _reason(error: Exception) -> str:
    lines = [line.strip(" ^-\t") for line in str(error).splitlines() if line.strip(" ^-\t")]
    reason = lines[-1] if lines else "no reason given"
    return reason if isinstance(error, VerifyException) else f"{type(error).__name__}: {reason}"


def _undefined_use(blocks: Iterable[Block], visible: set[SSAValue]) -> Violation | None:
    listed = list(blocks)
    if len(listed) > 1:  # control flow between blocks: none of our dialects has it
        for block in listed:
            visible.update(block.args, *(op.results for op in block.ops))
    for block in listed:
        found = _undefined_use_in(block, visible)
        if found is not None:
            return found
    return None


def _undefined_use_in(block: Block, visible: set[SSAValue]) -> Violation | None:
    own: list[SSAValue] = list(block.args)
    visible.update(own)
    for op in block.ops:
        for position, operand in enumerate(op.operands):
            if operand not in visible:
                name = f" (%{operand.name_hint})" if operand.name_hint else ""
                return Violation(op, f"operand {position}{name} is not defined before it")
        for region in op.regions:
            inside = set[SSAValue]() if op.has_trait(IsolatedFromAbove) else visible
            found = _undefined_use(region.blocks, inside)
            if found is not None:
                return found
        own += op.results
        visible.update(op.results)
    visible.difference_update(own)
    return None
