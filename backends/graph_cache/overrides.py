"""Who has changed what operators of torch mean while they are traced, so that a graph of theirs says too little.

A kernel, a formula of a gradient, a decomposition or a shape function may be replaced in a running process:
`torch.library.Library("aten", "IMPL")`, `OpOverload.py_impl`, `register_decomposition`, `register_fake`. None of it is
in a graph, and what a function does has no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch._library.simple_registry import singleton

OWN_OPERATORS = frozenset({"aten", "prims", "prim", "mkldnn", "quantized", "inductor"})
"""Namespaces of operators that come with torch. What others do may change while their name stays."""
_TORCH = str(Path(torch.__file__).parent)


def changed_operator() -> str:
    """Why an operator of torch's is not what it was, "" where all are."""
    for found in (_decompositions(), _libraries(), _python_kernels(), _fakes()):
        for name in found:
            return f"somebody has changed {name}"
    return ""


def is_of_torch(module: object) -> bool:
    """Whether a module of this name comes with torch."""
    return isinstance(module, str) and (module == "torch" or module.startswith("torch."))


def _decompositions() -> Iterator[str]:
    from torch._decomp import global_decomposition_table

    for table in global_decomposition_table.values():
        for operator, function in table.items():
            if not is_of_torch(getattr(function, "__module__", None)) and _is_own(operator):
                yield f"the decomposition of {operator}"


def _is_own(operator: Any) -> bool:
    return getattr(operator, "namespace", None) in OWN_OPERATORS


_OF_TORCH: set[str] = set()
"""What torch registers itself, found once; in `torch.library._impls` it looks like what a user registers."""


def _libraries() -> Iterator[str]:
    impls: Iterable[str] = vars(torch.library).get("_impls", ())
    for registered in impls:
        if not registered.startswith("aten/") or registered.endswith("/Meta") or registered in _OF_TORCH:
            continue
        _, name, key = registered.split("/")
        if _is_registered_by_torch(f"aten::{name}", key):
            _OF_TORCH.add(registered)
        else:
            yield f"aten.{name} for {key}"


def _is_registered_by_torch(name: str, key: str) -> bool:
    """As the dispatcher says it, which knows of each kernel the file that brought it."""
    lines = torch._C._dispatch_dump(name).splitlines()
    places = [line.partition("registered at ")[2] for line in lines if line.startswith(f"{key}:")]
    return bool(places) and places[0].startswith(_TORCH)


def _python_kernels() -> Iterator[str]:
    """Functions behind `py_impl`, of the operators that somebody has asked for so far."""
    packets = [each for each in vars(torch.ops.aten).values() if type(each) is torch._ops.OpOverloadPacket]
    overloads = [each for packet in packets for each in vars(packet).values() if type(each) is torch._ops.OpOverload]
    # first the few modules that there are: this is done for each graph, and there are thousands of functions
    functions = [function for each in overloads for function in each.py_kernels.values()]
    modules = {getattr(function, "__module__", None) for function in functions}
    others = {module for module in modules if module is not None and not is_of_torch(module)}
    for each in overloads if others else ():
        if any(getattr(function, "__module__", None) in others for function in each.py_kernels.values()):
            yield str(each)


def _fakes() -> Iterator[str]:
    registry: dict[str, Any] = getattr(singleton, "_data", {})
    for name, entry in tuple(registry.items()):
        kernel = entry.fake_impl.kernel if name.partition("::")[0] in OWN_OPERATORS else None
        if kernel is not None and not is_of_torch(getattr(kernel.func, "__module__", None)):
            yield f"the shapes of {name}"
