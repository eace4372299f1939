"""What generated programs call: allocation, views and checks of results.

torch's private fast paths are used where this version has them; each has a public fallback here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ...errors import UserError, of_program

_guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)


def _public_empty(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype)


#: `empty_cpu(size, stride, dtype)`: a CPU tensor of undefined content
empty_cpu: Callable[..., torch.Tensor] = getattr(_guards, "_empty_strided_cpu", _public_empty)


def _public_strided(tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int], offset: int) -> torch.Tensor:
    return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


#: `strided(tensor, size, stride, offset)`: other sizes and strides over a tensor's memory; the offset is in elements,
#: from its first element
strided: Callable[..., torch.Tensor] = getattr(_guards, "_reinterpret_tensor", _public_strided)


def to_device(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A contiguous tensor's copy on a GPU. A single number travels with a launch: the host does not wait for it."""
    if tensor.dim():
        return tensor.to(device)
    return torch.empty((), dtype=tensor.dtype, device=device).fill_(tensor)


def in_pool(
    pool: torch.Tensor, offset: int, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    """A tensor inside a pool of bytes; the offset is in bytes and a multiple of the item size."""
    if pool.dtype is not dtype:
        pool = pool.view(torch.uint8).view(dtype) if pool.dtype is not torch.uint8 else pool.view(dtype)
    return strided(pool, size, stride, offset // dtype.itemsize)


def retyped(
    tensor: torch.Tensor, offset: int, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    """A tensor of another type over the memory of a dense one; the offset is in elements of the result."""
    memory = strided(tensor, (tensor.numel(),), (1,), 0).view(dtype)
    return strided(memory, size, stride, offset)


def fit(tensor: torch.Tensor, size: Sequence[int], stride: Sequence[int]) -> torch.Tensor:
    """The tensor with exactly these strides where they matter; copied when ATen chose another layout.

    Generated kernels address memory by the strides that the IR promises.
    """
    if tensor.stride() == stride:
        return tensor
    if tensor.numel() == 0 or all(n == 1 or a == b for n, a, b in zip(size, tensor.stride(), stride, strict=True)):
        return tensor
    copy = torch.empty_strided(size, stride, dtype=tensor.dtype, device=tensor.device)
    return copy.copy_(tensor)


def check_size(tensor: torch.Tensor, size: Sequence[int], name: str) -> None:
    """Raise RuntimeError where the sizes that data decided are not those that the program was compiled for."""
    if tensor.shape != size:
        problem = f"{name} gives a tensor of sizes {list(tensor.shape)}, and the program needs {list(size)}"
        raise of_program(RuntimeError(problem))


def device_of(name: str) -> torch.device:
    """The device of a name. Raises UserError for one that this torch does not know."""
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise UserError(f"this torch knows no device {name!r}", "mend the device in the file") from error


def torch_dtype(element: Any) -> torch.dtype:
    """The torch dtype of an element type."""
    from ...dialects.aten.types import torch_name  # of emission alone; programs from the cache load without xDSL

    return getattr(torch, torch_name(element))


def flatten(result: Any) -> list[Any]:
    """Results of a call as one flat list; lists of tensors are spread."""
    if isinstance(result, tuple | list):
        return [leaf for item in result for leaf in flatten(item)]
    return [result]
