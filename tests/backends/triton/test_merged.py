"""Launches that are one on a GPU do what they did apart, and compile for every target."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.reference import run_module
from inductile.backends.triton.compile_only import compile_kernel
from inductile.backends.triton.kernel_emitter import emit_kernel
from inductile.dialects import host, kernel
from inductile.passes.analysis.launch_facts import LaunchFacts

from .merged import PROGRAMS, inputs_of, merged, plain


@pytest.mark.parametrize("size", [0, 1, 12, 700])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_stay(name: str, size: int) -> None:
    before, after = plain(name), merged(name)
    inputs = inputs_of(before, size)
    for expected, got in zip(run_module(before, inputs), run_module(after, inputs), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("target", ["cuda:90", "hip:gfx942"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_one_launch_of_programs_side_by_side(name: str, target: str) -> None:
    module = merged(name)
    (program,) = (op for op in module.ops if isinstance(op, host.FuncOp))
    assert sum(isinstance(op, host.LaunchOp) for op in program.body.block.ops) == 1
    (function,) = (op for op in module.ops if isinstance(op, kernel.FuncOp))
    source = emit_kernel(function, LaunchFacts(module).of(function))
    nests = sum(isinstance(op, kernel.ForOp) for op in function.body.block.ops)
    assert source.programs({"s0": 12}) >= nests == source.source.count("if pid < ")
    compile_kernel(source, target)
