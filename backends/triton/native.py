"""Launching a compiled kernel: through the cheapest launcher that the installed torch and Triton have.

Each launcher becomes a callable `run(programs, 1, 1, stream, *arguments)`: addresses and integers, no constants. What
does not change from launch to launch is bound once. Uses the private names `torch._C._StaticCudaLauncher` with
`_load_kernel(file, name, shared, device)` and `_launch_kernel(function, x, y, z, warps, shared, types, arguments,
stream)`, `torch._C._FastCudaLauncher(function, warps, shared, types, scratch)` and, where a torch has neither,
`CompiledKernel.run` of Triton.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch

from ...records import dataclass
from .kernel import BOXES
from .run_table import Direct

Run = Callable[..., None]

#: Triton's type of an argument -> torch's letter for it; all else are addresses
_LETTERS = {"i32": "i", "i64": "l", "u32": "I", "u64": "K", "fp32": "f", "fp64": "d"}
#: threads of a warp of NVIDIA's
WARP = 32
#: arguments that torch's launchers take
_MOST_ARGUMENTS = 100
_BINARIES = (".cubin", ".hsaco")
#: buffers of its own that Triton may pass to a kernel behind its arguments
SCRATCH = ("global_scratch_size", "profile_scratch_size")


@dataclass(frozen=True)
class Loaded:
    """A kernel that is loaded on a device.

    call:  Python text that launches `programs` programs on `stream`, with `%s` for the arguments
    names: what the text names beside these
    run:   the same as a callable, where there is one
    direct: what the driver needs, where it may be called without torch
    """

    call: str
    names: dict[str, Any]
    run: Run | None = None
    direct: Direct | None = None

    def function(self, header: str, arguments: str, first: str = "", names: Mapping[str, Any] | None = None) -> Run:
        """A function with these parameters that runs the line `first` and launches: without a loop, in one frame."""
        scope = {**self.names, **(names or {})}
        # all words of the text are our own
        exec(f"def launch({header}):\n    {first}\n    {self.call % arguments}\n", scope)
        return scope["launch"]


def launcher_of(compiled: Any, device: int, kind: str | None = "Cuda") -> Run:
    """The launcher for one of Triton's compiled kernels, which is loaded on a device, the current one.

    kind: the word in the names of torch's launchers for such a device, None when it has none
    """
    return run_of(load(compiled, device, kind))


def run_of(loaded: Loaded) -> Run:
    """A kernel that is loaded as a callable."""
    return loaded.run or loaded.function("programs, y, z, stream, *arguments", "*arguments")


def load(compiled: Any, device: int, kind: str | None = "Cuda") -> Loaded:
    """Load one of Triton's compiled kernels for the cheapest launcher; see `launcher_of`."""
    if not is_direct(compiled, kind):
        return _triton(compiled)
    static = getattr(torch._C, f"_Static{kind}Launcher")
    function, types = _load(static, compiled, device), argument_types(compiled)
    metadata, scratch = compiled.metadata, _scratch_arguments(compiled)
    fast = getattr(torch._C, f"_Fast{kind}Launcher", None)
    direct = None
    if _is_for_driver(types):
        direct = Direct(function, WARP * metadata.num_warps, metadata.shared, scratch)
    if makes_boxes(compiled):
        types, scratch = types + "O", scratch - 1
    if fast is not None:
        made = _callable(fast(function, metadata.num_warps, metadata.shared, types, scratch))
    else:
        names = {"launch_kernel": static._launch_kernel, "function": function, "types": types + "O" * scratch}
        names |= {"warps": metadata.num_warps, "shared": metadata.shared}
        arguments = f"(%s,{' None,' * scratch})"
        made = Loaded(f"launch_kernel(function, programs, 1, 1, warps, shared, types, {arguments}, stream)", names)
    return replace(_callable(_last_twice(run_of(made))) if makes_boxes(compiled) else made, direct=direct)


def makes_boxes(compiled: Any) -> bool:
    """Whether the programs of a kernel make descriptors, in the last buffer, whose address follows the arguments."""
    return getattr(compiled.metadata, SCRATCH[0], 0) > 0


def _last_twice(run: Run) -> Run:
    """A launch that passes the last argument once more."""

    def launch(x: int, y: int, z: int, stream: int, *arguments: int) -> None:
        run(x, y, z, stream, *arguments, arguments[-1])

    return launch


def _callable(run: Run) -> Loaded:
    return Loaded("run(programs, 1, 1, stream, %s)", {"run": run}, run)


def is_direct(compiled: Any, kind: str | None) -> bool:
    """Whether one of torch's launchers for a kind of device takes a kernel; then its binary is all that is needed."""
    return hasattr(torch._C, f"_Static{kind}Launcher") and _is_plain(compiled)


def direct_scratch(compiled: Any, kind: str | None) -> int | None:
    """Null addresses that follow the arguments where NVIDIA's driver launches a kernel; None where it does not."""
    if compiled is None or kind != "Cuda" or not is_direct(compiled, kind):
        return None
    return _scratch_arguments(compiled) if _is_for_driver(argument_types(compiled)) else None


def _is_for_driver(types: str) -> bool:
    return torch.version.hip is None and set(types) <= set("Oil")


def _load(static: Any, compiled: Any, device: int) -> int:
    """The address of the loaded function. It stays loaded; Triton's own launcher, which may need a C compiler, is not
    made."""
    files = compiled.metadata_group
    path = next(str(files[name]) for name in files if name.endswith(_BINARIES))
    loaded = static._load_kernel(path, compiled.metadata.name, compiled.metadata.shared, device)
    return loaded[-3]  # behind it registers and spills; before it, in newer torch, the module


def argument_types(compiled: Any) -> str:
    """The types of the arguments that are no constants, a letter each; "O" is an address."""
    return letters_of(compiled.src.signature)


def letters_of(signature: Mapping[str, str]) -> str:
    """The same of a signature: argument -> type."""
    types = [t for t in signature.values() if t != "constexpr"]
    return "".join("O" if t.startswith("*") else _LETTERS[t] for t in types)


def _is_plain(compiled: Any) -> bool:
    """Whether torch's launchers can launch a kernel: nothing is asked for that they do not know of."""
    metadata = compiled.metadata
    if any(getattr(metadata, name, 0) for name in (*SCRATCH[1:], "launch_cooperative_grid", "launch_pdl")):
        return False
    if makes_boxes(compiled) and BOXES not in compiled.src.signature:
        return False
    if getattr(metadata, "num_ctas", 1) != 1:
        return False
    types = [t for t in compiled.src.signature.values() if t != "constexpr"]
    return len(types) <= _MOST_ARGUMENTS and all(t.startswith("*") or t in _LETTERS for t in types)


def _scratch_arguments(compiled: Any) -> int:
    """Null addresses that a kernel takes behind its arguments; on AMD it always takes both."""
    if torch.version.hip is not None:
        return len(SCRATCH)
    return sum(hasattr(compiled.metadata, name) for name in SCRATCH)


def _triton(compiled: Any) -> Loaded:
    triton_run = compiled.run  # loads the kernel
    function, packed = compiled.function, compiled.packed_metadata
    # one for each argument of the kernel's text, constants included, which the launcher skips
    constants = (None,) * sum(t == "constexpr" for t in compiled.src.signature.values())

    def run(x: int, y: int, z: int, stream: int, *arguments: Any) -> None:
        triton_run(x, y, z, stream, function, packed, None, None, None, *arguments, *constants)

    return _callable(run)
