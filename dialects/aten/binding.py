"""How the symbols that an op defines follow from its results."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IndexType

from ..sym import Expr, symbol
from .call import CallOp
from .ops import AtenOp
from .types import TensorType

MEASURED = "d0"
"""Stands in `Binding.value` for the number that is read from the result."""


@dataclass(frozen=True)
class Binding:
    """The symbol `name` is `value`, where `d0` is the integer result number `result`, or its size in `dim`."""

    name: str
    result: int
    dim: int | None
    value: Expr


def bindings(op: AtenOp | CallOp) -> list[Binding]:
    """One entry for each symbol that `op` binds.

    Sizes of tensor results come first; symbols that they do not give are the integer results, in order. A size may
    give a symbol indirectly: `u0 = d0 floordiv 2` where the size is `2*u0`.
    Raises ValueError for a symbol that no result gives.
    """
    names = list(op.binds)
    found: dict[str, Binding] = {}
    for number, result in enumerate(op.results):
        if isinstance(result.type, TensorType):
            for dim, size in enumerate(result.type.shape):
                for name in size.free_symbols.intersection(names):
                    binding = _solve(name, number, dim, size, set(names) - found.keys())
                    if binding is not None and (name not in found or size.as_atom is not None):
                        found[name] = binding
    rest = [name for name in names if name not in found]
    for number, result in enumerate(op.results):
        if isinstance(result.type, IndexType) and rest:
            name = rest.pop(0)
            found[name] = Binding(name, number, None, symbol(MEASURED))
    if rest:
        raise ValueError(f"no result of {op.name} gives {', '.join(rest)}")
    return [found[name] for name in names]


def _solve(name: str, number: int, dim: int, size: Expr, unknown: set[str]) -> Binding | None:
    """The symbol from a size that is linear in it and has no other unknown."""
    parts = size.split([name])
    if parts is None or (parts[1].free_symbols & unknown) or any(p.free_symbols & unknown for p in parts[0].values()):
        return None
    return Binding(name, number, dim, (symbol(MEASURED) - parts[1]) // parts[0][name])
