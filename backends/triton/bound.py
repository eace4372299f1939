"""A kernel that can be called.

A kernel that checks its indices writes to a status word in pinned host memory, which the host reads before the next
launch of that kernel and never waits for: like an assertion of eager's CUDA kernels, an error shows late. `check` of
a bound kernel raises at once what has been reported; whoever waits for the GPU anyway may call it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from ..cpp.launch import kernel_error
from .kernel import TritonKernel
from .targets import TritonTarget

_TORCH_DTYPES: dict[str, torch.dtype] = {
    "*fp16": torch.float16, "*bf16": torch.bfloat16, "*fp32": torch.float32, "*fp64": torch.float64,
    "*i1": torch.bool, "*i8": torch.int8, "*i16": torch.int16, "*i32": torch.int32, "*i64": torch.int64,
    "*u8": torch.uint8, "*u16": torch.uint16, "*u32": torch.uint32, "*u64": torch.uint64,
}  # fmt: skip
#: alignment, in bytes, for which Triton compiles a variant of a kernel with wider accesses
_ALIGNED = 16


def is_interpreting() -> bool:
    """Whether Triton runs kernels in its interpreter, on CPU tensors."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


class BoundKernel:
    """A kernel that is called with the number of programs, its buffers and its integers."""

    def __init__(self, source: TritonKernel, target: TritonTarget, function: Any) -> None:
        import triton.language as tl

        self.source = source
        self._function = function
        self._compile_options = {
            "num_warps": source.num_warps,
            "num_stages": source.num_stages,
            **target.options,
        }
        self._widths = (tl.int32, tl.int64)
        self._constants: dict[bool, dict[str, Any]] = {
            wide: {**source.constexprs, **({"INDEX": self._widths[wide]} if source.chooses_index else {})}
            for wide in (False, True)
        }
        self._variants: dict[tuple[Any, ...], Any] = {}
        self._status = _status_word() if source.errors else None

    def __call__(self, programs: int, wide: bool, *arguments: Any) -> None:
        """Launch on the current stream of the buffers' device. `wide`: a buffer needs 64-bit offsets.

        Raises what an earlier launch reported.
        """
        if self._status is not None:
            self.check()
            arguments = (*arguments, self._status)
        if not programs:
            return
        device = arguments[0].device
        if device.type == "cpu":
            self._function[(programs,)](*arguments, **self._constants[wide], **self._compile_options)
            if self._status is not None:
                self.check()
        elif device.index == torch.cuda.current_device():
            self._launch(device.index, programs, wide, arguments)
        else:
            with torch.cuda.device(device):
                self._launch(device.index, programs, wide, arguments)

    def _launch(self, device: int, programs: int, wide: bool, arguments: tuple[Any, ...]) -> None:
        """Launch through the variant that Triton has compiled for arguments like these, or through its JIT.

        The JIT derives from every argument which variant it needs; we look at what can differ here.
        """
        key = (device, wide, *map(variant_of, arguments[self.source.buffers :]))
        aligned = True
        for buffer in arguments[: self.source.buffers]:
            aligned &= buffer.data_ptr() % _ALIGNED == 0
        compiled = self._variants.get(key) if aligned else None
        if compiled is None:
            options = {**self._constants[wide], **self._compile_options}
            compiled = self._function[(programs,)](*arguments, **options)
            if aligned:
                self._variants[key] = compiled
            return
        stream = torch._C._cuda_getCurrentRawStream(device)
        constants = self._constants[wide].values()
        compiled.run(
            programs, 1, 1, stream, compiled.function, compiled.packed_metadata, None, None, None,
            *arguments, *constants,
        )  # fmt: skip

    def warm_up(self) -> None:
        """Compile the variant for aligned buffers, where no integer decides about it."""
        if self.source.symbols:
            return
        types = [t for t in self.source.signature.values() if t in _TORCH_DTYPES]
        dtypes = [_TORCH_DTYPES[t] for t in types]
        self._function.warmup(*dtypes, grid=(1,), **self._constants[False], **self._compile_options)

    def check(self) -> None:
        """Raise the error that the kernel has reported so far, once."""
        assert self._status is not None
        code = int(self._status)
        if code:
            self._status.zero_()
            raise kernel_error(self.source.errors[code - 1])


def variant_of(argument: Any) -> tuple[bool, bool, bool] | None:
    """What Triton compiles different code for: integers that are 1, multiples of 16, or wider than 32 bits."""
    if not isinstance(argument, int):
        return None
    return argument == 1, argument % _ALIGNED == 0, not -(1 << 31) <= argument < 1 << 31


def _status_word() -> torch.Tensor:
    return torch.zeros(1, dtype=torch.int32, pin_memory=torch.cuda.is_available() and not is_interpreting())


def warm_up(kernels: Sequence[BoundKernel]) -> None:
    """Compile kernels side by side: most of a compile is LLVM and the assembler, outside of Python's lock."""
    if is_interpreting() or not torch.cuda.is_available():
        return
    with ThreadPoolExecutor(min(len(kernels), os.cpu_count() or 1) or 1) as pool:
        list(pool.map(BoundKernel.warm_up, kernels))
