"""Launches for a GPU that `kernel-merge-launches` makes one, as programs that run on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from xdsl.dialects.builtin import ModuleOp, StringAttr

from inductile.dialects import host, kernel
from inductile.dialects.aten.types import TensorType
from inductile.dialects.context import new_context
from inductile.lowering.registry import parse_passes
from inductile.passes.kernel.cost import Sizes
from inductile.passes.kernel.launches import launch_sizes
from inductile.passes.kernel.strategy_gpu import schedule
from inductile.passes.kernel.targets import GpuTarget
from inductile.passes.manager import PassManager

from .support import parse

GPU = ', device = "cuda:0"'


def _parts() -> Iterator[tuple[str, str]]:
    for part in (Path(__file__).parent / "Inputs" / "launches.mlir").read_text().split("// -----"):
        yield part.partition("host.func @")[2].partition("(")[0], part


PROGRAMS = dict(_parts())


def plain(name: str) -> ModuleOp:
    """A program of several launches."""
    return parse(PROGRAMS[name].replace(GPU, ""))


def merged(name: str) -> ModuleOp:
    """The same with one launch, its kernel scheduled for an H100."""
    module = parse(PROGRAMS[name])
    PassManager(parse_passes('kernel-merge-launches{target="cuda:90"}')).run(new_context(), module)
    module = parse(str(module).replace(GPU, ""))
    sizes = launch_sizes(module)
    for function in list(module.ops):
        if isinstance(function, kernel.FuncOp):
            schedule(function, GpuTarget("cuda:90"), sizes.get(function.sym_name.data, Sizes()))
            function.properties["target"] = StringAttr("cuda:90")
    PassManager(parse_passes("host-free")).run(new_context(), module)
    module.verify()
    return module


def inputs_of(module: ModuleOp, size: int) -> list[torch.Tensor]:
    """Random tensors for a program's arguments."""
    generator = torch.Generator().manual_seed(0)
    function = next(op for op in module.ops if isinstance(op, host.FuncOp))
    types = [argument.type for argument in function.body.block.args]
    shapes = [[extent.evaluate({"s0": size}) for extent in t.shape] for t in types if isinstance(t, TensorType)]
    return [torch.randn(shape, generator=generator) for shape in shapes]
