"""A compiled graph as data: texts, names of kernels in their cache, and recipes for the objects that the texts name."""

from __future__ import annotations

import ctypes
import functools
import pickle
import struct
import sys
import zlib
from collections.abc import Mapping
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType
from typing import TYPE_CHECKING, Any

import torch

from ...lowering.fx_placed_products import PlacedProduct
from ..c_like.calls import Failure
from ..c_like.launch import CpuLauncher
from ..c_like.library import LoadedKernel, entry_name, kernel_key
from ..c_like.toolchain import find_compiler
from ..cpp.language import CPP
from ..host import runtime
from ..host.arena import Arena
from ..host.copies import OnCopies
from ..host.executable import HostProgram
from .frozen import FrozenKernel, FrozenProgram, Recipe, code_bytes
from .identity import code_version, processor_digest
from .key import NotCacheableError
from .thaw import FrozenGraph

if TYPE_CHECKING:
    from ..runnable import RunnableGraph
    from ..triton.bound import BoundKernel
    from ..triton.frozen import FrozenTriton, Launches

_PLAIN = (
    bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format,
)  # fmt: skip
_FOREIGN: type = type(ctypes.CFUNCTYPE(None)()).__mro__[1]
"""What all foreign functions are."""
_MOST_BYTES = 64 << 20
"""Of the tensors that a graph holds; beyond, an entry would cost more than it saves."""


def freeze(graph: RunnableGraph, embed: bool) -> FrozenGraph:
    """The data of a graph, with the machine code of its kernels or without.

    Raises NotCacheableError for what has no recipe.
    """
    program = graph.program
    if not isinstance(program, HostProgram):
        raise NotCacheableError(f"its program is a {type(program).__name__}")
    if sum(c.numel() * c.element_size() for c in graph.constants) > _MOST_BYTES:
        raise NotCacheableError("it holds large tensors")
    if any(type(c) is not torch.Tensor or c.layout is not torch.strided for c in graph.constants):
        raise NotCacheableError("it holds a tensor of another kind")
    constants = tuple(c.detach().clone() for c in graph.constants)
    if any(one.stride() != other.stride() for one, other in zip(constants, graph.constants, strict=True)):
        raise NotCacheableError("it holds a tensor whose elements share memory")
    kernels, on_gpu = _kernels(program)
    frozen = {name: _kernel(each) for name, each in kernels.items()}
    names = _Names({each.entry: name for name, each in kernels.items()}, on_gpu)
    report = replace(graph.report, sources={}, is_loaded=True)
    texts = {name: text for name, text in program.sources.items() if name != "program.py"}
    cold = zlib.compress(
        pickle.dumps((texts, {name: replace(each.source, language=None) for name, each in kernels.items()})), 1
    )
    return FrozenGraph(
        program=_program(program, names),
        kernels=frozen,
        cold=cold,
        constants=constants,
        arrangements=tuple(graph.arrangements),
        outputs=graph.outputs,
        report=report,
        region=graph.region,
        nvtx=graph.nvtx,
        made_by=code_version(),
        processor=processor_digest(),
        libraries={each.library.name: each.library.read_bytes() for each in kernels.values()} if embed else {},
        on_gpu=names.frozen(),
    )


def _kernels(program: HostProgram) -> tuple[dict[str, LoadedKernel], dict[str, BoundKernel]]:
    """The kernels of a program by name: those of the CPU, and those of a GPU. NotCacheableError for others."""
    kernels: dict[str, LoadedKernel] = {}
    on_gpu: dict[str, BoundKernel] = {}
    for launcher in program.launchers.values():
        if isinstance(launcher, CpuLauncher) and not launcher.checked and launcher.language is CPP:
            kernels |= launcher.kernels
            continue
        from ..triton.launch import TritonLauncher, run_kernel

        if not isinstance(launcher, TritonLauncher) or launcher.needs_tensors:
            raise NotCacheableError("its kernels are written in another language, or run in an interpreter")
        on_gpu |= launcher.kernels
        several = run_kernel()
        kernels |= {} if several is None else {several.source.name: several}
    return kernels, on_gpu


class _Names:
    """How the texts of a program name kernels: those of the CPU by address, those of a GPU by object."""

    def __init__(self, entries: Mapping[int, str], on_gpu: Mapping[str, BoundKernel]) -> None:
        self.entries = entries
        self._on_gpu = on_gpu
        self._launches: Launches | None = None
        if on_gpu:
            from ..triton.frozen import Launches

            self._launches = Launches(on_gpu)

    def recipe(self, name: str, value: Any) -> Recipe | None:
        """The recipe of what belongs to a GPU; None for anything else."""
        if self._launches is None:
            return None
        from ..triton.frozen import function_recipe

        devices = {bound.target.device for bound in self._on_gpu.values()}
        return self._launches.recipe(name, value) or function_recipe(value, devices)

    def frozen(self) -> dict[str, FrozenTriton]:
        """The kernels of a GPU as data."""
        if not self._on_gpu:
            return {}
        from ..triton.frozen import freeze_kernel

        return {name: freeze_kernel(bound) for name, bound in self._on_gpu.items()}


def _kernel(loaded: LoadedKernel) -> FrozenKernel:
    return FrozenKernel(kernel_key(loaded.source, find_compiler(CPP)), loaded.library.name, entry_name(loaded.source))


def _program(program: HostProgram, names: _Names) -> FrozenProgram:
    objects = program.objects
    tables = {ctypes.addressof(v[0]): name for name, v in objects.items() if name.startswith("table")}
    tables |= {v.table.address: name for name, v in objects.items() if name.startswith("resume")}
    recipes: dict[str, Recipe] = {}
    for name, value in objects.items():
        if name.startswith("address"):
            recipes[name] = ("address", tables[value])
        elif name.startswith("table"):
            recipes[name] = ("table", _table(value, names.entries))
        else:
            recipes[name] = names.recipe(name, value) or _recipe(value, names.entries)
    parts = {name: _program(part, names) for name, part in program.parts.items()}
    kept: dict[str, FrozenProgram] = {}
    for name, each in program.kept.items():
        if each.program is None:
            raise NotCacheableError("it keeps results of a function that is not its own")
        kept[name] = _program(each.program, names)
    return FrozenProgram(
        program.source, program.watched, recipes, parts, program.called, code_bytes(program.code), kept
    )


def _recipe(value: Any, entries: Mapping[int, str]) -> Recipe:
    """How an object is made again."""
    if type(value) in _PLAIN:
        return ("plain", value)
    if isinstance(value, torch._ops.OpOverload):
        return ("op", (value.namespace, value._opname, value._overloadname))
    if isinstance(value, Arena):
        return ("arena", None)
    if isinstance(value, Failure):
        return ("failure", value.errors)
    if isinstance(value, PlacedProduct):
        return ("placed", value.name)
    if isinstance(value, OnCopies):
        return ("copies", (value.name, value.written))
    if isinstance(value, _FOREIGN):
        address = ctypes.cast(value, ctypes.c_void_p).value
        if address is not None and address in entries:
            return ("entry", entries[address])
    owner = getattr(value, "__self__", None)
    if isinstance(owner, struct.Struct) and value.__name__ == "pack":
        return ("pack", owner.format)
    place = _place(value)
    if place is not None:
        return ("object", place)
    raise NotCacheableError(f"its program names {value!r:.80}")


def _table(table: Any, entries: Mapping[int, str]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Kernel and places of the arguments of each launch; see `launch_table`."""
    records, arrays = table
    return tuple((entries[records[3 * k]], tuple(array[: records[3 * k + 1]])) for k, array in enumerate(arrays))


def _place(value: Any) -> tuple[str, str] | None:
    """Module and name under which a function of torch, of Python's operators, or of ours, is found again."""
    name = getattr(value, "__name__", None)
    if not isinstance(name, str):
        return None
    candidates = [(runtime.__name__, known) for known, object_ in vars(runtime).items() if object_ is value]
    if isinstance(value, BuiltinFunctionType):
        candidates += [("torch._C", f"_VariableFunctions.{name}"), (str(getattr(value, "__module__", None)), name)]
    if isinstance(value, FunctionType):
        candidates.append((value.__module__, value.__qualname__))
    candidates += [("torch", f"Tensor.{name}")]
    ours = __name__.partition(".")[0]
    for module, path in candidates:
        if module.partition(".")[0] not in ("torch", "_operator", "math", ours) or module not in sys.modules:
            continue
        try:
            found = functools.reduce(getattr, path.split("."), sys.modules[module])
        except AttributeError:
            continue
        if found is value:
            return module, path
    return None
