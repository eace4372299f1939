"""`!kernel.buffer`: memory of a kernel with linear addresses."""

from __future__ import annotations

from functools import lru_cache

from xdsl.ir import Attribute, Data, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...records import dataclass
from ..aten.types import MAX_BYTES, TORCH_NAMES
from ..sym import Expr, parse_expr


@dataclass(frozen=True)
class BufferData:
    """Payload of `BufferType`."""

    element: Attribute
    extent: Expr
    local: bool = False


@irdl_attr_definition
class BufferType(Data[BufferData], TypeAttribute):
    """A buffer of `extent` elements: `!kernel.buffer<f32, 4096*s0>`, `!kernel.buffer<f32, 4096, local>`.

    The element is a tensor's (`ui8` keeps its sign); accesses give scalars. A local buffer belongs to one iteration
    of the loop that allocates it: a row buffer on the CPU, a register tile on a GPU.
    """

    name = "kernel.buffer"

    @staticmethod
    @lru_cache(maxsize=4096)
    def get(element: Attribute, extent: Expr, local: bool = False) -> BufferType:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The type for an element type and a number of elements."""
        return BufferType(BufferData(element, extent, local))

    @property
    def element(self) -> Attribute:
        """Element type, as in tensors."""
        return self.data.element

    @property
    def extent(self) -> Expr:
        """Number of elements that may be addressed."""
        return self.data.extent

    @property
    def local(self) -> bool:
        """Whether the buffer lives inside one iteration."""
        return self.data.local

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> BufferData:
        """Parse `<f32, 4096*s0, local>`."""
        with parser.in_angle_brackets():
            element = parser.parse_type()
            if element not in TORCH_NAMES:
                parser.raise_error(f"a buffer has no elements of type {element}")
            parser.parse_punctuation(",")
            extent = parse_expr(parser)
            count = extent.as_int()
            if count is not None and not 0 <= count < MAX_BYTES:
                parser.raise_error(f"a buffer has no {count} elements")
            local = parser.parse_optional_punctuation(",") is not None
            if local:
                parser.parse_keyword("local")
        return BufferType.get(element, extent, local).data

    def print_parameter(self, printer: Printer) -> None:
        """Print what `parse_parameter` reads."""
        printer.print_string("<")
        printer.print_attribute(self.data.element)
        printer.print_string(f", {self.data.extent}{', local' if self.data.local else ''}>")
