"""Columns summed beside the rows on a GPU: what moves, what compiles, and the same values in the reference backend."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.reference import run_module
from inductile.backends.triton.compile_only import compile_kernel
from inductile.backends.triton.kernel_emitter import emit_kernel
from inductile.dialects import host
from inductile.passes.analysis.launch_facts import LaunchFacts
from inductile.passes.analysis.program_costs import program_costs

from .joined import FUNCTIONS, captured, joint, launches, lowered
from .support import skip_crash_of_triton

ROWS, COLUMNS = 2064, 512
#: beside which parts are short
MANY_ROWS = 8256
#: (function, target, whether sizes are dynamic): any two meet
PAIRS = [
    (name, target, (k + j) % 2 == 1)
    for k, name in enumerate(FUNCTIONS)
    for j, target in enumerate(("cuda:90", "hip:gfx942"))
]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inputs_are_read_once(name: str) -> None:
    backend, _ = captured(name, (MANY_ROWS, COLUMNS), torch.float32)
    assert backend.module is not None
    module = lowered(backend.module)
    assert len(launches(module)) == 2 and len(joint(module)) == 1
    (program,) = (op for op in module.ops if isinstance(op, host.FuncOp))
    rows = sum(1 for a in program.body.block.args if str(a.type).startswith(f"!aten.tensor<{MANY_ROWS}x{COLUMNS}x"))
    (cost,) = program_costs(module)
    own = MANY_ROWS * COLUMNS * 4
    # rows once each, the gradient of the input, and parts and vectors, which are short
    assert (rows + 1) * own <= cost.total.bytes < (rows + 1.5) * own


@pytest.mark.parametrize(("name", "target", "dynamic"), PAIRS)
def test_compiles(name: str, target: str, dynamic: bool) -> None:
    skip_crash_of_triton(name, target)
    backend, _ = captured(name, (ROWS + 3, COLUMNS), torch.bfloat16, dynamic)
    assert backend.module is not None
    module = lowered(backend.module)
    (function,) = joint(module)
    source = emit_kernel(function, LaunchFacts(module).of(function))
    assert "tl.atomic" not in source.source
    compile_kernel(source, target)


@pytest.mark.rotates(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_reference(name: str) -> None:
    """Loops that carry local buffers run in order."""
    backend, exact = captured(name, (ROWS + 3, COLUMNS), torch.float32)
    assert backend.module is not None
    module = lowered(backend.module)
    got = [g for g in run_module(module, list(backend.arguments)) if g is not None]
    for one, other in zip(got, exact, strict=True):
        assert (one.double() - other).norm() / other.norm() < 1e-5


@pytest.mark.parametrize(
    ("shape", "why"), [((512, 512), "few rows"), ((2064, 100), "short rows"), ((64, 20000), "long")]
)
def test_left_apart(shape: tuple[int, int], why: str) -> None:
    backend, _ = captured("layer_norm", shape, torch.float32)
    assert backend.module is not None
    assert not joint(lowered(backend.module)), why
