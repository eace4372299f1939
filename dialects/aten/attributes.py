"""Attributes for arguments of ATen ops that builtin and `sym` attributes do not cover."""

from __future__ import annotations

import re
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .literals import float_text, parse_float
from .types import DEVICE


@irdl_attr_definition
class NoneAttr(Data[None]):
    """Python's None, where leaving the argument out would mean something else: `#aten.none`."""

    name = "aten.none"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> None:
        """Parse nothing."""

    def print_parameter(self, printer: Printer) -> None:
        """Print nothing."""


class _Word(Data[str]):
    """An attribute that is one string literal."""

    known: ClassVar[re.Pattern[str]] = re.compile(r".*", re.DOTALL)

    def verify(self) -> None:
        """A file says no word that torch has no such thing for."""
        if self.known.fullmatch(self.data) is None:
            raise VerifyException(f"{self.data!r} is none of {self.name}")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Parse `<"text">`."""
        with parser.in_angle_brackets():
            return parser.parse_str_literal()

    def print_parameter(self, printer: Printer) -> None:
        """Print `<"text">`."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data)


@irdl_attr_definition
class DeviceAttr(_Word):
    """A device: `#aten.device<"cuda:0">`."""

    name = "aten.device"
    known = DEVICE


@irdl_attr_definition
class LayoutAttr(_Word):
    """A torch layout: `#aten.layout<"strided">`."""

    name = "aten.layout"
    known = re.compile(r"strided|jagged|sparse_(?:coo|csr|csc|bsr|bsc)|_mkldnn")


@irdl_attr_definition
class MemoryFormatAttr(_Word):
    """A torch memory format: `#aten.memory_format<"channels_last">`."""

    name = "aten.memory_format"
    known = re.compile(r"(?:contiguous|preserve)_format|channels_last(?:_3d)?")


@irdl_attr_definition
class OperatorAttr(_Word):
    """An operator as an argument of a higher-order op: `#aten.operator<"aten::add.Tensor">`."""

    name = "aten.operator"


@irdl_attr_definition
class ComplexAttr(Data[tuple[str, str]]):
    """A complex number: `#aten.complex<1.0, -0.0>`; held as text, which tells 0.0 from -0.0 and equates NaNs."""

    name = "aten.complex"

    @staticmethod
    def of(value: complex) -> ComplexAttr:
        """The attribute of a Python complex."""
        return ComplexAttr((float_text(value.real), float_text(value.imag)))

    @property
    def value(self) -> complex:
        """The number."""
        return complex(*map(float, self.data))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, str]:
        """Parse `<real, imaginary>`."""
        with parser.in_angle_brackets():
            real = float_text(parse_float(parser))
            parser.parse_punctuation(",")
            return real, float_text(parse_float(parser))

    def print_parameter(self, printer: Printer) -> None:
        """Print `<real, imaginary>`."""
        printer.print_string(f"<{', '.join(self.data)}>")


@irdl_attr_definition
class OperandAttr(Data[int]):
    """Stands in a property for an operand of the op: number `k` behind its tensors, `#aten.operand<0>`."""

    name = "aten.operand"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> int:
        """Parse `<k>`."""
        with parser.in_angle_brackets():
            return parser.parse_integer(allow_boolean=False, allow_negative=False)

    def print_parameter(self, printer: Printer) -> None:
        """Print `<k>`."""
        printer.print_string(f"<{self.data}>")

    def verify(self) -> None:
        """Check that the number is one."""
        if self.data < 0:
            raise VerifyException("operands are numbered from 0")


@irdl_attr_definition
class PresenceAttr(Data[tuple[bool, ...]]):
    """Which items of a `Tensor?[]` argument are tensors, the others being None: `#aten.presence<0, 1>`."""

    name = "aten.presence"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[bool, ...]:
        """Parse `<0, 1>`."""
        items = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_integer)
        return tuple(item != 0 for item in items)

    def print_parameter(self, printer: Printer) -> None:
        """Print `<0, 1>`."""
        printer.print_string(f"<{', '.join(str(int(item)) for item in self.data)}>")


@irdl_attr_definition
class TupleAttr(Data[ArrayAttr[Attribute]]):
    """A Python tuple, for callees that tell it from a list: `#aten.tuple<[1, 2]>`."""

    name = "aten.tuple"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> ArrayAttr[Attribute]:
        """Parse `<[1, 2]>`."""
        with parser.in_angle_brackets():
            items = parser.parse_attribute()
        if not isinstance(items, ArrayAttr):
            parser.raise_error("expected an array")
        return items

    def print_parameter(self, printer: Printer) -> None:
        """Print `<[1, 2]>`."""
        with printer.in_angle_brackets():
            printer.print_attribute(self.data)


NONE = NoneAttr(None)
ATTRIBUTES = [
    NoneAttr, DeviceAttr, LayoutAttr, MemoryFormatAttr, OperatorAttr, ComplexAttr, OperandAttr, PresenceAttr, TupleAttr,
]  # fmt: skip
