"""The tensor type of the aten, loop and host levels, and the element types it holds."""

from __future__ import annotations

import re
from dataclasses import field
from functools import lru_cache

from xdsl.dialects.builtin import (
    BFloat16Type,
    ComplexType,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
)
from xdsl.ir import Attribute, Data, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from ...machines import HOST
from ...records import dataclass
from ..raw import type_of as type_of_value
from ..sym import Expr, const, parse_expr

#: names that torch gives to element types which it alone computes with
_OPAQUE = re.compile(r"qu?int\d+(?:x\d+)?|bits\d+(?:x\d+)?|u?int[1-7]|float\d+_\w+")


@irdl_attr_definition
class OpaqueDtype(Data[str], TypeAttribute):
    """An element type that only ATen computes with, by its torch name: `!aten.dtype<"qint8">`."""

    name = "aten.dtype"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        """Parse `<"name">`."""
        with parser.in_angle_brackets():
            name = parser.parse_str_literal()
            if _OPAQUE.fullmatch(name) is None:
                parser.raise_error(f"{name!r} is not the name of a dtype of torch")
            return name

    def print_parameter(self, printer: Printer) -> None:
        """Print `<"name">`."""
        with printer.in_angle_brackets():
            printer.print_string_literal(self.data)


def _unsigned(width: int) -> IntegerType:
    return IntegerType(width, Signedness.UNSIGNED)


#: torch dtype name -> element type of a tensor. Signed integers and bool are signless, as arith wants them.
ELEMENT_TYPES: dict[str, Attribute] = {
    "float16": Float16Type(),
    "bfloat16": BFloat16Type(),
    "float32": Float32Type(),
    "float64": Float64Type(),
    "bool": IntegerType(1),
    "int8": IntegerType(8),
    "int16": IntegerType(16),
    "int32": IntegerType(32),
    "int64": IntegerType(64),
    "uint8": _unsigned(8),
    "uint16": _unsigned(16),
    "uint32": _unsigned(32),
    "uint64": _unsigned(64),
    "complex32": ComplexType(Float16Type()),
    "complex64": ComplexType(Float32Type()),
    "complex128": ComplexType(Float64Type()),
    "float8_e4m3fn": Float8E4M3FNType(),
    "float8_e5m2": Float8E5M2Type(),
    "float8_e4m3fnuz": Float8E4M3FNUZType(),
    "float8_e5m2fnuz": Float8E5M2FNUZType(),
    "float8_e8m0fnu": Float8E8M0FNUType(),
}
TORCH_NAMES: dict[Attribute, str] = {element: name for name, element in ELEMENT_TYPES.items()}

#: bytes of one element, by torch dtype name
ITEM_SIZES: dict[str, int] = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8, "uint64": 8,
    "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8, "complex32": 4, "complex64": 8, "complex128": 16,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1, "float8_e8m0fnu": 1,
}  # fmt: skip


#: spelling of a torch device; its number has seven bits
DEVICE = re.compile(r"[a-z]+(?::(?:[0-9]|[1-9][0-9]|1[01][0-9]|12[0-7]))?")
#: a tensor and a buffer have fewer bytes
MAX_BYTES = 1 << 63


def element_type(torch_name: str) -> Attribute:
    """Element type of a torch dtype given by name ("float32"); an opaque one for dtypes only ATen knows."""
    return ELEMENT_TYPES.get(torch_name) or OpaqueDtype(torch_name)


def torch_name(element: Attribute) -> str:
    """Name of the torch dtype of an element type, the inverse of `element_type`."""
    if isinstance(element, OpaqueDtype):
        return element.data
    return TORCH_NAMES[element]


def scalar_type(element: Attribute) -> Attribute:
    """Type of one element as an SSA scalar: arith is signless, so `ui8` computes as `i8`; the ops carry the sign."""
    if isinstance(element, IntegerType) and element.signedness.data is not Signedness.SIGNLESS:
        return IntegerType(element.width.data)
    return element


def is_unsigned(element: Attribute) -> bool:
    """Whether an element type is an unsigned integer (bool is not)."""
    return isinstance(element, IntegerType) and element.signedness.data is Signedness.UNSIGNED


@lru_cache(maxsize=16384)
def contiguous_strides(shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """Row-major strides in elements. A zero size counts as one, as in torch, when it is a constant."""
    strides: list[Expr] = []
    step = const(1)
    for size in reversed(shape):
        strides.append(step)
        step = step * (1 if size.as_int() == 0 else size)
    return tuple(reversed(strides))


@dataclass(frozen=True)
class TensorData:
    """Payload of `TensorType`."""

    shape: tuple[Expr, ...]
    element: Attribute
    strides: tuple[Expr, ...] | None = None
    device: str = HOST
    _hash: int = field(init=False, compare=False, repr=False, default=0)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.shape, self.element, self.strides, self.device)))

    def __hash__(self) -> int:
        return self._hash


@irdl_attr_definition
class TensorType(Data[TensorData], TypeAttribute):
    """A tensor: `!aten.tensor<(s0)x4096xf32, strides = [1, s0], device = "cuda:0">`.

    Sizes and strides are `sym` expressions in elements. Strides are printed only when they are not row-major,
    the device only when it is not "cpu". Build with `TensorType.get`, which interns.
    """

    name = "aten.tensor"

    @staticmethod
    @lru_cache(maxsize=16384)
    def get(  # pyright: ignore[reportIncompatibleMethodOverride]
        shape: tuple[Expr, ...],
        element: Attribute,
        strides: tuple[Expr, ...] | None = None,
        device: str = HOST,
    ) -> TensorType:
        """The type for the given sizes, element type, strides in elements (None: row-major) and device."""
        if strides is not None:
            if len(strides) != len(shape):
                raise ValueError(f"{len(strides)} strides for {len(shape)} dimensions")
            if strides == contiguous_strides(shape):
                strides = None
        return TensorType(TensorData(shape, element, strides, device))

    @property
    def shape(self) -> tuple[Expr, ...]:
        """Sizes, outermost first."""
        return self.data.shape

    @property
    def element(self) -> Attribute:
        """Element type."""
        return self.data.element

    @property
    def device(self) -> str:
        """Torch device string, "cpu" or "cuda:0"."""
        return self.data.device

    @property
    def strides(self) -> tuple[Expr, ...]:
        """Strides in elements; row-major ones when the type does not spell any."""
        return self.data.strides if self.data.strides is not None else contiguous_strides(self.data.shape)

    @property
    def is_contiguous(self) -> bool:
        """Whether the strides are row-major."""
        return self.data.strides is None

    def with_(
        self,
        shape: tuple[Expr, ...] | None = None,
        element: Attribute | None = None,
        strides: tuple[Expr, ...] | None = None,
    ) -> TensorType:
        """A copy with another shape or element type. A new shape drops the strides unless they are given."""
        if strides is None and shape is None:
            strides = self.data.strides
        new_shape = self.shape if shape is None else shape
        return TensorType.get(new_shape, element or self.element, strides, self.device)

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> TensorData:
        """Parse `<(s0)x4096xf32, strides = [...], device = "...">`."""
        with parser.in_angle_brackets():
            shape, element = _parse_shape(parser)
            if element not in TORCH_NAMES and not isinstance(element, OpaqueDtype):
                parser.raise_error(f"a tensor has no elements of type {element}")
            strides: tuple[Expr, ...] | None = None
            device = HOST
            while parser.parse_optional_punctuation(",") is not None:
                if parser.parse_optional_keyword("strides") is not None:
                    parser.parse_punctuation("=")
                    strides = tuple(
                        parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_expr(parser))
                    )
                else:
                    parser.parse_keyword("device")
                    parser.parse_punctuation("=")
                    device = parser.parse_str_literal()
                    if DEVICE.fullmatch(device) is None:
                        parser.raise_error(f"{device!r} is no device: write one as cpu or cuda:0")
        if strides is not None and len(strides) != len(shape):
            parser.raise_error(f"{len(strides)} strides for {len(shape)} dimensions")
        problem = _size_problem(shape, element, strides)
        if problem is not None:
            parser.raise_error(problem)
        return TensorType.get(shape, element, strides, device).data

    def print_parameter(self, printer: Printer) -> None:
        """Print what `parse_parameter` reads."""
        with printer.in_angle_brackets():
            for size in self.data.shape:
                text = str(size)
                printer.print_string(f"{text}x" if text.isdigit() else f"({text})x")
            printer.print_attribute(self.data.element)
            if self.data.strides is not None:
                printer.print_string(f", strides = [{', '.join(map(str, self.data.strides))}]")
            if self.data.device != HOST:
                printer.print_string(", device = ")
                printer.print_string_literal(self.data.device)


def _size_problem(shape: tuple[Expr, ...], element: Attribute, strides: tuple[Expr, ...] | None) -> str | None:
    """What is wrong with sizes that are known: each of them, and the bytes from the first to the last element."""
    sizes = [size.as_int() for size in shape]
    if any(size is not None and size < 0 for size in sizes):
        return f"a tensor has no negative size: {', '.join(map(str, shape))}"
    steps = [step.as_int() for step in (contiguous_strides(shape) if strides is None else strides)]
    if any(step is not None and step < 0 for step in steps):
        return "a tensor has no negative stride"
    item = ITEM_SIZES.get(TORCH_NAMES.get(element, ""), 1)
    known = [(size, step) for size, step in zip(sizes, steps, strict=True) if size is not None and step is not None]
    reach = 1 + sum(max(size - 1, 0) * step for size, step in known)
    count = 1
    for size in sizes:
        count *= 1 if size is None else size
    if 0 not in sizes and max(reach, count) * item >= MAX_BYTES:
        return "the tensor is too large: it takes 2^63 bytes or more"
    return None


def _parse_shape(parser: AttrParser) -> tuple[tuple[Expr, ...], Attribute]:
    """Parse `(s0)x4096xf32`: sizes, each followed by `x`, then the element type."""
    shape: list[Expr] = []
    while True:
        if parser.parse_optional_punctuation("(") is not None:
            shape.append(parse_expr(parser))
            parser.parse_punctuation(")")
        elif parser._current_token.text[0].isdigit():  # pyright: ignore[reportPrivateUsage]
            shape.append(const(parser.parse_shape_dimension(allow_dynamic=False)))
        else:
            return tuple(shape), parser.parse_type()
        parser.parse_shape_delimiter()


def type_of(value: SSAValue) -> TensorType:
    """The type of a value that is a tensor."""
    found = type_of_value(value)
    assert type(found) is TensorType
    return found
