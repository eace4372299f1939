"""Tensors of a module on another device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, FunctionType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects.aten.attributes import DeviceAttr
from ...dialects.aten.types import TensorType


def devices_in(module: ModuleOp) -> set[str]:
    """The devices of all tensors of a module."""
    return {value.type.device for value in _values(module) if isinstance(value.type, TensorType)}


def move_tensors(module: ModuleOp, devices: Mapping[str, str]) -> None:
    """Let tensors on some devices, and ops that make such, be on those that `devices` gives for them instead."""
    for value in _values(module):
        moved = _moved(value.type, devices)
        if moved is not value.type:
            Rewriter.replace_value_with_new_type(value, moved)
    for op in module.walk():
        for fields in (op.properties, op.attributes):
            for name, attribute in fields.items():
                moved = _moved(attribute, devices)
                if moved is not attribute:
                    fields[name] = moved


def _values(module: ModuleOp) -> Iterator[SSAValue]:
    for op in list(module.walk()):
        yield from _own_values(op)


def _own_values(op: Operation) -> list[SSAValue]:
    arguments = [argument for region in op.regions for block in region.blocks for argument in block.args]
    return [*op.results, *arguments]


def _moved(attribute: Attribute, devices: Mapping[str, str]) -> Attribute:
    """An attribute with other devices in it; the same object where there are none of these."""
    if isinstance(attribute, TensorType):
        device = devices.get(attribute.device)
        if device is None:
            return attribute
        return TensorType.get(attribute.shape, attribute.element, attribute.data.strides, device)
    if isinstance(attribute, DeviceAttr):
        return DeviceAttr(devices.get(attribute.data, attribute.data)) if attribute.data in devices else attribute
    if isinstance(attribute, FunctionType):
        types = [[_moved(each, devices) for each in part] for part in (attribute.inputs, attribute.outputs)]
        old = [*attribute.inputs, *attribute.outputs]
        return attribute if _same(old, [*types[0], *types[1]]) else FunctionType.from_lists(*types)
    if isinstance(attribute, ArrayAttr):
        items = [_moved(each, devices) for each in attribute.data]
        return attribute if _same(attribute.data, items) else ArrayAttr(items)
    if isinstance(attribute, DictionaryAttr):
        named = {name: _moved(each, devices) for name, each in attribute.data.items()}
        return attribute if _same([*attribute.data.values()], [*named.values()]) else DictionaryAttr(named)
    return attribute


def _same(old: object, new: object) -> bool:
    return all(left is right for left, right in zip(old, new, strict=True))  # pyright: ignore
