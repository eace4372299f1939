"""The kernels for a GPU of a package as C++: where their machine code lies, and what the driver needs to launch it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....errors import UnsupportedError
from ...triton.frozen import variant_of_json
from ...triton.native import SCRATCH, WARP, letters_of

_OF_NVIDIA = ".cubin"


def kernels_text(kernels: Mapping[str, Mapping[str, Any]]) -> str:
    """The list of `GpuKernels`. UnsupportedError for a kernel that the driver alone does not launch."""
    return f"{{{', '.join(_kernel(name, each) for name, each in kernels.items())}}}"


def _kernel(name: str, kernel: Mapping[str, Any]) -> str:
    variants = ", ".join(_variants(kernel["binaries"], kernel["descriptor_bytes"] > 0))
    if not variants:
        raise UnsupportedError(f"a runner launches kernels of NVIDIA's driver, and {name} is none")
    errors = ", ".join(map(json.dumps, kernel["errors"]))
    return f"{{{json.dumps(name)}, {kernel['buffers']}, {{{variants}}}, {{{errors}}}}}"


def _variants(binaries: Sequence[Sequence[Any]], descriptors: bool) -> Iterator[str]:
    """Those for aligned buffers, and whether their programs make descriptors."""
    for data, described, ending, member, signature in binaries:
        variant = variant_of_json(data)
        if variant.unaligned or ending != _OF_NVIDIA or not set(letters_of(signature)) <= set("Oil"):
            continue
        words = [f"int64_t({variant.traits})", json.dumps(member), json.dumps(described["name"])]
        words += [
            str(WARP * described["num_warps"]),
            str(described["shared"]),
            str(sum(each in described for each in SCRATCH)),
            "true" if descriptors else "false",
        ]
        yield f"{{{', '.join(words)}}}"
