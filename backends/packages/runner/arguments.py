"""Types, sizes and arguments of operators as C++ over libtorch."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override
from xdsl.ir import Attribute, SSAValue

from ....dialects.aten import Device, Layout, MemoryFormat
from ....dialects.aten.schema import Argument
from ....dialects.aten.types import torch_name
from ....dialects.sym import Expr, Ranges
from ....dialects.sym.expr import Atom
from ....errors import UnsupportedError
from ...host.gpu import is_gpu
from ...host.walk import HostWalk
from ...printing.code import ATOM, Code, call
from ...printing.index import IndexPrinter, IndexSyntax

SCALAR_TYPES = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble", "complex32": "ComplexHalf", "uint16": "UInt16", "uint32": "UInt32",
    "uint64": "UInt64", "float8_e4m3fn": "Float8_e4m3fn", "float8_e5m2": "Float8_e5m2",
}  # fmt: skip
"""torch's name of a type -> that of libtorch's enumeration."""
_ITEMS = {"int": "int64_t", "float": "double", "bool": "bool", "tensor": "at::Tensor"}


class _Syntax(IndexSyntax):
    """Quotients and rests are functions of the runtime, which round to minus infinity."""

    @override
    def is_plain(self, atom: Atom, ranges: Ranges) -> bool:
        return False

    @override
    def floored(self, divides: bool, dividend: Code, divisor: Code, constant: bool) -> Code:
        return call("floordiv" if divides else "mod", dividend, divisor)

    @override
    def extremum(self, kind: str, arguments: list[Code]) -> Code:
        return call(kind, *arguments)


_SYNTAX, _NOTHING_KNOWN = _Syntax("*", " / ", " % "), Ranges()


def scalar_type(name: str) -> str:
    """A type as libtorch names it. UnsupportedError for one that it has not."""
    if name not in SCALAR_TYPES:
        raise UnsupportedError(f"a runner has no tensors of {name}")
    return f"at::ScalarType::{SCALAR_TYPES[name]}"


class Arguments(HostWalk):
    """How a walk spells sizes, and what operators are given; `device` is the GPU that its program is on, or the CPU."""

    device: str

    @override
    def _spell(self, expr: Expr, more: Mapping[str, str] | None = None) -> str:
        names = {**self.symbols, **(more or {})}
        return IndexPrinter(lambda symbol: Code(names[symbol], ATOM), _NOTHING_KNOWN, _SYNTAX).print(expr).text

    def _argument(self, argument: Argument, value: Any) -> str:
        if value is None:
            return "none()"
        if isinstance(value, tuple | list):
            return self._argument_list(argument, value)
        if argument.is_list and argument.kind == "int" and not isinstance(value, SSAValue):
            return f"list(std::vector<int64_t>{{{self._item(argument, value)}}})"
        return self._item(argument, value)

    def _argument_list(self, argument: Argument, items: Sequence[Any]) -> str:
        if argument.kind not in _ITEMS:
            raise UnsupportedError(f"a runner has no list of {argument.kind}")
        ctype = _ITEMS[argument.kind]
        texts = [self._item(argument, item) for item in items]
        if argument.optional_items:
            ctype = f"std::optional<{ctype}>"
            texts = ["std::nullopt" if item is None else text for item, text in zip(items, texts, strict=True)]
        return f"list(std::vector<{ctype}>{{{', '.join(texts)}}})"

    def _item(self, argument: Argument, value: Any) -> str:
        if value is None:
            return "none()"
        if isinstance(value, int) and not isinstance(value, bool) and argument.kind == "float":
            return double(float(value))
        if isinstance(value, SSAValue | Expr | int | float):
            return self._number(value)
        if isinstance(value, complex):
            return f"c10::complex<double>({double(value.real)}, {double(value.imag)})"
        if isinstance(value, Device):
            return self._device(str(value))
        if isinstance(value, Layout):
            return _enumerator("c10::Layout", {"strided": "Strided"}, str(value))
        if isinstance(value, MemoryFormat):
            known = {
                "contiguous_format": "Contiguous", "preserve_format": "Preserve", "channels_last": "ChannelsLast",
                "channels_last_3d": "ChannelsLast3d",
            }  # fmt: skip
            return _enumerator("c10::MemoryFormat", known, str(value))
        if isinstance(value, Attribute):
            return scalar_type(torch_name(value))
        if isinstance(value, str):
            return f"std::string({json.dumps(value)})"
        raise UnsupportedError(f"a runner has no argument {value!r:.60}")

    def _number(self, value: SSAValue | Expr | float) -> str:
        """A value of the program, a size or a number."""
        if isinstance(value, SSAValue):
            return self._variable(value)
        if isinstance(value, Expr):
            return f"int64_t({self._spell(value)})"
        if isinstance(value, bool):
            return str(value).lower()
        return f"int64_t({value})" if isinstance(value, int) else double(value)

    def _device(self, name: str) -> str:
        if not is_gpu(name):
            return f"c10::Device({json.dumps(name)})"
        if name not in (self.device, self.device.partition(":")[0]):
            raise UnsupportedError(f"a runner has tensors on one GPU, and this program also on {name}")
        return "device"


def double(value: float) -> str:
    """A number as C++. The very number, in hexadecimal digits."""
    if math.isnan(value):
        return "double(NAN)"
    if math.isinf(value):
        return "double(INFINITY)" if value > 0 else "-double(INFINITY)"
    return value.hex()


def _enumerator(enumeration: str, known: Mapping[str, str], name: str) -> str:
    if name not in known:
        raise UnsupportedError(f"a runner has no {enumeration} {name}")
    return f"{enumeration}::{known[name]}"
