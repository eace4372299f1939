"""Memory of the host level: guard zones around it, canaries in it, and which bytes of it are defined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import torch
from xdsl.ir import Operation, SSAValue

from ...records import dataclass
from ..limits import check_bytes
from .errors import OutOfBoundsError, describe
from .precision import canary
from .tensors import first_element, span

#: bytes of guard zone on each side; a multiple of every element size
GUARD = 64

_GUARD_BYTE = 0xA5


@dataclass(eq=False)
class Memory:
    """One allocation of a function, or one tenant of a pool.

    Offsets and sizes are those of the program, in bytes. The storage is the tensor's own also for a tenant of a
    pool: that tenants do not overlap is checked, not left to show in the values.
    """

    op: Operation
    nbytes: int
    itemsize: int
    """Bytes of one element in the program."""
    dtype: torch.dtype
    """That of an element in the storage."""
    storage: torch.Tensor
    """Bytes, with a guard zone on each side."""
    written: torch.Tensor
    """For each byte of the program's memory, whether the element that starts there is defined."""
    holders: set[SSAValue] = field(default_factory=set)
    """Values of the function that are this memory or views of it and whose life has not ended."""
    pool: Memory | None = None
    offset: int = 0
    """First byte in the pool."""

    @staticmethod
    def allocate(
        op: Operation,
        shape: Sequence[int],
        strides: Sequence[int],
        dtype: torch.dtype,
        itemsize: int,
        device: torch.device,
    ) -> tuple[Memory, torch.Tensor]:
        """Memory for a tensor, and the tensor, full of canaries.

        `dtype` is that of the storage, `itemsize` that of the program's element, smaller when floats are wide.
        """
        count = span(shape, strides)
        check_bytes(count * dtype.itemsize)
        inside = -(-count * dtype.itemsize // GUARD) * GUARD
        storage = torch.full((inside + 2 * GUARD,), _GUARD_BYTE, dtype=torch.uint8, device=device)
        elements = storage.view(dtype)[GUARD // dtype.itemsize :][:count]
        elements.fill_(canary(dtype))
        written = torch.zeros(count * itemsize, dtype=torch.bool, device=device)
        memory = Memory(op, count * itemsize, itemsize, dtype, storage, written)
        tensor = storage.view(dtype).as_strided(tuple(shape), tuple(strides), GUARD // dtype.itemsize)
        return memory, tensor

    def first(self, tensor: torch.Tensor) -> int:
        """Number of the first element of a tensor of this memory, in elements of the tensor."""
        return first_element(tensor) - GUARD // tensor.element_size()

    def defined(self, tensor: torch.Tensor) -> torch.Tensor:
        """Which elements of a tensor of this memory are defined: a view, of the tensor's shape.

        Of complex elements both parts, in a dimension of two behind the others.
        """
        size = self.item_bytes(tensor)
        if not tensor.numel():
            return torch.ones(tensor.shape, dtype=torch.bool, device=tensor.device)
        shape, steps = [*tensor.shape], [stride * size for stride in tensor.stride()]
        if tensor.is_complex():
            shape, steps = [*shape, 2], [*steps, size // 2]
        return self.written.as_strided(shape, steps, self.first(tensor) * size)

    def item_bytes(self, tensor: torch.Tensor) -> int:
        """Bytes of one element of a tensor in the program, where floats are not wide.

        Where they are, the parts of complex numbers are as much wider as the numbers are.
        """
        return tensor.element_size() * self.itemsize // self.dtype.itemsize

    def check_guards(self) -> None:
        """Raise OutOfBoundsError when something wrote next to the memory."""
        end = GUARD + self.nbytes // self.itemsize * self.dtype.itemsize
        for zone in (self.storage[:GUARD], self.storage[end:]):
            if bool((zone != _GUARD_BYTE).any()):
                raise OutOfBoundsError(f"{describe(self.op)}: something wrote outside of this memory")

    def overlaps(self, other: Memory) -> bool:
        """Whether two tenants share bytes of one pool."""
        return self.offset < other.offset + other.nbytes and other.offset < self.offset + self.nbytes
