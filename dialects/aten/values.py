"""Argument values: between Python and attributes.

| value of an argument                    | attribute                      |
|-----------------------------------------|--------------------------------|
| int, `Expr`                             | `SymAttr`                      |
| list of those                           | `MapAttr`                      |
| bool, float, str                        | `i1`, `f64`, string            |
| complex, `Device`, `Layout`, ...        | those of `attributes`          |
| dtype, by its element type              | the element type               |
| None                                    | `#aten.none`                   |
| SSA value (a number made by another op) | `#aten.operand<k>`             |
| `Reference` (a graph, an object)        | `@name`                        |
| other lists (decoded as tuples), dicts  | array, dictionary              |
| `Tuple`                                 | `#aten.tuple<...>`             |
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    SymbolRefAttr,
)
from xdsl.ir import Attribute, BlockArgument, OpResult, SSAValue

from ..sym import Expr, MapAttr, SymAttr, as_expr
from .attributes import (
    NONE,
    ComplexAttr,
    DeviceAttr,
    LayoutAttr,
    MemoryFormatAttr,
    NoneAttr,
    OperandAttr,
    OperatorAttr,
    TupleAttr,
)

Value: TypeAlias = Any
"""None, bool, int, float, complex, str, `Expr`, element type, SSA value, or a tuple or dict of such."""


class Device(str):
    """A device by its torch name, "cpu" or "cuda:0"."""

    __slots__ = ()


class Layout(str):
    """A layout by its torch name, "strided"."""

    __slots__ = ()


class MemoryFormat(str):
    """A memory format by its torch name, "channels_last"."""

    __slots__ = ()


class Operator(str):
    """An operator by its name, "aten::add.Tensor"."""

    __slots__ = ()


class Reference(str):
    """Name of an object that IR cannot hold, such as the graph of a branch; it travels beside the module."""

    __slots__ = ()


class Tuple(tuple[Any, ...]):
    """A tuple that the callee must get as a tuple, where a plain one stands for any list."""

    __slots__ = ()


#: what SSA values are; `isinstance` with their abstract base costs ten times as much
SSA_CLASSES = frozenset({OpResult, BlockArgument})
_F64 = Float64Type()
_FLOATS: dict[bytes, FloatAttr[Float64Type]] = {}
_OPERANDS = tuple(OperandAttr(k) for k in range(16))
_BOOLS = (BoolAttr.from_bool(False), BoolAttr.from_bool(True))


def float_attr(value: float) -> FloatAttr[Float64Type]:
    """The attribute of a float; bits decide, not `==`."""
    key = struct.pack("d", value)
    found = _FLOATS.get(key)
    if found is None:
        found = _FLOATS[key] = FloatAttr(value, _F64)
    return found


def operand_attr(number: int) -> OperandAttr:
    """The attribute that stands for a dynamic operand."""
    return _OPERANDS[number] if number < len(_OPERANDS) else OperandAttr(number)


@lru_cache(maxsize=1024)
def _string(value: str) -> StringAttr:
    return StringAttr(value)


def encode(value: Value, dynamic: list[SSAValue]) -> Attribute:
    """The attribute of a value; SSA values are appended to `dynamic`. TypeError for what has no attribute."""
    encoder = _ENCODERS.get(type(value))
    if encoder is not None:
        return encoder(value)
    if type(value) in SSA_CLASSES:
        dynamic.append(value)
        return operand_attr(len(dynamic) - 1)
    if type(value) is list:
        return encode_list(value, dynamic)
    if isinstance(value, Attribute):
        return value
    if isinstance(value, dict):
        return DictionaryAttr({str(key): encode(item, dynamic) for key, item in value.items()})
    if isinstance(value, Tuple):
        return TupleAttr(ArrayAttr([encode(item, dynamic) for item in value]))
    if isinstance(value, Sequence):
        return encode_list(value, dynamic)
    raise TypeError(f"an ATen op cannot hold a {type(value).__name__}: {value!r}")


def encode_list(values: Sequence[Value], dynamic: list[SSAValue]) -> Attribute:
    """The attribute of a list: a map when all items are integers, else an array."""
    if all(type(value) is int or type(value) is Expr for value in values):
        return MapAttr.of(*map(as_expr, values))
    return ArrayAttr([encode(value, dynamic) for value in values])


_ENCODERS: dict[type, Callable[[Any], Attribute]] = {
    type(None): lambda value: NONE,
    bool: lambda value: _BOOLS[value],
    int: SymAttr.of,
    Expr: SymAttr.of,
    float: float_attr,
    complex: ComplexAttr.of,
    str: _string,
    Device: lru_cache(maxsize=64)(lambda value: DeviceAttr(str(value))),
    Layout: lru_cache(maxsize=64)(lambda value: LayoutAttr(str(value))),
    MemoryFormat: lru_cache(maxsize=64)(lambda value: MemoryFormatAttr(str(value))),
    Operator: lambda value: OperatorAttr(str(value)),
    Reference: lambda value: SymbolRefAttr(str(value)),
}


def decode(attribute: Attribute, dynamic: Sequence[SSAValue] = ()) -> Value:
    """The value of an attribute; `dynamic` are the operands that `#aten.operand` counts."""
    decoder = _DECODERS.get(type(attribute))
    if decoder is not None:
        return decoder(attribute)
    if isinstance(attribute, OperandAttr):
        return dynamic[attribute.data]
    if isinstance(attribute, ArrayAttr):
        return tuple(decode(item, dynamic) for item in attribute.data)
    if isinstance(attribute, TupleAttr):
        return Tuple(decode(attribute.data, dynamic))
    if isinstance(attribute, DictionaryAttr):
        return {key: decode(item, dynamic) for key, item in attribute.data.items()}
    return attribute


def _number(expr: Expr) -> int | Expr:
    value = expr.as_int()
    return expr if value is None else value


@lru_cache(maxsize=4096)
def _numbers(attribute: MapAttr) -> tuple[int | Expr, ...]:
    return tuple(map(_number, attribute.data))


_DECODERS: dict[type, Callable[[Any], Value]] = {
    SymAttr: lambda attribute: _number(attribute.data),
    MapAttr: _numbers,
    FloatAttr: lambda attribute: attribute.value.data,
    IntegerAttr: lambda attribute: attribute.value.data != 0,
    StringAttr: lambda attribute: attribute.data,
    NoneAttr: lambda attribute: None,
    ComplexAttr: lambda attribute: attribute.value,
    DeviceAttr: lambda attribute: Device(attribute.data),
    LayoutAttr: lambda attribute: Layout(attribute.data),
    MemoryFormatAttr: lambda attribute: MemoryFormat(attribute.data),
    OperatorAttr: lambda attribute: Operator(attribute.data),
    SymbolRefAttr: lambda attribute: Reference(attribute.root_reference.data),
}
