"""Tensors of a type: making them with its strides, and checking that a tensor has it."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ..limits import check_bytes
from .errors import InterpretationError
from .precision import actual_device, canary


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Elements between the first and the last one, both included; 0 for an empty tensor.

    InterpretationError where a size or a stride is negative, as only symbols can make them.
    """
    check_not_negative(shape, "size")
    check_not_negative(strides, "stride")
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))


def check_not_negative(numbers: Sequence[int], what: str) -> None:
    """InterpretationError where sizes or strides that were computed are negative."""
    if any(number < 0 for number in numbers):
        raise InterpretationError(f"there is no {what} {min(numbers)}, which the program computes")


def undefined(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor full of canaries, gaps included."""
    check_bytes(span(shape, strides) * dtype.itemsize)
    base = torch.full((span(shape, strides),), canary(dtype), dtype=dtype, device=device)
    return base.as_strided(tuple(shape), tuple(strides))


def same_strides(tensor: torch.Tensor, strides: Sequence[int]) -> bool:
    """Whether strides agree where they matter: in dimensions with more than one element, unless all is empty."""
    if not tensor.numel():
        return True
    return all(
        size == 1 or have == want for size, have, want in zip(tensor.shape, tensor.stride(), strides, strict=True)
    )


def mismatch(
    tensor: torch.Tensor,
    shape: Sequence[int],
    strides: Sequence[int] | None,
    dtype: torch.dtype,
    device: str,
) -> str | None:
    """How a tensor differs from what is wanted ("has shape ... instead of ..."); None when it does not.

    Strides are not compared when None.
    """
    if tuple(tensor.shape) != tuple(shape):
        return f"has shape {tuple(tensor.shape)} instead of {tuple(shape)}"
    if tensor.dtype != dtype:
        return f"has dtype {tensor.dtype} instead of {dtype}"
    if tensor.device != actual_device(device) and tensor.device.type != actual_device(device).type:
        return f"is on {tensor.device} instead of {device}"
    if strides is not None and not same_strides(tensor, strides):
        return f"has strides {tensor.stride()} instead of {tuple(strides)}"
    return None


def same_memory(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors share a storage."""
    return a.untyped_storage()._cdata == b.untyped_storage()._cdata


def first_element(tensor: torch.Tensor) -> int:
    """Number of a tensor's first element in its storage."""
    return int(tensor.storage_offset())
