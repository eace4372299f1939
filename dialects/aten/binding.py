"""How the symbols that an op defines follow from its results."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import IndexType

from ...records import dataclass
from ..sym import Expr, symbol
from .call import CallOp
from .ops import AtenOp
from .types import TensorType

MEASURED = "d0"
"""Stands in `Binding.value` for the number that is read from the result."""


@dataclass(frozen=True)
class Binding:
    """The symbol `name` is `value`, where `d0` is the integer result number `result`, its size in `dim`, or its stride.

    dim, stride: the dimension whose size or stride is read; None for the other one, or for both of an integer
    """

    name: str
    result: int
    dim: int | None
    value: Expr
    stride: int | None = None


def bindings(op: AtenOp | CallOp) -> list[Binding]:
    """One entry for each symbol that `op` binds.

    Sizes of tensor results come first, then strides; symbols that they do not give are the integer results, in order. A
    size may give a symbol indirectly: `u0 = d0 floordiv 2` where the size is `2*u0`. A stride gives what no size does:
    of a dimension of size 0 or 1 it could be anything, and so it is what the tensor says. An entry mentions symbols of
    entries before it alone.
    Raises ValueError for a symbol that no result gives.
    """
    names = list(op.binds)
    found: dict[str, Binding] = {}
    for number, dim, expr, is_stride in _measures(op):
        for name in expr.free_symbols.intersection(names):
            value = _solve(name, expr, set(names) - found.keys())
            if value is not None and (name not in found or (expr.as_atom is not None and not is_stride)):
                found[name] = Binding(name, number, None if is_stride else dim, value, dim if is_stride else None)
    rest = [name for name in names if name not in found]
    for number, result in enumerate(op.results):
        if isinstance(result.type, IndexType) and rest:
            name = rest.pop(0)
            found[name] = Binding(name, number, None, symbol(MEASURED))
    if rest:
        raise ValueError(f"no result of {op.name} gives {', '.join(rest)}")
    return list(found.values())


def _measures(op: AtenOp | CallOp) -> Iterator[tuple[int, int, Expr, bool]]:
    """(result, dimension, expression, whether it is a stride) of the tensors that an op gives, sizes first."""
    tensors = [(number, r.type) for number, r in enumerate(op.results) if isinstance(r.type, TensorType)]
    for is_stride in (False, True):
        for number, kind in tensors:
            for dim, expr in enumerate(kind.strides if is_stride else kind.shape):
                yield number, dim, expr, is_stride


def _solve(name: str, size: Expr, unknown: set[str]) -> Expr | None:
    """The symbol, from a size or stride that is linear in it and has no other unknown."""
    parts = size.split([name])
    if parts is None or (parts[1].free_symbols & unknown) or any(p.free_symbols & unknown for p in parts[0].values()):
        return None
    return (symbol(MEASURED) - parts[1]) // parts[0][name]
