"""What torch offers for a kind of GPU, found by its device type: "cuda" stands here only in examples.

torch's private fast paths are used where this version has them; each has a public fallback.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch

from ...records import dataclass

_guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)

#: device types that are no GPUs
HOSTS = frozenset({"cpu", "meta"})


@dataclass(frozen=True)
class Gpu:
    """The devices of one type.

    module:         torch's module for them, such as `torch.cuda`
    current_device: index of the current device, once torch has used one
    current_stream: index of a device -> handle of its current stream
    empty:          `empty(size, stride, dtype)`: a tensor of undefined content on the current device
    """

    module: Any
    current_device: Callable[[], int]
    current_stream: Callable[[int], int]
    empty: Callable[..., torch.Tensor]

    @property
    def is_available(self) -> bool:
        """Whether this machine has such a device."""
        return self.module.is_available()

    def device(self, index: int) -> Any:
        """A context in which a device is the current one."""
        return self.module.device(index)


@cache
def gpu(device_type: str) -> Gpu:
    """The devices of a type such as "cuda"."""
    module = torch.get_device_module(device_type)

    def current_stream(index: int) -> int:
        stream = module.current_stream(index)
        return getattr(stream, f"{device_type}_stream", None) or stream.native_handle

    def empty(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        return torch.empty_strided(size, stride, dtype=dtype, device=device_type)

    return Gpu(
        module,
        getattr(torch._C, f"_{device_type}_getDevice", module.current_device),
        getattr(torch._C, f"_{device_type}_getCurrentRawStream", current_stream),
        getattr(_guards, f"_empty_strided_{device_type}", empty),
    )


def is_gpu(device: str) -> bool:
    """Whether a torch device, "cuda:0", is a GPU."""
    return device.partition(":")[0] not in HOSTS


def on_device(device: torch.device) -> Callable[[Callable[[list[Any]], Any]], Callable[[list[Any]], Any]]:
    """A decorator for programs: the GPU is the current device while one runs."""
    module, current_device, index = gpu(device.type).module, gpu(device.type).current_device, device.index

    def decorate(run: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
        def guarded(args: list[Any]) -> Any:
            if current_device() == index:
                return run(args)
            with module.device(device):
                return run(args)

        return guarded

    return decorate
