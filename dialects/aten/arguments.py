"""Which attributes an argument of a schema may hold, and the one canonical form of each value."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects.builtin import ArrayAttr, FloatAttr, IntegerAttr, StringAttr, SymbolRefAttr
from xdsl.ir import Attribute, SSAValue, TypeAttribute

from ..sym import MapAttr, SymAttr
from .attributes import (
    NONE,
    ComplexAttr,
    DeviceAttr,
    LayoutAttr,
    MemoryFormatAttr,
    NoneAttr,
    OperandAttr,
)
from .schema import REQUIRED, Argument
from .types import element_type
from .values import Device, Layout, MemoryFormat, Value, decode, encode

#: attributes of one value of a kind; numbers made by other ops are operands
ALLOWED: dict[str, tuple[type, ...]] = {
    "int": (SymAttr,),
    "float": (FloatAttr, OperandAttr, SymAttr),
    "bool": (IntegerAttr, OperandAttr),
    "scalar": (FloatAttr, SymAttr, IntegerAttr, ComplexAttr, OperandAttr),
    "complex": (ComplexAttr, FloatAttr, SymAttr),
    "str": (StringAttr,),
    "dtype": (TypeAttribute,),
    "layout": (LayoutAttr,),
    "memory_format": (MemoryFormatAttr,),
    "device": (DeviceAttr,),
    "generator": (OperandAttr, SymbolRefAttr),
}
_WRAPPERS: dict[str, Callable[[str], Attribute | Device | Layout | MemoryFormat]] = {
    "dtype": element_type, "layout": Layout, "memory_format": MemoryFormat, "device": Device,
}  # fmt: skip

#: what Python's int becomes for arguments of other kinds
_FROM_INT: dict[str, Callable[[int], float | bool]] = {"float": float, "bool": bool}


def is_allowed(argument: Argument, attribute: Attribute) -> bool:
    """Whether an argument that is no tensor may hold `attribute`."""
    if isinstance(attribute, NoneAttr):
        return argument.optional
    if argument.kind == "int":
        return _is_allowed_int(argument, attribute)
    if not argument.is_list:
        return isinstance(attribute, ALLOWED[argument.kind])
    allowed = ALLOWED[argument.kind]
    return isinstance(attribute, ArrayAttr) and all(isinstance(item, allowed) for item in attribute.data)


def _is_allowed_int(argument: Argument, attribute: Attribute) -> bool:
    """Numbers of an `int` are known when torch captures a graph; those of a `SymInt` may hold symbols."""
    if not isinstance(attribute, MapAttr if argument.is_list else SymAttr):
        return False
    exprs = attribute.data if isinstance(attribute, MapAttr) else (attribute.data,)
    return argument.is_symbolic or all(expr.as_int() is not None for expr in exprs)


def argument_attribute(argument: Argument, value: Value, dynamic: list[SSAValue]) -> Attribute:
    """The attribute of a Python value, canonical for the argument's kind; SSA values are appended to `dynamic`.

    Raises TypeError when the argument cannot hold the value.
    """
    if type(value) is str and argument.kind in _WRAPPERS:
        value = _WRAPPERS[argument.kind](value)
    attribute = canonical(argument, encode(value, dynamic))
    if not is_allowed(argument, attribute):
        raise TypeError(f"argument '{argument.name}' takes {describe(argument)}, not {value!r}")
    return attribute


def canonical(argument: Argument, attribute: Attribute) -> Attribute:
    """What torch's argument parser makes of a value: an int for a float, one number for a list of `size`."""
    return _canonical_list(argument, attribute) if argument.is_list else _canonical_item(argument.kind, attribute)


def _canonical_item(kind: str, attribute: Attribute) -> Attribute:
    if kind == "int":
        return SymAttr.of(int(decode(attribute))) if isinstance(attribute, IntegerAttr) else attribute
    if kind == "device" and isinstance(attribute, StringAttr):
        return DeviceAttr(attribute.data)
    convert = _FROM_INT.get(kind)
    number = attribute.data.as_int() if convert is not None and isinstance(attribute, SymAttr) else None
    return attribute if convert is None or number is None else encode(convert(number), [])


def _canonical_list(argument: Argument, attribute: Attribute) -> Attribute:
    if isinstance(attribute, NoneAttr):
        return attribute
    if argument.kind == "int":
        return MapAttr.of(*[attribute.data] * (argument.size or 1)) if isinstance(attribute, SymAttr) else attribute
    if isinstance(attribute, MapAttr):
        items = [SymAttr.of(expr) for expr in attribute.data]
    elif isinstance(attribute, ArrayAttr):
        items = attribute.data
    else:
        items = [attribute] * (argument.size or 1)
    return ArrayAttr([_canonical_item(argument.kind, item) for item in items])


def describe(argument: Argument) -> str:
    """The argument's type for messages: `list of int or none`."""
    constant = "constant " if argument.kind == "int" and not argument.is_symbolic else ""
    kind = f"list of {constant}{argument.kind}" if argument.is_list else constant + argument.kind
    return f"{kind} or none" if argument.optional else kind


def default_value(argument: Argument) -> Value:
    """What a reader gets for an argument that is not spelled; None also for one that has no default."""
    if argument.default is REQUIRED or argument.default is None:
        return None
    return decode(argument_attribute(argument, argument.default, []))


def default_attribute(argument: Argument) -> Attribute | None:
    """The attribute that is not spelled because it says the default; None when every value is spelled."""
    if argument.default is REQUIRED:
        return NONE if argument.optional else None
    return argument_attribute(argument, argument.default, [])
