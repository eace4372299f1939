"""What runs kernels: one launcher for each code generator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from xdsl.ir import SSAValue

from ...dialects import kernel
from ...records import dataclass
from .constants import Constants


@dataclass(frozen=True)
class Launch:
    """One launch in a program: the kernel and the Python text of its arguments, in the kernel's order.

    buffers: the launched values; `tensors` and `pointers` are their variables and their addresses as text. A tensor of
        which only the address is needed has no variable
    integers: values of the kernel's symbols as text
    extents: how many elements each buffer has, as text, where launches are checked
    share:   gives the variable of an expression that is computed once for the same sizes of the arguments
    current: the device that is current in the program; the variable `stream` holds its current stream
    """

    function: kernel.FuncOp
    buffers: tuple[SSAValue, ...]
    tensors: tuple[str, ...]
    pointers: tuple[str, ...]
    integers: tuple[str, ...]
    current: str = "cpu"
    extents: tuple[str, ...] = ()
    share: Callable[[str], str] = str


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
