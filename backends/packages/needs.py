"""What a package needs: the versions that its host program was written for, and the instructions of its kernels."""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch

from ...errors import UserError
from ...machines import in_host_memory, target_named
from ..c_like.processor import processor

FORMAT = 2
_ROOT = Path(__file__).parents[2]
_CALLED = (
    "backends/host", "backends/c_like/calls.py", "backends/graph_cache/frozen.py", "backends/packages",
    "lowering/fx_arrangements.py", "backends/triton/bound.py", "backends/triton/frozen.py", "backends/triton/kernel.py",
    "backends/triton/native.py", "backends/triton/request.py", "backends/triton/run_table.py",
    "backends/triton/variants.py",
)  # fmt: skip
"""Code that a package calls, by names of its own."""
_KINDS = (
    "sse", "ssse3", "avx", "amx", "fma", "f16c", "bmi", "popcnt", "abm", "movbe", "adx", "aes", "sha", "gfni", "vaes",
    "vpclmul", "pclmul", "asimd", "sve", "bf16", "i8mm", "fphp", "atomics",
)  # fmt: skip
"""How the names of instruction sets begin that compilers use unasked."""


@cache
def runtime() -> str:
    """The code that packages call, as a digest."""
    total = hashlib.sha256()
    for name in _CALLED:
        place = _ROOT / name
        for file in sorted(place.glob("*.py")) if place.is_dir() else [place]:
            total.update(f"{file.relative_to(_ROOT)}\n".encode() + file.read_bytes())
    return total.hexdigest()


def instruction_sets() -> list[str]:
    """Those of this processor."""
    words = {word for line in processor().splitlines() for word in line.partition(":")[2].split()}
    return sorted(word for word in words if word.startswith(_KINDS))


def needs_of_this() -> dict[str, Any]:
    """What a package that is made here and now needs."""
    from ... import __version__  # which is looked up each time

    flags = instruction_sets()
    capability = os.environ.get("ATEN_CPU_CAPABILITY", "").lower()
    if capability in ("avx2", "default"):
        kinds = ("avx512", "avx10", "amx") if capability == "avx2" else ("avx", "amx", "fma", "f16c", "vaes", "vpclmul")
        flags = [flag for flag in flags if not flag.startswith(kinds)]
    return {
        "format": FORMAT, "inductile": __version__, "runtime": runtime(), "torch": torch.__version__,
        "system": platform.system(), "machine": platform.machine(), "instructions": flags,
    }  # fmt: skip


def check_needs(needs: dict[str, Any], path: Path) -> None:
    """UserError where a package does not run here, with the reason."""
    if needs["format"] != FORMAT or needs["runtime"] != runtime():
        from ... import __version__

        raise UserError(
            f"the package {path} was made by inductile {needs['inductile']}, of other code than this {__version__}",
            "make it again with this version, or load it with that one",
        )
    if _minor(needs["torch"]) != _minor(torch.__version__):
        raise UserError(
            f"the package {path} was made with torch {needs['torch']}, this is torch {torch.__version__}",
            "make it again with this torch, or load it with that one",
        )
    if (needs["system"], needs["machine"]) != (platform.system(), platform.machine()):
        here = f"{platform.system()} on {platform.machine()}"
        raise UserError(
            f"the package {path} is for {needs['system']} on {needs['machine']}, this is {here}", "make it again here"
        )
    missing = sorted(set(needs["instructions"]) - set(instruction_sets()))
    if missing:
        raise UserError(
            f"the package {path} is for a processor with {', '.join(missing)}",
            "make it again here, or there with ATEN_CPU_CAPABILITY=avx2 or =default in the environment",
        )


def chosen_part(
    parts: Sequence[dict[str, Any]], target: str | None, path: Path, device: torch.device | None = None
) -> dict[str, Any]:
    """The program for a target, or for the first one that is here, or that the device is. UserError for none."""
    names = [part["target"] for part in parts]
    if target is not None and target not in names:
        raise UserError(f"the package {path} is not for {target!r}", f"it is for {', '.join(names)}")
    for part in parts:
        if target in (None, part["target"]) and _is_here(part["target"], device):
            return part
    if device is not None:
        raise UserError(
            f"the package {path} is for {target or ' or '.join(names)}, which {device} is not",
            "name another device, or make it for this one too, with targets=",
        )
    raise UserError(
        f"the package {path} is for {target or ' or '.join(names)}, which this machine has not",
        "load it on such a machine, or make it for this one too, with targets=",
    )


def _is_here(target: str, device: torch.device | None) -> bool:
    kind = target_named(target).device
    if device is not None and device.type != kind:
        return False
    if in_host_memory(kind):
        return True
    from ..triton.targets import triton_target

    return triton_target(target).is_here if device is None else triton_target(target).is_on(device.index)


def _minor(version: str) -> str:
    return ".".join(version.split(".")[:2])
