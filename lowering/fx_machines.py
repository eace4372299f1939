"""From torch's devices to descriptions of machines: what an imported module says that it is for."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute

from ..dialects.aten.types import TensorType
from ..dialects.machine import TARGETS, TargetsAttr
from ..errors import UnsupportedError
from ..machines import HOST, default_target, is_described, targets_of_device


def attach_machines(module: ModuleOp, outer: Iterable[Attribute], inner: Iterable[Attribute] = ()) -> None:
    """Let a module name the machines that its tensors are on, and the host.

    outer: types of what the module takes and returns; UnsupportedError for a device that nothing compiles for
    inner: types of all that it computes; a device that nothing compiles for, such as "meta", runs no kernel

    Of several devices of one type the first one decides.
    """
    names = {HOST: default_target(HOST).name}
    for device in sorted(_devices(outer)):
        names.setdefault(device.partition(":")[0], target_of_device(device))
    for device in sorted(_devices(inner)):
        if device.partition(":")[0] not in names and is_described(device):
            names[device.partition(":")[0]] = target_of_device(device)
    module.attributes[TARGETS] = TargetsAttr.of(names)


def _devices(types: Iterable[Attribute]) -> set[str]:
    distinct = {id(each): each for each in types}  # of many values, which share theirs
    return {each.device for each in distinct.values() if isinstance(each, TensorType)}


@cache
def target_of_device(device: str) -> str:
    """The target of a torch device, "cuda:0".

    Without such a device in the machine, as when IR of another machine is compiled, the usual one of its type.
    UnsupportedError for a device that nothing compiles for.
    """
    usual = default_target(device)
    type_ = torch.device(device).type
    if type_ == HOST or not torch.get_device_module(type_).is_available():
        return usual.name
    return name_of(type_, torch.get_device_module(type_).get_device_properties(torch.device(device)))


def name_of(device: str, properties: Any) -> str:
    """The target of a type of device with these properties."""
    for family in {target.family: None for target in targets_of_device(device)}:
        if family.triton is not None and (arch := family.triton.arch_of(properties)) is not None:
            return f"{family.name}:{arch}"
    raise UnsupportedError(f"no kernels can be made for the device {device}, {properties}")
