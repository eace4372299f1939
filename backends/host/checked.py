"""The host program of a file: every launch, view and result is checked as the reference backend checks it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from typing_extensions import override
from xdsl.ir import SSAValue

from ...dialects import host, kernel
from ...dialects.aten import AtenOp, CallOp, TensorType
from ...errors import UserError, program_raises
from ...lowering.fx_targets import resolve
from ..generators import generator_of
from ..limits import check_bytes, check_call, max_steps
from ..reference.tensors import span
from . import runtime
from .aten_calls import ArgumentPrinter
from .emit import HostEmitter
from .expressions import expressions

_REMEDY = "mend the file, or --unchecked for one that you trust"


class _CheckedPrinter(ArgumentPrinter):
    """Calls go to torch's own entry, which checks arguments, and to no library by a file's word. Loops end."""

    @override
    def call(self, op: AtenOp | CallOp) -> str:
        self.most = max_steps()
        return super().call(op)

    @override
    def operator(self, name: str) -> Callable[..., Any]:
        function = resolve(name)

        def bounded(*args: Any, **kwargs: Any) -> Any:
            check_call(function, args, kwargs)
            with program_raises():
                return function(*args, **kwargs)

        return bounded

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
        kind, dtype = op.out.type, self._dtype_of(op.out)
        if op.offset is not None:
            self.constants.fixed("in_pool", in_pool)
            arguments = f"{self._variable(op.pool[0])}, {self._expr(op.offset.data)}, {self._layout_of(op.out)}"
            self.lines.append(f"{self._fresh(op.out)} = in_pool({arguments}, {dtype})")
            return
        assert isinstance(kind, TensorType)
        self.constants.fixed("empty", empty)
        device = self.constants.bind("device", runtime.device_of(kind.device))
        self.lines.append(f"{self._fresh(op.out)} = empty({self._layout_of(op.out)}, {dtype}, {device})")

    @override
    def _view(self, op: host.ViewOp) -> None:
        self.constants.fixed("view", view)
        arguments = f"{self._variable(op.source)}, {self._expr(op.offset.data)}, {self._layout_of(op.out)}"
        self.lines.append(f"{self._fresh(op.out)} = view({arguments}, {self._dtype_of(op.out)})")

    @override
    def _copy(self, op: host.CopyOp) -> None:
        self.constants.fixed("copied", copied)
        self.lines.append(f"copied({self._variable(op.source)}, {self._variable(op.target)})")

    @override
    def _fit(self, op: AtenOp | CallOp, name: str, out: SSAValue, always: bool = False) -> None:
        if not isinstance(out.type, TensorType):
            return
        self.constants.fixed("returned", returned)
        what = self.constants.bind("text", op.target)
        self.lines.append(f"{name} = returned({name}, {self._layout_of(out)}, {self._dtype_of(out)}, {what})")

    @override
    def _take(self, argument: SSAValue) -> None:
        if isinstance(argument.type, TensorType):
            self.constants.fixed("returned", returned)
            what = self.constants.bind("text", f"what a body is given, argument {self.variables[argument][1:]},")
            layout, dtype = self._layout_of(argument), self._dtype_of(argument)
            name = self.variables[argument]
            self.lines.append(f"{name} = returned({name}, {layout}, {dtype}, {what})")

    def _layout_of(self, value: SSAValue) -> str:
        kind = value.type
        assert isinstance(kind, TensorType)
        return f"{expressions(kind.shape, self.symbols)}, {expressions(kind.strides, self.symbols)}"

    def _dtype_of(self, value: SSAValue) -> str:
        assert isinstance(value.type, TensorType)
        return self.constants.bind("dtype", runtime.torch_dtype(value.type.element))


def elements(tensor: torch.Tensor, extent: int, dtype: torch.dtype, what: str) -> int:
    """How many elements a kernel may use of a tensor that is launched."""
    if tensor.dtype != dtype or tensor.device.type != "cpu":
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
