"""Kernel and host passes keep what a program computes: each stage is run by the interpreter and compared with the loop
level. The interpreter also checks bounds, lifetimes, undefined memory and iterations that meet."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerType, ModuleOp
from xdsl.parser import Parser

from inductile.backends.reference import run_module
from inductile.dialects.aten.types import TensorType, torch_name
from inductile.dialects.context import new_context
from inductile.lowering.registry import parse_passes
from inductile.passes.manager import PassManager

PROGRAMS = Path(__file__).parents[2] / "filecheck" / "lowering" / "loop_to_kernel.mlir"
MORE = Path(__file__).parent / "Inputs" / "programs.mlir"
STAGES = (
    "lower-loop-to-kernel",
    "kernel-deduplicate",
    "kernel-merge-loops",
    "kernel-elide-casts",
    "kernel-cse",
    "kernel-reorder",
    "kernel-collapse",
    "host-reuse",
    "kernel-tile",
    "host-plan-memory",
    "host-free",
)
SIZES = {"s0": 5, "s1": 37, "i0": 3}
#: what integer inputs stay below, so that they can be indices
BELOW = 5


def _parts() -> list[str]:
    return [part for file in (PROGRAMS, MORE) for part in file.read_text().split("// -----")]


def _name(part: str) -> str:
    return part.partition("func.func @")[2].partition("(")[0]


def _parse(text: str) -> ModuleOp:
    return Parser(new_context(), text).parse_module()


def _input(type_: TensorType, generator: torch.Generator) -> torch.Tensor:
    shape = [size.evaluate(SIZES) for size in type_.shape]
    strides = [stride.evaluate(SIZES) for stride in type_.strides]
    dtype = getattr(torch, torch_name(type_.element))
    if type_.element == IntegerType(1):
        values = torch.rand(shape, generator=generator) < 0.5
    elif not dtype.is_floating_point:
        values = torch.randint(0, BELOW, shape, generator=generator, dtype=dtype)
    else:
        values = torch.randn(shape, generator=generator).to(dtype)
    return torch.empty_strided(shape, strides, dtype=dtype).copy_(values)


def _run(module: ModuleOp, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    copies = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t) for t in inputs]
    return [*run_module(module, copies), *copies]


@pytest.mark.parametrize("part", _parts(), ids=_name)
def test_each_stage_keeps_the_answer(part: str) -> None:
    module = _parse(part)
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    generator = torch.Generator().manual_seed(0)
    inputs = [_input(type_, generator) for type_ in function.function_type.inputs if isinstance(type_, TensorType)]
    expected = _run(module, inputs)
    for done, name in enumerate(STAGES):
        PassManager(parse_passes(name), verify_each=True).run(new_context(), module)
        actual = _run(_parse(str(module)) if done % 2 else module, inputs)
        for got, wanted in zip(actual, expected, strict=True):
            torch.testing.assert_close(got, wanted, rtol=1e-5, atol=1e-5, equal_nan=True, msg=f"{name}: {{}}".format)
            assert got.stride() == wanted.stride(), name
