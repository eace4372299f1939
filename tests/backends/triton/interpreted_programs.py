"""Whole programs, scheduled for a GPU and launched by the host program, against their loop level."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
from xdsl.dialects.builtin import IntegerType, ModuleOp

from inductile.backends.host import build
from inductile.backends.reference import run_module
from inductile.dialects.aten.types import TensorType, torch_name
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import named_passes
from inductile.passes.kernel.gpu_blocks import GpuBlocks
from inductile.passes.manager import PassManager

from ...passes.kernel.stages import on_cpu, on_gpu
from .support import in_blocks, parse

TESTS = Path(__file__).parents[2]
FILES = (
    TESTS / "filecheck" / "lowering" / "loop_to_kernel.mlir",
    TESTS / "passes" / "kernel" / "Inputs" / "programs.mlir",
    Path(__file__).parent / "Inputs" / "programs.mlir",
)
SIZES = {"s0": 5, "s1": 37, "i0": 3}
#: what integer inputs stay below, so that they can be indices
BELOW = 5


def _parts() -> Iterator[tuple[str, str]]:
    for file in FILES:
        for part in file.read_text().split("// -----"):
            yield part.partition("func.func @")[2].partition("(")[0], part


PROGRAMS = dict(_parts())


def _input(type_: TensorType, sizes: Mapping[str, int], generator: torch.Generator) -> torch.Tensor:
    shape = [size.evaluate(sizes) for size in type_.shape]
    strides = [stride.evaluate(sizes) for stride in type_.strides]
    dtype = getattr(torch, torch_name(type_.element))
    if type_.element == IntegerType(1):
        values = torch.rand(shape, generator=generator) < 0.5
    elif not dtype.is_floating_point:
        values = torch.randint(0, BELOW, shape, generator=generator, dtype=dtype)
    else:
        values = torch.randn(shape, generator=generator).to(dtype)
    return torch.empty_strided(shape, strides, dtype=dtype).copy_(values)


def _copies(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
    return [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t) for t in tensors]


def scheduled(module: ModuleOp, blocks: GpuBlocks | None = None) -> ModuleOp:
    """The module at kernel and host level, every kernel scheduled for an H100."""
    passes = named_passes(target="cuda:90", start_at="lower-loop-to-kernel")
    passes = passes if blocks is None else in_blocks(passes, blocks)
    moved = parse(on_gpu(str(module)))
    PassManager(passes, verify_each=True).run(new_context(), moved)
    return parse(on_cpu(str(moved)))


def _check(text: str, sizes: Mapping[str, int], blocks: GpuBlocks | None = None) -> None:
    module = parse(text)
    function = next(op for op in module.ops if op.name == "func.func")
    generator = torch.Generator().manual_seed(0)
    types = function.properties["function_type"].inputs.data  # pyright: ignore
    inputs = [_input(type_, sizes, generator) for type_ in types]
    before, after = _copies(inputs), _copies(inputs)
    expected = [*run_module(module, before), *before]
    got = [*build(scheduled(module, blocks))(list(after)), *after]
    for one, other in zip(got, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5, equal_nan=True)
        assert one.stride() == other.stride()


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str) -> None:
    _check(PROGRAMS[name], SIZES)


#: rows of these programs are long, and several steps of their loops are written out
SMALL = GpuBlocks(elements=64, longest_row=8, step=16, least_step=4, column_step=32, unroll=2)


#: shorter rows of programs that would take a thousand steps
SHORTER = {"long_softmax": ("20000", "1003"), "softmax": ("4096", "515")}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program_in_small_blocks(name: str) -> None:
    _check(PROGRAMS[name].replace(*SHORTER.get(name, ("", ""))), SIZES, SMALL)


@pytest.mark.parametrize("name", [n for n, text in PROGRAMS.items() if "<s0, " in text])
@pytest.mark.parametrize("size", [0, 1, 64])
def test_dynamic_sizes(name: str, size: int) -> None:
    """The very same schedule serves other sizes."""
    _check(PROGRAMS[name], {**SIZES, "s0": size})
