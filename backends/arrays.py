"""Arrays in files: `.npy`, and integers for index arguments.

NumPy has no bfloat16 and no float8; such tensors are files of their bits, as integers of the same width.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy
import torch
from xdsl.dialects.builtin import IndexType, ModuleOp

from ..dialects.aten import TensorType
from ..dialects.sym import SymError
from ..errors import UserError
from .reference.binding import bind_symbols
from .reference.precision import actual_device, torch_dtype
from .reference.run import declarations, find_function
from .reference.tensors import same_strides, undefined

Input = torch.Tensor | int


def load_arrays(paths: Sequence[str], module: ModuleOp, function: str | None = None) -> list[Input]:
    """The inputs of a function from `.npy` files and numbers, one for each argument, with the strides it wants.

    One folder instead stands for the files `0.npy`, `1.npy`, ... in it, as `inductile.debug.capture` writes them.
    Pickled objects are refused.
    """
    if len(paths) == 1 and Path(paths[0]).is_dir():
        paths = array_files(Path(paths[0]))
    chosen = find_function(module, function)
    kinds = [argument.type for argument in chosen.body.blocks[0].args]
    if len(paths) != len(kinds):
        raise UserError(f"{len(paths)} inputs for {len(kinds)} arguments", "give --input once for each argument")
    inputs = [_fit(load_array(path), kind) for path, kind in zip(paths, kinds, strict=True)]
    symbols = bind_symbols([s.data for s in declarations(chosen)], inputs)
    return [_lay_out(value, kind, symbols) for value, kind in zip(inputs, kinds, strict=True)]


def array_files(folder: Path) -> list[str]:
    """The files `0.npy`, `1.npy`, ... of a folder."""
    count = 0
    while (folder / f"{count}.npy").is_file():
        count += 1
    if not count:
        raise UserError(f"{folder}: error: holds no arrays", "name them 0.npy, 1.npy, ...")
    return [str(folder / f"{k}.npy") for k in range(count)]


def load_array(path: str) -> Input:
    """An array of a `.npy` file, or an integer. UserError for what is neither."""
    if path.lstrip("-").isdigit():
        return int(path)
    try:
        return torch.from_numpy(numpy.load(path, allow_pickle=False))
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path}: error: cannot read an array: {error}", "give a .npy file or an integer") from error


def _fit(value: Input, kind: object) -> Input:
    """An integer for an index argument; bits reinterpreted as the float that they stand for."""
    if isinstance(value, int):
        return value
    if isinstance(kind, IndexType):
        return int(value) if value.numel() == 1 else value
    if isinstance(kind, TensorType):
        wanted = torch_dtype(kind.element)
        if _needs_bits(wanted) and value.dtype == _bits(wanted):
            return value.view(wanted)
    return value


def _lay_out(value: Input, kind: object, symbols: dict[str, int]) -> Input:
    """The array with the strides and on the device of the argument; a wrong shape is left for others to report."""
    if not isinstance(value, torch.Tensor) or not isinstance(kind, TensorType):
        return value
    value = value.to(actual_device(kind.device))
    try:
        strides = [e.evaluate(symbols) for e in kind.strides]
    except SymError:
        return value
    if len(strides) != value.dim() or same_strides(value, strides):
        return value
    laid_out = undefined(value.shape, strides, value.dtype, value.device)
    once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in strides)
    laid_out[once] = value[once]
    return laid_out


def _needs_bits(dtype: torch.dtype) -> bool:
    return dtype == torch.bfloat16 or (dtype.is_floating_point and dtype.itemsize == 1)


def _bits(dtype: torch.dtype) -> torch.dtype:
    return torch.int16 if dtype.itemsize == 2 else torch.uint8


def save_array(path: Path, value: object) -> None:
    """Write a tensor or a number to a .npy file."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu()
        value = (value.view(_bits(value.dtype)) if _needs_bits(value.dtype) else value).numpy()
    try:
        numpy.save(path, numpy.asarray(value), allow_pickle=False)
    except OSError as error:
        raise UserError(f"{path}: error: cannot write it: {error.strerror}") from error


def save_arrays(results: Sequence[object], paths: Sequence[str]) -> None:
    """Write results to .npy files, in order."""
    if len(paths) > len(results):
        raise UserError(f"{len(paths)} output files for {len(results)} results")
    for path, value in zip(paths, results, strict=False):
        save_array(Path(path), value)
