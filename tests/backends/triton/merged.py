"""Launches for a GPU that `kernel-merge-launches` makes one, as programs that run on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import torch
from xdsl.dialects.builtin import ModuleOp

from inductile.dialects import host
from inductile.dialects.aten.types import TensorType
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import named_passes
from inductile.passes.manager import PassManager

from ...passes.kernel.stages import on_cpu
from .support import parse


def _parts() -> Iterator[tuple[str, str]]:
    for part in (Path(__file__).parent / "Inputs" / "launches.mlir").read_text().split("// -----"):
        yield part.partition("host.func @")[2].partition("(")[0], part


PROGRAMS = dict(_parts())


def plain(name: str) -> ModuleOp:
    """A program of several launches."""
    return parse(on_cpu(PROGRAMS[name]))


def merged(name: str) -> ModuleOp:
    """The same with one launch, its kernel scheduled for an H100."""
    module = parse(PROGRAMS[name])
    PassManager(named_passes(target="cuda:90", start_at="kernel-merge-launches")).run(new_context(), module)
    return parse(on_cpu(str(module)))


def inputs_of(module: ModuleOp, size: int) -> list[torch.Tensor]:
    """Random tensors for a program's arguments."""
    generator = torch.Generator().manual_seed(0)
    function = next(op for op in module.ops if isinstance(op, host.FuncOp))
    types = [argument.type for argument in function.body.block.args]
    shapes = [[extent.evaluate({"s0": size}) for extent in t.shape] for t in types if isinstance(t, TensorType)]
    return [torch.randn(shape, generator=generator) for shape in shapes]
