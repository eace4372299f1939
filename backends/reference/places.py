"""Combining values into memory at places that may repeat."""

from __future__ import annotations

import torch

#: combination of a scatter or store -> torch's name
_REDUCTIONS = {"mul": "prod", "amin": "amin", "amax": "amax"}

#: on bool, as in ATen: add and amax are or, mul and amin are and
_ON_BOOL = {"add": "amax", "mul": "amin"}


#: dtypes that torch cannot put by index -> dtype of the same bits that it can
_BITS = {torch.uint16: torch.int16, torch.uint32: torch.int32, torch.uint64: torch.int64}
if hasattr(torch, "float8_e8m0fnu"):
    _BITS[torch.float8_e8m0fnu] = torch.uint8


def put(flat: torch.Tensor, places: torch.Tensor, value: torch.Tensor) -> None:
    """Write values at places that do not repeat."""
    bits = _BITS.get(flat.dtype)
    if bits is not None:
        flat, value = flat.view(bits), value.view(bits)
    flat[places] = value


def combine_at(flat: torch.Tensor, places: torch.Tensor, value: torch.Tensor, kind: str) -> torch.Tensor:
    """`flat` with values added, multiplied, ... at places that may repeat; floats round once, at the end."""
    dtype = flat.dtype
    if dtype == torch.bool:
        kind = _ON_BOOL.get(kind, kind)
    wide = _wide(dtype)
    target, source = flat.to(wide), value.to(wide)
    if kind == "add":
        return target.index_add(0, places, source).to(dtype)
    return target.scatter_reduce(0, places, source, _REDUCTIONS[kind], include_self=True).to(dtype)


def _wide(dtype: torch.dtype) -> torch.dtype:
    """A dtype that torch can combine in, which holds all values of `dtype`."""
    if dtype == torch.bool:
        return torch.uint8
    if dtype.is_floating_point:
        return torch.float64
    unsigned = not dtype.is_signed and dtype != torch.uint8
    return torch.int64 if unsigned else dtype


def last_at(places: torch.Tensor, size: int) -> torch.Tensor:
    """Which of the values written to places below `size`, one after the other, is the last one at its place."""
    order = torch.arange(len(places), device=places.device)
    last = torch.full((size,), -1, dtype=torch.int64, device=places.device)
    return last.scatter_reduce(0, places, order, "amax")[places] == order
