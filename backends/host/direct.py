"""Calling an ATen overload at less cost: functions of `torch` parse their arguments faster than `torch.ops` does."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

#: overloads beside the default one that no call of it can be taken for: they need more arguments
_DISTINCT = frozenset({"dtype", "dtype_out"})


@cache
def direct(function: Any) -> Callable[..., Any]:
    """A function of torch that runs the same overload on the same arguments, or the overload itself.

    Only for the default overload of an op whose others are told apart by an argument `out`, so that the arguments
    cannot select another. Uses `torch._C._VariableFunctions`.
    """
    if not isinstance(function, torch._ops.OpOverload) or function._overloadname != "default":
        return function
    namespace, _, name = function._schema.name.partition("::")
    packet = getattr(torch.ops.aten, name, None) if namespace == "aten" else None
    found = getattr(getattr(torch._C, "_VariableFunctions", None), name, None)
    if packet is None or found is None or name.endswith("_"):
        return function
    others = [o for o in packet.overloads() if o != "default"]
    if all(o in _DISTINCT or _has_out(getattr(packet, o)) for o in others):
        return found
    return function


def _has_out(overload: Any) -> bool:
    return any(argument.is_out for argument in overload._schema.arguments)
