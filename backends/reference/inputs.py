"""Inputs for a function, made from its types and the declarations of its symbols."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import torch
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Attribute

from ...dialects.aten.types import TensorType
from ...dialects.sym import SymbolAttr, SymError
from ...dialects.sym.attributes import SymbolDeclaration
from ...lowering.fx_private import without_modes
from ..limits import check_bytes
from .domain import value_of
from .errors import InputError, InterpretationError
from .index_bounds import IndexBounds
from .precision import actual_device, torch_dtype
from .run import declarations, find_function
from .tensors import span

#: floats that find mistakes; NaN and infinities among them
SPECIAL = (float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 1e-40, -1e-40, 65504.0, 3.0e38, 0.5, -2.5, 1.0)

#: integers below this are in range of most things that are indexed
SMALL = 4


def random_inputs(
    module: ModuleOp, seed: int, special: bool = True, function: str | None = None
) -> list[torch.Tensor | int]:
    """Tensors and ints that fit the arguments of a function; equal seeds give equal inputs.

    A symbol is its hint, or a small number that its declaration allows. Integers are in range where they are used as
    indices, else small and not negative. With `special` one float in fifty, and at least one, is NaN, an infinity,
    a zero of either sign, or very large or small.

    Raises InputError for a type of argument that is neither tensor nor index, or contradictory declarations.
    """
    with without_modes():
        return _inputs(module, seed, special, function)


def _inputs(module: ModuleOp, seed: int, special: bool, function: str | None) -> list[torch.Tensor | int]:
    chosen = find_function(module, function)
    generator = torch.Generator().manual_seed(seed)
    kinds = [a.type for a in chosen.body.blocks[0].args]
    symbols = _symbols([s.data for s in declarations(chosen) if isinstance(s, SymbolAttr)], kinds, generator)
    bounds = IndexBounds(module, chosen).found
    inputs: list[torch.Tensor | int] = []
    for number, kind in enumerate(kinds):
        if isinstance(kind, IndexType):
            inputs.append(_integer(number, [s.data for s in declarations(chosen)], symbols, generator))
        elif isinstance(kind, TensorType):
            below = _smallest(bounds.get(number, []), symbols)
            inputs.append(_tensor(kind, symbols, below, special, generator))
        else:
            raise InputError(f"argument {number} has type {kind}, which inputs cannot be made for")
    return inputs


def _symbols(declared: list[SymbolDeclaration], kinds: list[Attribute], generator: torch.Generator) -> dict[str, int]:
    symbols: dict[str, int] = {}
    for declaration in declared:
        if declaration.stride is None and declaration.arg is not None:
            symbols[declaration.name] = _allowed(declaration, _draw(2, 9, generator))
    for declaration in declared:  # strides want sizes
        if declaration.stride is not None and declaration.arg is not None:
            kind = kinds[declaration.arg]
            assert isinstance(kind, TensorType)
            inner = kind.shape[declaration.stride + 1 :]
            row_major = max(1, prod(value_of(e, symbols) for e in inner))
            symbols[declaration.name] = _allowed(declaration, row_major)
    return symbols


def _allowed(declaration: SymbolDeclaration, value: int) -> int:
    """The hint, or the number next to `value` that a declaration allows."""
    if declaration.hint is not None:
        value = declaration.hint
    lowest = declaration.min if declaration.min is not None else 0
    value = -(-max(value, lowest) // declaration.divisor) * declaration.divisor
    if declaration.max is not None and value > declaration.max:
        value = declaration.max // declaration.divisor * declaration.divisor
    return value


def _draw(low: int, high: int, generator: torch.Generator) -> int:
    return int(torch.randint(low, high, (), generator=generator))


def _integer(
    number: int, declared: list[SymbolDeclaration], symbols: Mapping[str, int], generator: torch.Generator
) -> int:
    for declaration in declared:
        if declaration.arg == number and declaration.dim is None and declaration.stride is None:
            return symbols[declaration.name]
    return _draw(0, SMALL, generator)


def _smallest(bounds: list[Any], symbols: Mapping[str, int]) -> int | None:
    known: list[int] = []
    for bound in bounds:
        try:
            known.append(value_of(bound, symbols))
        except (SymError, InterpretationError):
            continue  # depends on axes or on what the program computes
    return min(known) if known else None


def _tensor(
    kind: TensorType, symbols: Mapping[str, int], below: int | None, special: bool, generator: torch.Generator
) -> torch.Tensor:
    shape = tuple(value_of(e, symbols) for e in kind.shape)
    strides = tuple(value_of(e, symbols) for e in kind.strides)
    dtype, count = torch_dtype(kind.element), span(shape, strides)
    check_bytes(count * max(dtype.itemsize, 8))
    if dtype.is_complex:
        flat = torch.complex(_floats(count, special, generator), _floats(count, special, generator))
    elif dtype.is_floating_point:
        flat = _floats(count, special, generator)
    else:
        limit = 2 if dtype == torch.bool else max(1, below if below is not None else SMALL)
        flat = torch.randint(0, limit, (count,), generator=generator)
    return flat.to(dtype).to(actual_device(kind.device)).as_strided(shape, strides)


def _floats(count: int, special: bool, generator: torch.Generator) -> torch.Tensor:
    values = torch.randn(count, generator=generator, dtype=torch.float64)
    if special and count:
        where = torch.randint(0, count, (-(-count // 50),), generator=generator)
        which = torch.randint(0, len(SPECIAL), where.shape, generator=generator)
        values[where] = torch.tensor(SPECIAL, dtype=torch.float64)[which]
    return values
