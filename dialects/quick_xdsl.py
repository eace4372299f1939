"""xDSL's own classes, quicker: what they do stays.

Passes hash values and ops, ask `isinstance` and go through blocks more often than they do anything else, and xDSL 0.75
has Python do each. A hash is `id`, which `object` has in C. `isinstance` of an abstract class is a call of Python, and
for a class that it has not met a walk over all subclasses; no others are ever registered, so that real ones are all.
The ops of a block come from an object with a `__next__`, where a generator does; `list` asks for their number too, one
more walk. Formats of ops are read when an op of them is first printed or parsed, and no model needs most of
them: those of `math` were a tenth of what loading the passes took. `tests/dialects/test_quick_xdsl.py` holds all of
this against what it replaces.
"""

# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

import sys
from abc import ABCMeta
from collections.abc import Iterator
from typing import Any

from xdsl.ir import Block, BlockOps, Operation, OpResult, Region, SSAValue
from xdsl.ir.core import BlockArgument
from xdsl.irdl import IRDLOperation, OpDef
from xdsl.irdl.declarative_assembly_format import FormatProgram

_HASHED = (SSAValue, OpResult, BlockArgument, Operation, IRDLOperation, Block, Region)
_MODULES = ("ir.core", "irdl.operations", "dialects.builtin", "dialects.func", "dialects.arith")


class OpMeta(ABCMeta):
    """The class of classes of ops and attributes whose `isinstance` looks at real subclasses alone."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


class LateFormat:
    """A format of an op that is read when it is first needed."""

    def __init__(self, text: str, definition: OpDef) -> None:
        self.text, self.definition = text, definition
        self._read: FormatProgram | None = None

    def read(self) -> FormatProgram:
        """The format, of which xDSL complains now if it is none."""
        if self._read is None:
            self._read = _READ(self.text, self.definition)
        return self._read

    def parse(self, parser: Any, op_type: Any) -> Any:
        """As xDSL's."""
        return self.read().parse(parser, op_type)

    def print(self, printer: Any, op: Any) -> None:
        """As xDSL's."""
        self.read().print(printer, op)


_READ = FormatProgram.from_str


def ops_in_order(ops: BlockOps) -> Iterator[Operation]:
    """The ops of a block; one that is given out may be taken from it."""
    op = ops.block._first_op
    while op is not None:
        following = op._next_op
        yield op
        op = following


def number_of_ops(ops: BlockOps) -> int:
    """How many there are."""
    number, op = 0, ops.block._first_op
    while op is not None:
        number += 1
        op = op._next_op
    return number


def _quicken() -> None:
    for cls in _HASHED:
        if "__hash__" in vars(cls):
            cls.__hash__ = object.__hash__
    for name in (f"xdsl.{each}" for each in _MODULES):
        for value in list(vars(sys.modules[name]).values()) if name in sys.modules else ():
            if type(value) is ABCMeta and value.__module__.startswith("xdsl."):
                value.__class__ = OpMeta
    BlockOps.__iter__ = ops_in_order
    BlockOps.__len__ = number_of_ops
    FormatProgram.from_str = staticmethod(LateFormat)


_quicken()
