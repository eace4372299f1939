"""What runs kernels: one launcher for each code generator, chosen by the kernel's target."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from xdsl.ir import SSAValue

from ...dialects import kernel
from ...errors import UnsupportedError
from .constants import Constants

if TYPE_CHECKING:
    from ..config import Config


@dataclass(frozen=True)
class Launch:
    """One launch in a program: the kernel and the Python text of its arguments, in the kernel's order.

    buffers: the launched values; `tensors` and `pointers` are their variables and their addresses as text. A tensor of
        which only the address is needed has no variable
    integers: values of the kernel's symbols as text
    current: the device that is current in the program; the variable `stream` holds its current stream
    """

    function: kernel.FuncOp
    buffers: tuple[SSAValue, ...]
    tensors: tuple[str, ...]
    pointers: tuple[str, ...]
    integers: tuple[str, ...]
    current: str = "cpu"


class Launcher(Protocol):
    """Compiles kernels and writes the Python lines that launch them."""

    needs_tensors: bool
    """Whether launches name tensors; else only their addresses, and tensors that nothing else uses are not made."""

    def compile(self, functions: Sequence[kernel.FuncOp]) -> None:
        """Compile kernels, all at once; called before any launch is written."""
        ...

    def write(self, launches: Sequence[Launch], constants: Constants) -> list[str]:
        """Lines that run launches one after the other; what they call is bound in `constants`."""
        ...

    @property
    def sources(self) -> dict[str, str]:
        """File name -> text of what was compiled."""
        ...


#: kind of a kernel's target -> module with `make_launcher(config) -> Launcher`
LAUNCHERS: dict[str, str] = {"cpp": "..cpp.launch", "cuda": "..triton.launch", "hip": "..triton.launch"}


def generator_of(function: kernel.FuncOp) -> str:
    """The kind of a kernel's target, "cuda" of "cuda:90"; C++ when it has none."""
    return "cpp" if function.target is None else function.target.data.partition(":")[0]


def make_launcher(generator: str, config: Config | None = None) -> Launcher:
    """A launcher. UnsupportedError for an unknown kind of target."""
    module = LAUNCHERS.get(generator)
    if module is None:
        raise UnsupportedError(f"no launcher for kernels of target {generator!r}; known: {', '.join(LAUNCHERS)}")
    return importlib.import_module(module, __package__).make_launcher(config)
