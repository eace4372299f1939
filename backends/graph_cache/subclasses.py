"""Tensors that wrap others, as those of torchao: what a key says of them beside the tensors inside.

What such a class does with an operator is Python. Nothing of it is in a graph, so a class is taken where its code is
known: torch's own, by torch's version, and torchao's, by its files. A class of another package, and one for which
somebody else has registered a function, is not.
"""

from __future__ import annotations

import dataclasses
import enum
import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .stamps import stamp_of_folder

_PACKAGES = frozenset({"torch", "torchao"})
_TABLES = ("_ATEN_OP_TABLE", "_TORCH_FN_TABLE")
"""Where classes of torchao keep what they do, by class and by operator."""
_PLAIN = (bool, int, float, str, bytes, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)


class UnknownCodeError(Exception):
    """A tensor whose class, or whose data beside the tensors inside, has no text."""


def wraps(value: torch.Tensor) -> bool:
    """Whether a tensor is made of others, which a graph is traced with in its place."""
    return is_traceable_wrapper_subclass(value) and not value.is_nested


def wrapped_text(value: torch.Tensor) -> tuple[str, list[torch.Tensor]]:
    """The class and the data of such a tensor, and the tensors inside. UnknownCodeError for what cannot be told."""
    kind = type(value)
    code = _code_of(kind)
    attributes, data = value.__tensor_flatten__()  # pyright: ignore[reportAttributeAccessIssue]
    inner = [getattr(value, name) for name in attributes]
    return f"wraps {_named(kind)} {code} {attributes} {_text(data)}", inner


def _package(module: object) -> str:
    return module.partition(".")[0] if isinstance(module, str) else ""


def _named(kind: type) -> str:
    """The name under which a class of a known package is found; UnknownCodeError for another."""
    if _package(kind.__module__) not in _PACKAGES:
        raise UnknownCodeError(f"{kind.__module__}.{kind.__qualname__}")
    return f"{kind.__module__}.{kind.__qualname__}"


def _code_of(kind: type) -> str:
    """The files of the packages that a class and its bases are of."""
    packages = {_package(each.__module__) for each in kind.__mro__} - {"builtins", "typing", "abc"}
    if packages - _PACKAGES:
        raise UnknownCodeError(_named(kind))
    for function in _registered(kind):
        if _package(getattr(function, "__module__", None)) not in _PACKAGES:
            raise UnknownCodeError(f"{kind.__name__} with a function of {getattr(function, '__module__', '?')}")
    return " ".join(_files(each) for each in sorted(packages - {"torch"}))


def _registered(kind: type) -> Iterator[Any]:
    for base in kind.__mro__:
        for table in _TABLES:
            for functions in vars(base).get(table, {}).values():
                yield from functions.values()


@cache
def _files(package: str) -> str:
    return stamp_of_folder(os.path.dirname(str(sys.modules[package].__file__)))


def _text(value: Any) -> str:
    if type(value) in _PLAIN:
        return repr(value)
    if isinstance(value, tuple | list):
        return f"{type(value).__name__}({', '.join(map(_text, value))})"
    if type(value) is dict:
        return f"{{{', '.join(f'{_text(name)}: {_text(each)}' for name, each in value.items())}}}"
    if isinstance(value, enum.Enum):
        return f"{_named(type(value))}.{value.name}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (_text(getattr(value, each.name)) for each in dataclasses.fields(value))
        return f"{_named(type(value))}({', '.join(fields)})"
    raise UnknownCodeError(f"what it holds, {type(value).__name__}")
