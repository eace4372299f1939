"""What Triton's compiler made of a kernel: registers, local and shared memory, warps, read from what it wrote.

A GPU need not be there: an NVIDIA binary says in its attributes what its kernel takes, an AMD one in its assembly.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from ...dialects import kernel
from ...passes.kernel.scheduled import family_of
from .bound import is_interpreting
from .compilers import SERVER, CompileServer
from .source import emit
from .targets import TritonTarget, triton_target
from .variants import likely_variant, request_of

#: numbers of attributes of a function in `.nv.info` of an NVIDIA binary, and the formats of their values
_REGISTERS, _FRAME = 0x2F, 0x11
_LONG, _SHORT = 4, (1, 2, 3)
_AMD = {"registers": r"\.vgpr_count:\s*(\d+)", "spills": r"\.vgpr_spill_count:\s*(\d+)"}


def figures_of(module: ModuleOp) -> dict[str, dict[str, int]]:
    """Kernel -> `registers`, `spills` in bytes a thread, `shared` in bytes a block, `warps`, as far as they are known.

    Compiles the kernels of a module for the targets that they name, through Triton's cache, in processes of their own,
    which Triton may end. A kernel for another generator is left out, and so is one that Triton does not compile:
    figures are only shown.
    """
    functions = {each.sym_name.data: each for each in module.ops if isinstance(each, kernel.FuncOp)}
    if is_interpreting() or not any(map(_is_ours, functions.values())):
        return {}
    requests = [
        request_of(source, triton_target(function.target.data), likely_variant(source))
        for source in emit(module)
        if _is_ours(function := functions[source.name]) and function.target is not None
    ]
    target = next(triton_target(each.target.data) for each in functions.values() if _is_ours(each) and each.target)
    with _server(target) as server:
        made = server.compile(requests)
    return {request.name: compiled_figures(each) for request, each in zip(requests, made, strict=True) if each}


@contextmanager
def _server(target: TritonTarget) -> Iterator[CompileServer]:
    """The compile server of this process where it runs, else one that ends again."""
    if SERVER.is_running:
        yield SERVER
        return
    server = CompileServer()
    server.start(target)
    try:
        yield server
    finally:
        server.stop()


def _is_ours(function: kernel.FuncOp) -> bool:
    family = family_of(function)
    return family is not None and family.generator == "triton"


def compiled_figures(compiled: Any) -> dict[str, int]:
    """The figures of one of Triton's compiled kernels."""
    files = {name.rpartition(".")[2]: path for name, path in compiled.metadata_group.items()}
    metadata = compiled.metadata
    found = {"shared": int(metadata.shared), "warps": int(metadata.num_warps)}
    if "cubin" in files:
        return {**nvidia_figures(Path(files["cubin"]).read_bytes()), **found}
    if "amdgcn" in files:
        text = Path(files["amdgcn"]).read_text()
        matches = {name: re.search(pattern, text) for name, pattern in _AMD.items()}
        numbers = {name: int(match[1]) for name, match in matches.items() if match}
        if "spills" in numbers:
            numbers["spills"] *= 4
        return {**numbers, **found}
    return found


def nvidia_figures(binary: bytes) -> dict[str, int]:
    """Registers and bytes of local memory a thread, from the attributes of an ELF file of 64 bits; {} where it says
    nothing of them."""
    found: dict[str, int] = {}
    for attribute, value in _attributes(binary):
        name = {_REGISTERS: "registers", _FRAME: "spills"}.get(attribute)
        if name is not None and len(value) == 8:
            found[name] = max(found.get(name, 0), struct.unpack("<II", value)[1])
    return found


def _attributes(binary: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and value of the attributes of all functions: in `.nv.info`, a format, a number and a size or value."""
    for section in _sections(binary, ".nv.info"):
        at = 0
        while at + 4 <= len(section):
            form, number, size = struct.unpack_from("<BBH", section, at)
            at += 4
            if form == _LONG:
                yield number, section[at : at + size]
                at += size
            elif form not in _SHORT:
                return


def _sections(binary: bytes, name: str) -> Iterator[bytes]:
    if binary[:5] != b"\x7fELF\x02" or len(binary) < 64:
        return
    (start,) = struct.unpack_from("<Q", binary, 40)
    size, count, names = struct.unpack_from("<HHH", binary, 58)
    if start + count * size > len(binary) or size < 64:
        return
    headers = [struct.unpack_from("<IIQQQQ", binary, start + k * size) for k in range(count)]
    texts = _body(binary, headers[names]) if names < count else b""
    for header in headers:
        if texts[header[0] :].split(b"\0", 1)[0] == name.encode():
            yield _body(binary, header)


def _body(binary: bytes, header: Sequence[int]) -> bytes:
    return binary[header[4] : header[4] + header[5]]
