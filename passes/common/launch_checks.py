"""Whether a launch gives its kernel what the kernel takes, and an assert reports what its kernel may report."""

from __future__ import annotations

from collections.abc import Mapping

from ...dialects import host, kernel
from ...dialects.aten import TensorType
from ...machines import CpuTarget, in_host_memory, target_named
from .strided_views import extent


def launch_problem(op: host.LaunchOp, kernels: Mapping[str, kernel.FuncOp]) -> str | None:
    """What is wrong with the arguments of a launch: their number, element types, and sizes where they are known."""
    name = op.kernel.root_reference.data
    function = kernels.get(name)
    if function is None:
        return f"launches @{name}, and there is no such kernel.func"
    parameters = function.body.block.args
    if len(parameters) != len(op.buffers) or len(function.symbols.data) != len(op.symbols.data):
        return (
            f"gives {len(op.buffers)} buffers and {len(op.symbols.data)} symbols, @{name} takes {len(parameters)} and "
            f"{len(function.symbols.data)}"
        )
    values = {name.data: value for name, value in zip(function.symbols, op.symbols.data, strict=True)}
    for number, (argument, parameter) in enumerate(zip(op.buffers, parameters, strict=True)):
        kind, wanted = argument.type, parameter.type
        if not isinstance(kind, TensorType) or not isinstance(wanted, kernel.BufferType):
            continue  # said of the kernel itself
        if kind.element != wanted.element:
            return f"argument {number} is {kind}, @{name} takes elements of {wanted.element}"
        used, there = wanted.extent.subs(values).as_int(), extent(kind).as_int()
        if used is not None and there is not None and 0 < there < used:
            return f"argument {number} is {kind} with {there} elements, @{name} uses {used} of them"
    return _target_problem(op, function) or _device_problem(op, function)


def _target_problem(op: host.LaunchOp, function: kernel.FuncOp) -> str | None:
    """Where a kernel that is scheduled for one kind of device is launched on tensors of the other."""
    devices = {kind.device for value in op.buffers if isinstance(kind := value.type, TensorType)}
    if function.target is None or not devices:
        return None
    others = sorted(device for device in devices if not in_host_memory(device))
    for_cpu = isinstance(target_named(function.target.data), CpuTarget)
    if for_cpu == (not others):
        return None
    where = ", ".join(others or sorted(devices))
    return f"launches @{op.kernel.root_reference.data} on {where}, and it is scheduled for {function.target.data}"


def _device_problem(op: host.LaunchOp, function: kernel.FuncOp) -> str | None:
    """Where a kernel writes memory of another device than its own: it would write a copy, which nobody reads.

    Numbers of the CPU's memory that it reads are moved in front of a launch.
    """
    devices = {kind.device for value in op.buffers if isinstance(kind := value.type, TensorType)}
    if len(devices) < 2:
        return None
    written = {each.buffer for each in function.walk() if isinstance(each, kernel.StoreOp)}
    for argument, parameter in zip(op.buffers, function.body.block.args, strict=True):
        kind = argument.type
        if parameter in written and isinstance(kind, TensorType) and in_host_memory(kind.device):
            others = sorted(device for device in devices if not in_host_memory(device))
            return f"writes a tensor of the CPU, and reads or writes others on {', '.join(others)}"
    return None


def assert_problem(op: kernel.AssertOp) -> str | None:
    """What is wrong with the code of an assert: it is the number of one of its kernel's errors."""
    function = op.parent_op()
    while function is not None and not isinstance(function, kernel.FuncOp):
        function = function.parent_op()
    code, errors = op.code.data.as_int(), () if function is None or function.errors is None else function.errors.data
    if code is not None and code <= len(errors):
        return None
    return f"reports error {code}, and its kernel has {len(errors)}"
