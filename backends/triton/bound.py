"""A kernel that can be called.

A kernel that checks its indices writes to a status word in pinned host memory, which the host reads before the next
launch of that kernel and never waits for: like an assertion of eager's CUDA kernels, an error shows late. `check` of
a bound kernel raises at once what has been reported; whoever waits for the GPU anyway may call it.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from ...errors import UnsupportedError
from ..c_like.calls import kernel_error
from ..host.gpu import gpu, is_gpu
from .compilers import SERVER
from .kernel import TritonKernel
from .loading import load_functions
from .native import Loaded, Run, direct_scratch, is_direct, load, run_of
from .request import ALIGNED, Binary
from .run_table import Direct
from .targets import TritonTarget
from .variants import (
    Variant,
    compile_options,
    compile_variant,
    constants_of,
    likely_variant,
    request_of,
    short_variants,
    traits_of,
    variant_of,
)


def is_interpreting() -> bool:
    """Whether Triton runs kernels in its interpreter, on CPU tensors."""
    return os.environ.get("TRITON_INTERPRET", "0") == "1"


class BoundKernel:
    """A kernel with its target.

    Called with the number of programs, whether a buffer needs 64-bit offsets, its buffers and its integers. Programs
    launch through `on`, which takes addresses.
    """

    def __init__(self, source: TritonKernel, target: TritonTarget) -> None:
        self.source = source
        self.target = target
        self._compiled: dict[Variant, Any] = {}
        self._on: dict[int, DeviceKernel] = {}
        self._status = Status(source.errors, target.is_here) if source.errors else None

    def __call__(self, programs: int, wide: bool, *arguments: Any) -> None:
        """Launch on the current stream of the buffers' device. Raises what an earlier launch reported."""
        buffers, integers = arguments[: self.source.buffers], arguments[self.source.buffers :]
        device = buffers[0].device
        if not is_gpu(device.type):
            self._interpret(programs, wide, arguments)
            return
        kind = gpu(device.type)
        with kind.device(device.index):
            stream = kind.current_stream(device.index)
            pointers = [buffer.data_ptr() for buffer in buffers]
            self.on(device.index)(stream, programs, wide, *pointers, *integers)

    def _interpret(self, programs: int, wide: bool, arguments: tuple[Any, ...]) -> None:
        if self._status is not None:
            arguments = (*arguments, self._status.word)
        if programs:
            constants = constants_of(self.source, wide)
            self.function[(programs,)](*arguments, **constants, **compile_options(self.source, self.target))
        self.check()

    def on(self, device: int) -> DeviceKernel:
        """The kernel for launches on one device, by its index."""
        found = self._on.get(device)
        if found is None:
            found = self._on[device] = DeviceKernel(self, device, self._status)
        return found

    @property
    def variants(self) -> dict[Variant, Any]:
        """What was compiled so far."""
        return dict(self._compiled)

    @property
    def devices(self) -> dict[int, DeviceKernel]:
        """The kernel on the devices that something has asked for, by their indices."""
        return dict(self._on)

    @property
    def status_pointer(self) -> int:
        """Address of the word that the kernel writes errors to; 0 without one."""
        return 0 if self._status is None else self._status.pointer

    def compiled(self, variant: Variant) -> Any:
        """Triton's compiled kernel of a variant."""
        found = self._compiled.get(variant)
        if found is None:
            (binary,) = SERVER.compile([request_of(self.source, self.target, variant)])
            found = self.take(variant, binary) or self.compile_here(variant)
        return found

    def compile_here(self, variant: Variant) -> Any:
        """The same, compiled in this process."""
        found = self._compiled[variant] = compile_variant(self.source, self.function, self.target, variant)
        return found

    @property
    def function(self) -> Any:
        """Triton's function, which compiling in this process and interpreting need."""
        return load_functions([self.source])[0]

    def take(self, variant: Variant, binary: Binary | None) -> Binary | None:
        """Keep what another process compiled if torch's launcher takes it; Triton's wants its own object."""
        if binary is None or not is_direct(binary, self.target.needs.launcher):
            return None
        self._compiled[variant] = binary
        return binary

    def likely_scratch(self) -> int | None:
        """Null addresses behind the arguments of the variant that most launches take; None where C cannot launch it."""
        return direct_scratch(self._compiled.get(likely_variant(self.source)), self.target.needs.launcher)

    def check(self) -> None:
        """Raise the error that the kernel has reported so far, once."""
        if self._status is not None:
            self._status.check()


class Status:
    """A word that a kernel writes the number of an error to."""

    def __init__(self, errors: Sequence[str], pinned: bool = False) -> None:
        self.errors = tuple(errors)
        self.word = torch.zeros(1, dtype=torch.int32, pin_memory=pinned and not is_interpreting())
        self.pointer = self.word.data_ptr()
        self._value = ctypes.c_int32.from_address(self.pointer)

    def check(self) -> None:
        """Raise the error that has been reported so far, once."""
        code = self._value.value
        if code:
            self._value.value = 0
            raise kernel_error(self.errors[code - 1])


class DeviceKernel:
    """A kernel bound to one device: launches go straight to the variant that fits the arguments.

    Called with the current stream of the device, which must be the current one, the number of programs, whether a
    buffer needs 64-bit offsets, the addresses of the buffers, and the integers.
    """

    def __init__(self, kernel: BoundKernel, device: int, status: Status | None) -> None:
        self.kernel = kernel
        self.device = device
        self._status = status
        self._buffers = kernel.source.buffers
        self._plain: dict[Any, Run] = {}
        """Variants for aligned buffers, by the width of indices and the traits of the integers."""
        self._others: dict[Variant, Run] = {}
        """Variants for buffers without alignment."""
        self._entry: Run | None = None
        self.name, self.overlaps = kernel.source.name, kernel.source.overlaps
        self.directs: dict[int, Direct] = {}
        """For the driver: variants for aligned buffers that are loaded, by their traits."""
        self.status_pointer = kernel.status_pointer
        """For the driver: the last argument of a kernel that reports errors; 0 without one."""

    def __call__(self, stream: int, programs: int, wide: bool, *arguments: int) -> None:
        """Launch. Raises what an earlier launch reported."""
        if self._status is not None:
            self._status.check()
        if not programs:
            return
        bits = 0
        for pointer in arguments[: self._buffers]:
            bits |= pointer
        integers = arguments[self._buffers :]
        run = None
        if not bits % ALIGNED:
            run = self._plain.get((wide, *map(traits_of, integers)) if integers else wide)
        if run is None:
            run = self.bind(variant_of(wide, arguments[: self._buffers], integers))
        if self._status is not None:
            arguments = (*arguments, self._status.pointer)
        run(programs, 1, 1, stream, *arguments)

    def bind(self, variant: Variant) -> Run:
        """Load a variant on the current device, which must be the kernel's, unless it is loaded."""
        table: dict[Any, Run] = self._others if variant.unaligned else self._plain
        key = variant if variant.unaligned else (variant.wide, *variant.integers) if variant.integers else variant.wide
        run = table.get(key)
        if run is None:
            compiled = self.kernel.compiled(variant)
            if getattr(compiled.metadata, "global_scratch_size", 0) > self.kernel.source.descriptor_bytes:
                raise UnsupportedError(f"{self.name} wants more memory for descriptors than a launch has for it")
            loaded = load(compiled, self.device, self.kernel.target.needs.launcher)
            run = table[key] = run_of(loaded)
            if not variant.unaligned:
                if self.is_fixed:
                    self._entry = self._short(loaded)
                if loaded.direct is not None:
                    self.directs[variant.traits] = loaded.direct
        return run

    @property
    def entries(self) -> list[Any]:
        """What programs call to launch, as `entry` has given it."""
        return [each for each in (self, self._entry) if each is not None]

    @property
    def is_fixed(self) -> bool:
        """Whether only the alignment of the buffers can tell launches apart."""
        source = self.kernel.source
        varies = source.symbols or source.chooses_index or source.errors
        return not varies and source.buffers > 0 and source.programs({}) > 0

    def _short(self, loaded: Loaded) -> Run:
        """A launch of the variant for aligned buffers, with a check that they are."""
        pointers = [f"p{k}" for k in range(self._buffers)]
        arguments = ", ".join(pointers)
        header = f"stream, programs, wide, {arguments}"
        first = f"if ({' | '.join(pointers)}) % {ALIGNED}: return other({header})"
        return loaded.function(header, arguments, first, {"other": self})

    def load_likely(self) -> None:
        """Load the variant that most launches take, where there is a GPU."""
        target = self.kernel.target
        if target.is_here:
            with gpu(target.device).device(self.device):
                self.bind(likely_variant(self.kernel.source))

    def entry(self) -> Run:
        """What programs call to launch: like the kernel itself, and shorter where only alignment has to be looked at.

        Loads the variant that most launches take.
        """
        self.load_likely()
        return self._entry or self


def warm_up(kernels: Sequence[BoundKernel], jobs: int = 0) -> None:
    """Compile the variants that most launches take, at most `jobs` at once (0: one a core).

    In processes of the compile server; what it did not compile, in threads: LLVM and the assembler run outside of
    Python's lock.
    """
    kernels = [kernel for kernel in kernels if kernel.target.is_here]
    if is_interpreting() or not kernels:
        return
    _compile([(kernel, likely_variant(kernel.source)) for kernel in kernels], jobs)


def compile_for_files(kernels: Sequence[BoundKernel], jobs: int = 0) -> None:
    """Compile the variants of aligned buffers that launches take whose integers are short, for devices of any machine.

    Of kernels with several integers those whose integers are alike, and what most launches take.
    """
    if kernels and not is_interpreting():
        SERVER.start(kernels[0].target)
        _compile([(kernel, variant) for kernel in kernels for variant in short_variants(kernel.source)], jobs)


def _compile(wanted: Sequence[tuple[BoundKernel, Variant]], jobs: int) -> None:
    wanted = sorted(wanted, key=lambda each: -len(each[0].source.source))  # long ones first
    requests = [request_of(kernel.source, kernel.target, variant) for kernel, variant in wanted]
    made = SERVER.compile(requests, jobs)
    rows = [each for each, binary in zip(wanted, made, strict=True) if each[0].take(each[1], binary) is None]
    with ThreadPoolExecutor(min(len(rows), jobs or os.cpu_count() or 1) or 1) as pool:
        list(pool.map(lambda row: row[0].compile_here(row[1]), rows))
