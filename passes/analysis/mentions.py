"""Symbols that ops mention: a use that no operand shows."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import Attribute, Operation

from ...dialects.aten import TensorType
from ...dialects.aten.attributes import TupleAttr
from ...dialects.raw import ops_in
from ...dialects.sym import AxesAttr, MapAttr, SymAttr


def symbols_of_type(type_: Attribute) -> set[str]:
    """Symbols in the sizes and strides of a tensor; none for other types."""
    if not isinstance(type_, TensorType):
        return set()
    return {name for expr in (*type_.shape, *type_.strides) for name in expr.free_symbols}


def mentioned_symbols(op: Operation) -> set[str]:
    """Symbols (and axes) in the result types and properties of an op and of all that is nested in it."""
    found: set[str] = set()
    for each in ops_in(op):
        for result in each.results:
            found |= symbols_of_type(result.type)
        for attribute in each.properties.values():
            found |= _mentioned(attribute)
    return found


def _mentioned(attribute: Attribute) -> set[str]:
    if isinstance(attribute, SymAttr):
        return set(attribute.data.free_symbols)
    if isinstance(attribute, MapAttr):
        return {name for expr in attribute.data for name in expr.free_symbols}
    if isinstance(attribute, AxesAttr):
        return {name for _, size in attribute.data for name in size.free_symbols}
    items: Iterable[Attribute] = ()
    if isinstance(attribute, ArrayAttr):
        items = attribute.data
    elif isinstance(attribute, TupleAttr):
        items = attribute.data.data
    elif isinstance(attribute, DictionaryAttr):
        items = attribute.data.values()
    return {name for item in items for name in _mentioned(item)}
