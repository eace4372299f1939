"""Names of what an FX node calls: `namespace::name.overload`, and back to the callable."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

from ..dialects.aten.call import is_operator_name
from ..errors import UnsupportedError
from .fx_private import is_dispatched

#: callables outside torch.ops that graphs hold, by the name under which IR may call them: numbers only, no effects
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{
        f"operator::{name}": getattr(operator, name)
        for name in (
            "abs", "add", "and_", "eq", "floordiv", "ge", "gt", "invert", "le", "lshift", "lt", "mod", "mul", "ne",
            "neg", "not_", "or_", "pos", "pow", "rshift", "sub", "truediv", "xor",
        )
    },
    **{f"math::{name}": getattr(math, name) for name in ("ceil", "floor", "trunc", "sqrt", "pow")},
    **{
        f"torch::{name}": function
        for name in (
            "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not", "sym_sum", "_sym_sqrt", "_sym_cos",
            "_sym_cosh", "_sym_sin", "_sym_sinh", "_sym_tan", "_sym_tanh", "_sym_asin", "_sym_acos", "_sym_atan",
            "_sym_log2", "_sym_exp",
        )
        if (function := getattr(torch, name, None)) is not None
    },
    "builtins::round": round,
}  # fmt: skip
_NAMES = {function: name for name, function in FUNCTIONS.items()}


@lru_cache(maxsize=4096)
def callee_name(target: Any) -> str:
    """The name of a node's target. Raises UnsupportedError for a function that IR has no name for."""
    if isinstance(target, torch._ops.OpOverload):
        overload = target._overloadname
        name = target._schema.name
        return name if overload == "default" else f"{name}.{overload}"
    if isinstance(target, torch._ops.HigherOrderOperator):
        return f"higher_order::{target.name()}"
    name = _NAMES.get(target)
    if name is None:
        raise UnsupportedError(f"a graph calls {target}, which is no operator")
    return name


@lru_cache(maxsize=4096)
def resolve(name: str) -> Callable[..., Any]:
    """The callable of a name. Raises UnsupportedError when torch does not know it."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    namespace, _, rest = name.partition("::")
    if namespace == "inductile":
        from . import fx_bounds, fx_either, fx_packed_weights, fx_quantised_ops, fx_random  # noqa: F401 - define them

    found = _operator(namespace, *rest.split(".", 1)) if is_operator_name(name) else None
    if found is None:
        raise UnsupportedError(f"this torch has no operator {name}")
    return found


def _operator(namespace: str, packet: str, overload: str = "default") -> Callable[..., Any] | None:
    """An operator that torch has registered. `torch.ops` is asked for registered names alone: other names of it load
    libraries and import modules."""
    if namespace == "higher_order":
        found = getattr(torch.ops.higher_order, packet, None)
        return found if isinstance(found, torch._ops.HigherOrderOperator) else None
    if not torch._C._jit_get_schemas_for_operator(f"{namespace}::{packet}"):
        return None
    packets = getattr(getattr(torch.ops, namespace), packet, None)
    if not isinstance(packets, torch._ops.OpOverloadPacket) or overload not in packets.overloads():
        return None
    found = getattr(packets, overload)
    return found if isinstance(found, torch._ops.OpOverload) and is_dispatched(found) else None


#: namespaces of the operators that talk to other processes
_COLLECTIVES = frozenset({"_c10d_functional", "_c10d_functional_autograd", "_dtensor", "c10d", "c10d_functional"})


def is_pure(target: Any) -> bool:
    """Whether a call may be removed, repeated and merged: no writes, no random numbers, no branches into graphs.

    A collective may not, although its schema is that of a function: other processes take part in it, in this order.
    """
    if isinstance(target, torch._ops.OpOverload):
        if target.namespace in _COLLECTIVES:
            return False
        schema = target._schema
        return not schema.is_mutable and torch.Tag.nondeterministic_seeded not in target.tags and bool(schema.returns)
    return target in _NAMES
