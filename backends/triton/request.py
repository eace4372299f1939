"""One compile as plain data, so that another process can do it, and what comes back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ...records import dataclass

#: what accesses of 16 bytes need of an address, and of an integer in it
ALIGNED = 16
_DIVISIBLE = ["tt.divisibility", ALIGNED]


@dataclass(frozen=True)
class Request:
    """What Triton compiles a function to.

    name, path: the function and the file that has it
    signature:  argument -> type, constants included
    constants:  constant argument -> value
    index_bits: width of the integer type that the argument INDEX stands for; 0 without such an argument
    divisible:  positions of the arguments that are multiples of 16
    options:    options of Triton's compiler
    backend, arch, warp_size: Triton's target
    """

    name: str
    path: str
    signature: Mapping[str, str]
    constants: Mapping[str, int]
    index_bits: int
    divisible: tuple[int, ...]
    options: Mapping[str, Any]
    backend: str
    arch: Any
    warp_size: int

    def text(self) -> str:
        """The request as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def parse(cls, text: str) -> Request:
        """The request of a line."""
        return cls(**json.loads(text))

    def compile(self, function: Any) -> Any:
        """Triton's compiled kernel; `function` is the `triton.JITFunction`. Needs no GPU."""
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        constants = {**self.constants, **index_constant(self.index_bits)}
        attributes = {(position,): [_DIVISIBLE] for position in self.divisible}
        source = ASTSource(function, dict(self.signature), constants, attributes)
        target = GPUTarget(self.backend, self.arch, self.warp_size)
        return triton.compile(source, target=target, options=dict(self.options))


def index_constant(bits: int) -> dict[str, Any]:
    """The constant INDEX of a kernel, for offsets of so many bits; none for 0."""
    import triton.language as tl

    return {"INDEX": {32: tl.int32, 64: tl.int64}[bits]} if bits else {}


class Binary:
    """A compiled kernel as another process left it in Triton's cache; torch's launchers need no more of it.

    The attributes have the names that they have in Triton's `CompiledKernel`.
    """

    def __init__(self, files: Mapping[str, str], signature: Mapping[str, str]) -> None:
        self.metadata_group = dict(files)
        described = next(path for name, path in files.items() if name.endswith(".json"))
        self.metadata = SimpleNamespace(**json.loads(Path(described).read_text()))
        self.src = SimpleNamespace(signature=dict(signature))
