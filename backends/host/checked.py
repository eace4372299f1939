"""The host program of a file: every launch, view and result is checked as the reference backend checks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from typing_extensions import override
from xdsl.ir import SSAValue

from ...dialects import host, kernel
from ...dialects.aten import AtenOp, CallOp, TensorType
from ...dialects.aten.types import type_of
from ...errors import UserError, program_raises
from ...lowering.fx_targets import resolve
from ...machines import in_host_memory
from ..generators import generator_of
from ..limits import bounded, check_bytes, max_steps
from ..reference.tensors import span
from . import runtime
from .aten_calls import ArgumentPrinter
from .emit import HostEmitter

_REMEDY = "mend the file, or --unchecked for one that you trust"


class _CheckedPrinter(ArgumentPrinter):
    """Calls go to torch's own entry, which checks arguments, and to no library by a file's word. Loops end."""

    @override
    def call(self, op: AtenOp | CallOp) -> str:
        self.most = max_steps()
        return super().call(op)

    @override
    def operator(self, name: str) -> Callable[..., Any]:
        return bounded(resolve(name))

    @override
    def function(self, op: AtenOp) -> Callable[..., Any]:
        return self.operator(op.target.replace(".", "::", 1))


class CheckedEmitter(HostEmitter):
    """Writes a program that makes a tensor of every value, and passes kernels what they check their accesses with."""

    printer = _CheckedPrinter

    @override
    def _only_launched(self, value: SSAValue, views_are_placed: bool = False) -> bool:
        return False

    @override
    def _is_kept(self, value: SSAValue) -> bool:
        return False

    @override
    def _extents(self, op: host.LaunchOp, function: kernel.FuncOp) -> tuple[str, ...]:
        if self.launchers[generator_of(function)].needs_tensors:
            return ()
        values = {name.data: value for name, value in zip(function.symbols, op.symbols.data, strict=True)}
        self.constants.fixed("elements", elements)
        extents: list[str] = []
        for number, (value, parameter) in enumerate(zip(op.buffers, function.body.block.args, strict=True)):
            kind = parameter.type
            assert isinstance(kind, kernel.BufferType)
            what = self.constants.bind("text", f"argument {number} of @{function.sym_name.data}")
            dtype = self.constants.bind("dtype", runtime.torch_dtype(kind.element))
            extents.append(
                f"elements({self._variable(value)}, {self._expr(kind.extent.subs(values))}, {dtype}, {what})"
            )
        return tuple(extents)

    @override
    def _empty(self, op: host.EmptyOp) -> None:
        if op.offset is not None:
            self.constants.fixed("in_pool", in_pool)
            arguments = f"{self._variable(op.pool[0])}, {self._expr(op.offset.data)}, {self._kind(op.out)}"
            self.lines.append(f"{self._fresh(op.out)} = in_pool({arguments})")
            return
        self.constants.fixed("empty", empty)
        device = self.constants.bind("device", runtime.device_of(type_of(op.out).device))
        self.lines.append(f"{self._fresh(op.out)} = empty({self._kind(op.out)}, {device})")

    @override
    def _view(self, op: host.ViewOp) -> None:
        self.constants.fixed("view", view)
        arguments = f"{self._variable(op.source)}, {self._expr(op.offset.data)}, {self._kind(op.out)}"
        self.lines.append(f"{self._fresh(op.out)} = view({arguments})")

    @override
    def _copy(self, op: host.CopyOp) -> None:
        self.constants.fixed("copied", copied)
        self.lines.append(f"copied({self._variable(op.source)}, {self._variable(op.target)})")

    @override
    def _fit(self, op: AtenOp | CallOp, name: str, out: SSAValue, always: bool = False) -> None:
        if isinstance(out.type, TensorType):
            self._check(name, out, op.target)

    @override
    def _take(self, argument: SSAValue) -> None:
        if isinstance(argument.type, TensorType):
            name = self.variables[argument]
            self._check(name, argument, f"what a body is given, argument {name[1:]},")

    def _check(self, name: str, value: SSAValue, what: str) -> None:
        """Check that a variable holds a tensor of the type of a value, which something else made."""
        self.constants.fixed("returned", returned)
        self.lines.append(f"{name} = returned({name}, {self._kind(value)}, {self.constants.bind('text', what)})")

    def _kind(self, value: SSAValue) -> str:
        """Sizes, strides and dtype of a tensor."""
        kind = type_of(value)
        return f"{self._layout(kind)}, {self._dtype(kind)}"


def elements(tensor: torch.Tensor, extent: int, dtype: torch.dtype, what: str) -> int:
    """How many elements a kernel may use of a tensor that is launched."""
    if tensor.dtype != dtype or not in_host_memory(tensor.device.type):
        raise UserError(f"{what} holds {tensor.dtype} on {tensor.device}, and not {dtype} on the CPU", _REMEDY)
    there = int(tensor.untyped_storage().nbytes() // dtype.itemsize - tensor.storage_offset())
    if tensor.numel() and extent > there:
        raise UserError(f"{what} has {there} elements, the kernel may use {extent}", _REMEDY)
    return max(0, min(extent, there))


def empty(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """A tensor of undefined content."""
    if min(size, default=0) < 0 or min(stride, default=0) < 0:
        raise UserError(f"a tensor has sizes {list(size)} and strides {list(stride)}", _REMEDY)
    check_bytes(span(size, stride) * dtype.itemsize)
    return torch.empty_strided(size, stride, dtype=dtype, device=device)


def copied(source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy a tensor into the memory of another one of its sizes."""
    if source.shape != target.shape:
        raise UserError(f"a tensor of sizes {list(source.shape)} is copied to {list(target.shape)}", _REMEDY)
    with program_raises():  # where elements of the target share a place
        target.copy_(source)


def in_pool(
    pool: torch.Tensor, offset: int, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    """A tensor inside a pool, at a byte of it."""
    item = dtype.itemsize
    if offset % item:
        raise UserError(f"byte {offset} of a pool is no place for {dtype}", _REMEDY)
    memory = pool.view(torch.uint8)
    return view(memory[: memory.numel() // item * item].view(dtype), offset // item, size, stride, dtype)


def view(
    tensor: torch.Tensor, offset: int, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype
) -> torch.Tensor:
    """Other sizes and strides over a tensor's memory; torch checks that they stay inside."""
    if offset < 0:
        raise UserError(f"a view begins at element {offset} of its source", _REMEDY)
    with program_raises():
        if tensor.dtype != dtype:
            tensor = torch.as_strided(tensor, (tensor.numel(),), (1,), tensor.storage_offset()).view(dtype)
        return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)


def returned(tensor: Any, size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, what: str) -> torch.Tensor:
    """What ATen returned, which must be what the file says of it; strides are made those of the file."""
    if not isinstance(tensor, torch.Tensor) or tuple(tensor.shape) != tuple(size) or tensor.dtype != dtype:
        found = f"{tensor.dtype}{list(tensor.shape)}" if isinstance(tensor, torch.Tensor) else repr(tensor)
        raise UserError(f"{what} returns {found}, and the file says {dtype}{list(size)}", "mend the type of its result")
    return runtime.fit(tensor, size, stride)
