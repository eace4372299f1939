"""Launching a compiled kernel: through the cheapest launcher that the installed torch and Triton have.

Each launcher becomes a callable `run(programs, 1, 1, stream, *arguments)`: addresses and integers, no constants. What
does not change from launch to launch is bound once. Uses the private names `torch._C._FastCudaLauncher(function,
warps, shared, types, scratch)`, `torch._C._StaticCudaLauncher._launch_kernel(function, x, y, z, warps, shared, types,
arguments, stream)` and, where a torch has neither, `CompiledKernel.run` of Triton.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

Run = Callable[..., None]

#: Triton's type of an argument -> torch's letter for it; all else are addresses
_LETTERS = {"i32": "i", "i64": "l", "u32": "I", "u64": "K", "fp32": "f", "fp64": "d"}
#: arguments that torch's launchers take
_MOST_ARGUMENTS = 100
#: buffers of its own that Triton may pass to a kernel behind its arguments
_SCRATCH = ("global_scratch_size", "profile_scratch_size")


def launcher_of(compiled: Any) -> Run:
    """The launcher for one of Triton's compiled kernels, which is loaded on the current device."""
    triton_run = compiled.run  # loads the kernel
    if _is_plain(compiled):
        types = argument_types(compiled)
        for make in (_fast, _static):
            run = make(compiled, types)
            if run is not None:
                return run
    return _triton(compiled, triton_run)


def argument_types(compiled: Any) -> str:
    """The types of the arguments that are no constants, a letter each; "O" is an address."""
    types = [t for t in compiled.src.signature.values() if t != "constexpr"]
    return "".join("O" if t.startswith("*") else _LETTERS[t] for t in types)


def _is_plain(compiled: Any) -> bool:
    """Whether torch's launchers can launch a kernel: nothing is asked for that they do not know of."""
    metadata = compiled.metadata
    if any(getattr(metadata, name, 0) for name in (*_SCRATCH, "launch_cooperative_grid", "launch_pdl")):
        return False
    if getattr(metadata, "num_ctas", 1) != 1:
        return False
    types = [t for t in compiled.src.signature.values() if t != "constexpr"]
    return len(types) <= _MOST_ARGUMENTS and all(t.startswith("*") or t in _LETTERS for t in types)


def _scratch_arguments(compiled: Any) -> int:
    """Null addresses that a kernel takes behind its arguments; on AMD it always takes both."""
    if torch.version.hip is not None:
        return len(_SCRATCH)
    return sum(hasattr(compiled.metadata, name) for name in _SCRATCH)


def _fast(compiled: Any, types: str) -> Run | None:
    make = getattr(torch._C, "_FastCudaLauncher", None)
    if make is None:
        return None
    metadata = compiled.metadata
    run = make(compiled.function, metadata.num_warps, metadata.shared, types, _scratch_arguments(compiled))
    return _Keeping(run, compiled)


class _Keeping:
    """A launcher beside the compiled kernel, whose code is unloaded when nothing refers to it."""

    def __init__(self, run: Run, compiled: Any) -> None:
        self.run, self.compiled = run, compiled

    def __call__(self, *arguments: Any) -> None:
        self.run(*arguments)


def _static(compiled: Any, types: str) -> Run | None:
    launcher = getattr(torch._C, "_StaticCudaLauncher", None)
    if launcher is None:
        return None
    launch, function = launcher._launch_kernel, compiled.function
    warps, shared = compiled.metadata.num_warps, compiled.metadata.shared
    scratch = (None,) * _scratch_arguments(compiled)
    all_types = types + "O" * len(scratch)

    def run(x: int, y: int, z: int, stream: int, *arguments: Any, kept: Any = compiled) -> None:
        launch(function, x, y, z, warps, shared, all_types, arguments + scratch, stream)

    return run


def _triton(compiled: Any, triton_run: Any) -> Run:
    function, packed = compiled.function, compiled.packed_metadata
    # one for each argument of the kernel's text, constants included, which the launcher skips
    constants = (None,) * sum(t == "constexpr" for t in compiled.src.signature.values())

    def run(x: int, y: int, z: int, stream: int, *arguments: Any) -> None:
        triton_run(x, y, z, stream, function, packed, None, None, None, *arguments, *constants)

    return run
