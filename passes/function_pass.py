"""Passes that treat each function of the levels aten, loop and host by itself."""

from __future__ import annotations

from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from ..dialects import host
from .analysis.functions import functions
from .remarks import remark


class FunctionPass(ModulePass):
    """A pass that calls `on_function` for each function with a body.

    Programs are right without it, unless it says otherwise by `optional: ClassVar[bool] = False`.
    """

    optional: ClassVar[bool] = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Treat the functions in the order of the module."""
        for function, block in list(functions(op)):
            self.on_function(function, block)

    def on_function(self, function: FuncOp, block: Block) -> None:
        """Change one function in place."""
        raise NotImplementedError


class AtenPass(FunctionPass):
    """A `FunctionPass` of the level aten."""

    level: ClassVar[str] = "aten"


class LoopPass(FunctionPass):
    """A `FunctionPass` of the level loop."""

    level: ClassVar[str] = "loop"


class HostPass(ModulePass):
    """A pass that calls `on_program` for each host function; what `FunctionPass` says of `optional` holds.

    A program that frees memory has its memory planned, as one that a pipeline has been through: such stay as they are,
    but for passes that say otherwise by `on_freed: ClassVar[bool] = True`.
    """

    level: ClassVar[str] = "host"
    optional: ClassVar[bool] = True
    on_freed: ClassVar[bool] = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Treat the programs in the order of the module."""
        for function in op.body.block.ops:
            if not isinstance(function, host.FuncOp):
                continue
            if not self.on_freed and any(isinstance(each, host.FreeOp) for each in function.body.block.ops):
                remark("missed", self.name, function, "it frees memory: it has been through this pass already")
                continue
            self.on_program(function)

    def on_program(self, function: host.FuncOp) -> None:
        """Change one program in place."""
        raise NotImplementedError
