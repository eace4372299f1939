"""From a caller's inputs to a function's arguments: symbols, checks, and float64 copies when wide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute

from ...dialects.aten.types import TensorType
from ...dialects.sym import SymError
from ...dialects.sym.attributes import SymbolDeclaration
from .domain import value_of
from .errors import InputError, InterpretationError
from .precision import WIDER, torch_dtype
from .tensors import mismatch


def bind_symbols(declarations: Iterable[SymbolDeclaration], inputs: Sequence[Any]) -> dict[str, int]:
    """Values of the symbols that arguments carry, checked against their declared ranges.

    Raises InputError for an input that does not have what a declaration names, or a value that is not allowed.
    """
    symbols: dict[str, int] = {}
    for declaration in declarations:
        if declaration.arg is None:
            continue  # an op of the function defines it
        value = _carried(declaration, inputs)
        problem = _violation(declaration, value)
        if problem:
            raise InputError(f"{declaration.name} = {value}, from argument {declaration.arg}, {problem}")
        symbols[declaration.name] = value
    return symbols


def _carried(declaration: SymbolDeclaration, inputs: Sequence[Any]) -> int:
    assert declaration.arg is not None
    if declaration.arg >= len(inputs):
        raise InputError(f"{declaration.name} comes from argument {declaration.arg} of {len(inputs)}")
    value = inputs[declaration.arg]
    dim = declaration.dim if declaration.dim is not None else declaration.stride
    if dim is None:
        if not isinstance(value, int):
            raise InputError(f"argument {declaration.arg} is {type(value).__name__}", "pass an int")
        return value
    if not isinstance(value, torch.Tensor) or dim >= value.ndim:
        raise InputError(f"argument {declaration.arg} has no dimension {dim} for {declaration.name}")
    return value.shape[dim] if declaration.dim is not None else value.stride(dim)


def _violation(declaration: SymbolDeclaration, value: int) -> str | None:
    if declaration.min is not None and value < declaration.min:
        return f"is below its minimum {declaration.min}"
    if declaration.max is not None and value > declaration.max:
        return f"is above its maximum {declaration.max}"
    if value % declaration.divisor:
        return f"is no multiple of {declaration.divisor}"
    return None


def check_inputs(types: Sequence[Attribute], inputs: Sequence[Any], symbols: dict[str, int]) -> None:
    """Raise InputError unless each input has its argument's type: shape, strides, dtype and device."""
    if len(types) != len(inputs):
        raise InputError(f"the function takes {len(types)} arguments, {len(inputs)} are given")
    for number, (kind, value) in enumerate(zip(types, inputs, strict=True)):
        if isinstance(kind, IndexType):
            if not isinstance(value, int):
                raise InputError(f"argument {number} is {type(value).__name__}", "pass an int")
        elif isinstance(kind, TensorType):
            problem = _tensor_problem(kind, value, symbols)
            if problem:
                raise InputError(f"argument {number} of type {kind} {problem}")


def _tensor_problem(kind: TensorType, value: Any, symbols: dict[str, int]) -> str | None:
    if not isinstance(value, torch.Tensor):
        return f"is {type(value).__name__}"
    try:
        shape = [value_of(e, symbols) for e in kind.shape]
        strides = [value_of(e, symbols) for e in kind.strides]
    except (SymError, InterpretationError) as error:
        return f"cannot be checked: {error}"
    return mismatch(value, shape, strides, torch_dtype(kind.element), kind.device)


class Border:
    """Crosses between a caller's tensors and float64 copies of them, storage by storage, so that aliases stay."""

    def __init__(self) -> None:
        self._wide: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._narrow: dict[tuple[int, torch.dtype], torch.Tensor] = {}

    def enter(self, value: torch.Tensor) -> torch.Tensor:
        """The same view of a float64 copy of the storage; the tensor itself when it has no wider dtype."""
        dtype = WIDER.get(value.dtype)
        if dtype is None:
            return value
        key = value.untyped_storage()._cdata
        if key not in self._wide:
            flat = _flat(value)
            wide = flat.to(dtype)
            self._wide[key] = (flat, wide)
            self._narrow[wide.untyped_storage()._cdata, value.dtype] = flat
        return _view(self._wide[key][1], value)

    def write_back(self) -> None:
        """Round the copies into the caller's storages where the program changed them."""
        for flat, wide in self._wide.values():
            rounded = wide.to(flat.dtype)
            changed = (rounded != flat) & ~(rounded.isnan() & flat.isnan())
            flat[changed] = rounded[changed]

    def leave(self, value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        """A result in its own dtype; after `write_back`. Results that share memory still do."""
        if value.dtype == dtype:
            return value
        key = value.untyped_storage()._cdata, dtype
        if key not in self._narrow:
            self._narrow[key] = _flat(value).to(dtype)
        return _view(self._narrow[key], value)


def _flat(value: torch.Tensor) -> torch.Tensor:
    """All whole elements of a tensor's storage."""
    count = value.untyped_storage().nbytes() // value.element_size()
    return value.as_strided((count,), (1,), 0)


def _view(flat: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    return flat.as_strided(like.shape, like.stride(), like.storage_offset())
