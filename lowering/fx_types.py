"""IR types of torch values, and source locations of FX nodes."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import torch
from torch.fx import Node
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    ComplexType,
    FileLineColLoc,
    Float64Type,
    IndexType,
    IntAttr,
    IntegerType,
    LocationAttr,
    NameLoc,
    NoneAttr,
    NoneType,
    StringAttr,
)
from xdsl.ir import Attribute

from ..dialects.aten import TensorType, element_type
from ..dialects.sym import Expr, const
from ..errors import UnsupportedError
from .fx_symbols import SymbolTable

INDEX = IndexType()
F64 = Float64Type()
I1 = IntegerType(1)
NONE = NoneType()
_NUMBERS: dict[type, Attribute] = {
    int: INDEX, torch.SymInt: INDEX, float: F64, torch.SymFloat: F64, bool: I1, torch.SymBool: I1,
    complex: ComplexType(F64), type(None): NONE,
}  # fmt: skip


@lru_cache(maxsize=64)
def dtype_element(dtype: torch.dtype) -> Attribute:
    """The element type of a torch dtype."""
    return element_type(str(dtype).removeprefix("torch."))


@lru_cache(maxsize=64)
def device_name(device: torch.device) -> str:
    """The name of a device as tensor types write it; the current one when the index is open."""
    return str(device)


def type_of(value: Any, symbols: SymbolTable) -> Attribute:
    """The type of a tensor, fake or real, a number or None.

    Raises UnsupportedError for anything else: sparse and nested tensors have no strides to speak of.
    """
    if isinstance(value, torch.Tensor):
        return tensor_type(value, symbols)
    number = _NUMBERS.get(type(value))
    if number is None:
        raise UnsupportedError(f"a graph value of type {type(value).__name__} has no type at the aten level")
    return number


_STATIC: dict[tuple[Any, ...], TensorType] = {}


def tensor_type(tensor: torch.Tensor, symbols: SymbolTable) -> TensorType:
    """The type of a strided tensor. Raises UnsupportedError for sparse and other layouts."""
    if tensor.layout is not torch.strided:
        raise UnsupportedError(f"a tensor of layout {tensor.layout} has no type at the aten level")
    shape, strides = tensor.shape, tensor.stride()
    if tensor._has_symbolic_sizes_strides:  # symbolic sizes do not hash
        return _intern([symbols.expr(n) for n in shape], [symbols.expr(n) for n in strides], tensor)
    key = (shape, strides, tensor.dtype, tensor.device)
    found = _STATIC.get(key)
    if found is None:
        found = _STATIC[key] = _intern([const(n) for n in shape], [const(n) for n in strides], tensor)
    return found


def _intern(shape: list[Expr], strides: list[Expr], tensor: torch.Tensor) -> TensorType:
    return TensorType.get(tuple(shape), dtype_element(tensor.dtype), tuple(strides), device_name(tensor.device))


_FRAME = re.compile(r'File "(.*)", line (\d+)')
_OUTERMOST = re.compile(r"^[LG]\['\w+'\]\.?")
"""How Dynamo names the module that was compiled, in front of the names of those inside of it."""


def location_of(node: Node) -> LocationAttr:
    """File and line of the innermost frame of a node's `stack_trace`, which torch has cut to the user's code.

    Where nothing is left, in a module that is all torch's own (`Sequential`, `TransformerEncoder`), the module's name.
    """
    known = _line_of(node.stack_trace)
    return _module_of(node) if known is UNKNOWN_LOC else known


@lru_cache(maxsize=8192)
def _line_of(stack_trace: str | None) -> LocationAttr:
    text = stack_trace or ""
    innermost = _FRAME.match(text, max(text.rfind('File "'), 0))  # traces are long, and many
    frames = [(innermost[1], int(innermost[2]))] if innermost else frames_of(text)
    if not frames:
        return UNKNOWN_LOC
    file, line = frames[-1]
    return FileLineColLoc(_file(file), IntAttr(line), _FIRST_COLUMN)


_FIRST_COLUMN = IntAttr(0)


@lru_cache(maxsize=256)
def _file(path: str) -> StringAttr:
    return StringAttr(path)


def _module_of(node: Node) -> LocationAttr:
    """The innermost module of a node by its path and class, as in "layers.0.linear1 (Linear)"."""
    modules = list((node.meta.get("nn_module_stack") or {}).values())
    if not modules:
        return UNKNOWN_LOC
    path, kind = modules[-1]
    return _named(str(path), kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind)))


@lru_cache(maxsize=8192)
def _named(path: str, kind: str) -> LocationAttr:
    inside = _OUTERMOST.sub("", path)
    kind = kind.rpartition(".")[2]
    return NameLoc(StringAttr(f"{inside} ({kind})" if inside else kind), NoneAttr())


def frames_of(stack_trace: str | None) -> list[tuple[str, int]]:
    """File and line of each frame of a node's `stack_trace`, the innermost last."""
    return [(file, int(line)) for file, line in _FRAME.findall(stack_trace or "")]
