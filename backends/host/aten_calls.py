"""ATen ops and calls of other operators as Python text: the callable and its arguments."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from xdsl.ir import Attribute, SSAValue

from ...dialects.aten import AtenOp, CallOp, Device, Layout, MemoryFormat, Operator, Reference, TensorType, Tuple
from ...dialects.sym import Expr
from ...errors import UnsupportedError
from ...lowering.fx_packed_weights import placed_function
from ...lowering.fx_placed_products import placed
from ...lowering.fx_targets import resolve
from ...passes.analysis.region_calls import bodies_of
from .constants import Constants
from .control import LOOPS, RUNNERS, STACKING
from .direct import direct
from .expressions import expression, expressions
from .products import implementation_of
from .runtime import device_of, torch_dtype
from .walk import arguments_of


class ArgumentPrinter:
    """Prints argument values.

    variable:   gives the variable of an SSA value
    symbols:    variables of the symbols that are known so far
    references: what travels beside the module: graphs of branches and other objects
    functions:  gives the variable of a function of the module; None for another name
    size:       gives the text of a size, a variable where it is computed once for the sizes of the arguments
    """

    def __init__(
        self,
        constants: Constants,
        variable: Callable[[SSAValue], str],
        symbols: Mapping[str, str],
        references: Mapping[str, Any],
        functions: Callable[[str], str | None] = lambda _: None,
        size: Callable[[Expr], str] | None = None,
    ) -> None:
        self.size = size or (lambda expr: expression(expr, symbols))
        self.functions = functions
        self.constants = constants
        self.variable = variable
        self.symbols = symbols
        self.references = references
        self.most: int | None = None
        """How many steps a loop may take; None where no limit holds."""

    def call(self, op: AtenOp | CallOp) -> str:
        """The call expression. Defaults of ATen's arguments are left out."""
        if isinstance(op, CallOp):
            function = RUNNERS[op.target] if self.runs_functions(op) else self.operator(op.target)
            arguments = [self.print(value) for value in op.args()]
            arguments += [self._named(name, value) for name, value in op.kwargs().items()]
            if function in STACKING:
                arguments.append(f"layouts=[{', '.join(map(self._layout, op.results))}]")
            if function in LOOPS and self.most is not None:
                arguments.append(f"most={self.most}")
        else:
            function = self.function(op)
            arguments = self._spelled(op)
        return f"{self.constants.bind('call', function)}({', '.join(arguments)})"

    def runs_functions(self, op: AtenOp | CallOp) -> bool:
        """Whether a call is one of a higher-order operator whose bodies are functions of the module."""
        bodies = bodies_of(op) if isinstance(op, CallOp) else []
        return bool(bodies) and all(self.functions(body.name) is not None for body in bodies)

    def _layout(self, value: SSAValue) -> str:
        """Sizes, strides, dtype and device of a result."""
        kind = value.type
        if not isinstance(kind, TensorType):
            return "None"
        layout = (expressions(each, self.symbols) for each in (kind.shape, kind.strides))
        dtype, device = self._constant(kind.element), self._constant(Device(kind.device))
        return f"({', '.join(layout)}, {dtype}, {device})"

    def operator(self, name: str) -> Callable[..., Any]:
        """What runs an operator called by name, at one place of the program."""
        return placed(name) or placed_function(name) or resolve(name)

    def function(self, op: AtenOp) -> Callable[..., Any]:
        """What runs an ATen op."""
        return implementation_of(op) or direct(resolve(op.target.replace(".", "::", 1)))

    def _spelled(self, op: AtenOp) -> list[str]:
        arguments: list[str] = []
        by_name = False
        for argument, given in arguments_of(op):
            if not given:
                by_name = True
                continue
            by_name |= argument.kwarg_only
            value = op.arg(argument.name)
            arguments.append(self._named(argument.name, value) if by_name else self.print(value))
        return arguments

    def _named(self, name: str, value: Any) -> str:
        if not name.isidentifier():
            raise UnsupportedError(f"{name!r} is not the name of an argument")
        # `from`, an argument of random ops, is a keyword of Python
        return f"**{{{name!r}: {self.print(value)}}}" if name in ("from", "lambda") else f"{name}={self.print(value)}"

    def print(self, value: Any) -> str:
        """One argument value as text."""
        if isinstance(value, SSAValue):
            return self.variable(value)
        if isinstance(value, Expr):
            return self.size(value)
        if isinstance(value, Tuple):
            return f"({''.join(f'{self.print(item)}, ' for item in value)})"
        if isinstance(value, tuple | list):
            return f"[{', '.join(map(self.print, value))}]"
        if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
            return repr(value)
        if isinstance(value, dict):
            items = (f"{self.constants.bind('text', key)}: {self.print(item)}" for key, item in value.items())
            return f"{{{', '.join(items)}}}"
        return self._constant(value)

    def _constant(self, value: Any) -> str:
        bind = self.constants.bind
        if isinstance(value, Attribute):
            return bind("dtype", torch_dtype(value))
        if isinstance(value, Device):
            return bind("device", device_of(str(value)))
        if isinstance(value, Layout | MemoryFormat):
            return bind("format", getattr(torch, str(value)))
        if isinstance(value, Operator):
            return bind("call", resolve(str(value)))
        if isinstance(value, Reference):
            function = self.functions(str(value))
            if function is not None:
                return function
            if str(value) not in self.references:
                raise UnsupportedError(f"nothing is given for the reference @{value}")
            return bind("object", self.references[str(value)])
        if isinstance(value, str):
            return bind("text", value)
        return bind("number", value)
