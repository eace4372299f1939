"""Lowerings that a program registers for its own operators, as `torch._inductor.lowering.register_lowering` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from .. import extensions
from ..errors import UserError
from .aten_to_loop import rules
from .fx_targets import callee_name

_GROUP = "inductile.lowerings"


def register_lowering(*operators: Any) -> Callable[[Any], Any]:
    """Give operators of your own kernels, in this process; a decorator.

    operators: `torch.ops.mylib.f`, with all of its overloads, `torch.ops.mylib.f.default`, or the name `"mylib::f"`

    What is decorated makes loops: a function `(builder, call, values)` that returns the value of the result, or a list
    of them where there are several. `builder` is a `LoopBuilder`, `call` the `aten.call`, and `values` has what stands
    for an operand, `values.get(operand, operand)`. A name that is registered again gets the new lowering. Graphs that
    are compiled already stay as they are until `torch.compiler.reset()`. A package ships its lowerings by entry points
    of the group `inductile.lowerings` instead. `UserError` for an operator that we lower ourselves, and for one that
    writes to its arguments.
    """
    from .aten_to_loop import lower  # noqa: F401 - enters our own rules

    names = [name for operator in operators for name in _names(operator)]
    for name in names:
        if name.startswith("aten::") or rules.is_ours(name):
            raise UserError(f"inductile lowers {name} itself", "give it another meaning by the option 'decompositions'")
        if _writes(name):
            raise UserError(
                f"{name} writes to its arguments, and a lowering only makes values, so that it would never be used",
                "give one to an operator that returns what this one writes, and copy it in the program",
            )

    def enter(lowering: Any) -> Any:
        for name in names:
            extensions.add(_GROUP, f"{name}, of this process", {name: lowering})
        return lowering

    return enter


def _writes(name: str) -> bool:
    """Whether an operator, if it is defined already, writes to its arguments."""
    qualified, _, overload = name.partition(".")
    try:
        return torch._C._get_schema(qualified, "" if overload == "default" else overload).is_mutable
    except RuntimeError:
        return False


def _names(operator: Any) -> Iterator[str]:
    if isinstance(operator, str) and "::" in operator:
        yield operator
    elif isinstance(operator, torch._ops.OpOverload):
        yield callee_name(operator)
    elif isinstance(operator, torch._ops.OpOverloadPacket):
        names = [callee_name(getattr(operator, overload)) for overload in operator.overloads()]
        yield from [name for name in names if not _writes(name)] or names  # an `out` beside the others stays a call
    elif isinstance(overload := getattr(operator, "_opoverload", None), torch._ops.OpOverload):  # a `custom_op`
        yield callee_name(overload)
    else:
        raise UserError(f"register_lowering got {operator!r}", "name torch.ops.mylib.f, or 'mylib::f'")
