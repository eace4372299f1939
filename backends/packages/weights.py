"""Tensors as bytes and back. Those that share memory share it again."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

import torch

from ...errors import UserError
from ...machines import in_host_memory
from .archive import ALIGNMENT
from .plain import decode, encode


def flatten(tensors: Mapping[str, torch.Tensor]) -> tuple[dict[str, Any], bytes]:
    """Where each tensor lies in the bytes, and the bytes: of each storage the part that tensors reach."""
    described: dict[str, Any] = {}
    reached: dict[int, tuple[int, int, torch.Tensor]] = {}
    for name, tensor in tensors.items():
        if not in_host_memory(tensor.device.type) or tensor.layout is not torch.strided:
            raise UserError(
                f"the tensor {name} is on {tensor.device}, of layout {tensor.layout}", "export a dense model on the CPU"
            )
        first, last = bytes_reached(tensor)
        first -= first % ALIGNMENT
        key = tensor.untyped_storage()._cdata
        low, high, _ = reached.get(key, (first, last, tensor))
        reached[key] = min(low, first), max(high, last), tensor
    parts: list[bytes] = []
    starts: dict[int, int] = {}
    total = 0
    for key, (low, high, tensor) in reached.items():
        starts[key] = total - low
        content = ctypes.string_at(tensor.untyped_storage().data_ptr() + low, high - low) if high > low else b""
        content += bytes(-len(content) % ALIGNMENT)
        parts.append(content)
        total += len(content)
    for name, tensor in tensors.items():
        start = starts[tensor.untyped_storage()._cdata] + tensor.storage_offset() * tensor.element_size()
        described[name] = {
            "dtype": encode(tensor.dtype), "shape": list(tensor.shape), "stride": list(tensor.stride()), "start": start,
        }  # fmt: skip
    return described, b"".join(parts)


def on_device(tensors: Mapping[str, torch.Tensor], device: torch.device) -> dict[str, torch.Tensor]:
    """Tensors on a device; those that share memory share it there."""
    storages: dict[int, torch.UntypedStorage] = {}
    found: dict[str, torch.Tensor] = {}
    for name, tensor in tensors.items():
        if tensor.device == device:
            found[name] = tensor
            continue
        own = tensor.untyped_storage()
        storage = storages.get(own._cdata)
        if storage is None:
            storage = storages[own._cdata] = own.to(device=device)
        made = torch.empty(0, dtype=tensor.dtype, device=device)
        made.set_(storage, tensor.storage_offset(), tensor.shape, tensor.stride())  # type: ignore[call-overload]
        found[name] = made
    return found


def bytes_reached(tensor: torch.Tensor) -> tuple[int, int]:
    """The bytes of its storage that a tensor reaches: the first, and the one behind the last; none for no elements."""
    size = tensor.element_size()
    first = int(tensor.storage_offset()) * size
    if tensor.numel() == 0:
        return first, first
    last = sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    return first, first + int(last + 1) * size


def tensors_in(described: Mapping[str, Any], content: memoryview) -> dict[str, torch.Tensor]:
    """The tensors that lie in these bytes, without a copy. ValueError where one reaches beyond them."""
    if not described:
        return {}
    whole = torch.frombuffer(content, dtype=torch.uint8) if len(content) else torch.empty(0, dtype=torch.uint8)
    return {name: _tensor(name, each, whole) for name, each in described.items()}


def _tensor(name: str, description: Mapping[str, Any], whole: torch.Tensor) -> torch.Tensor:
    dtype, start = decode(description["dtype"]), description["start"]
    shape, stride = tuple(description["shape"]), tuple(description["stride"])
    if 0 in shape:
        return torch.empty_strided(shape, stride, dtype=dtype)
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
    if min((*shape, *stride, start, 0)) < 0 or start + reach * dtype.itemsize > len(whole):
        raise ValueError(f"the tensor {name} reaches beyond the weights")
    return whole[start : start + reach * dtype.itemsize].view(dtype).as_strided(shape, stride)
