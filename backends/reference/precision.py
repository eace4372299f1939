"""Which torch dtype stands for which type, as scalars and in memory, and how wide floats are computed."""

from __future__ import annotations

from functools import lru_cache

import torch
from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute

from ...dialects.aten.types import TensorType, scalar_type, torch_name
from ...records import dataclass
from ..host.gpu import HOSTS, gpu
from ..host.runtime import device_of

#: dtype in memory -> the dtype that takes its place when everything is computed in float64
WIDER: dict[torch.dtype, torch.dtype] = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex32: torch.complex128,
    torch.complex64: torch.complex128,
}

#: dtypes that torch computes with in float32, rounding after each op
_COMPUTED_IN_FLOAT32 = frozenset(
    {torch.float16, torch.bfloat16}
    | {getattr(torch, n) for n in dir(torch) if n.startswith("float8_") or n.startswith("float4_")}
)

#: unsigned dtype -> the signed dtype of the same width, which stands for a signless scalar
_SIGNED: dict[torch.dtype, torch.dtype] = {
    torch.uint8: torch.int8,
    torch.uint16: torch.int16,
    torch.uint32: torch.int32,
    torch.uint64: torch.int64,
}


@lru_cache(maxsize=256)
def torch_dtype(element: Attribute) -> torch.dtype:
    """The torch dtype of an element type; an index is an int64."""
    if isinstance(element, IndexType):
        return torch.int64
    return getattr(torch, torch_name(element))


@dataclass(frozen=True)
class Precision:
    """How floats are represented. `wide` computes f16, bf16 and f32 in float64."""

    wide: bool = False

    def stored(self, element: Attribute) -> torch.dtype:
        """dtype of a tensor's memory for an element type."""
        dtype = torch_dtype(element)
        return WIDER.get(dtype, dtype) if self.wide else dtype

    def scalar(self, element: Attribute) -> torch.dtype:
        """dtype of SSA scalars of an element type: as stored, but integers are signless."""
        return self.stored(scalar_type(element))

    def load(self, values: torch.Tensor) -> torch.Tensor:
        """Elements read from memory as scalars: unsigned bits become signless."""
        signed = _SIGNED.get(values.dtype)
        return values if signed is None else values.view(signed)

    def store(self, values: torch.Tensor, element: Attribute) -> torch.Tensor:
        """Scalars as elements of memory, the inverse of `load`."""
        dtype = self.stored(element)
        return values.view(dtype) if dtype in _SIGNED else values

    def convert(self, values: torch.Tensor, source: Attribute, target: Attribute) -> torch.Tensor:
        """A cast that the program wrote, between element types: rounds to the target also when wide."""
        exact = self.store(values, source).to(torch_dtype(target))
        return self.load(exact.to(self.stored(target)))

    def resize(self, values: torch.Tensor, source: Attribute, target: Attribute) -> torch.Tensor:
        """A cast that the compiler inserted: like `convert`, but without rounding between floats when wide."""
        if self.wide and values.is_floating_point() and self.scalar(source) == self.scalar(target):
            return values
        return self.convert(values, source, target)

    def round(self, values: torch.Tensor, element: Attribute) -> torch.Tensor:
        """Float scalars in the very dtype of their type, which is narrower than `scalar` when wide."""
        return values.to(torch_dtype(element))

    @staticmethod
    def computed(dtype: torch.dtype) -> torch.dtype:
        """The dtype in which torch computes with operands of `dtype` before it rounds."""
        return torch.float32 if dtype in _COMPUTED_IN_FLOAT32 else dtype


def accumulator(dtype: torch.dtype) -> torch.dtype:
    """dtype of a sum: float64 for floats, so that the one rounding is the last; integers wrap in their own."""
    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else dtype


def canary(dtype: torch.dtype) -> float | int | bool | complex:
    """What undefined memory is full of: NaN, True, or a large odd number."""
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    if dtype == torch.bool:
        return True
    return torch.iinfo(dtype).max - 16 if torch.iinfo(dtype).bits > 8 else 0x5B


def width(kind: Attribute) -> int:
    """Bits of an integer type; an index has 64."""
    return kind.width.data if isinstance(kind, IntegerType) else 64


def actual_device(name: str) -> torch.device:
    """The device of a type, or the CPU on a machine without it, so that any program can be interpreted."""
    device = device_of(name)
    return device if device.type in HOSTS or _is_here(device) else torch.device("cpu")


def _is_here(device: torch.device) -> bool:
    found = gpu(device.type)
    return found.is_available and (device.index or 0) < found.module.device_count()


def tensor_device(kind: Attribute) -> torch.device:
    """`actual_device` of a tensor type."""
    assert isinstance(kind, TensorType)
    return actual_device(kind.device)
