"""Products on matrix units compile, without a GPU, to the instructions that these have."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.triton import emit
from inductile.backends.triton.compile_only import compile_kernel

from .products import lowered, program

TILES = "tile-rows=64 tile-columns=64 tile-depth=32 warps=4 stages=2"


def _assembly(dtype: torch.dtype, target: str, options: str = "") -> str:
    left, right = torch.empty(256, 128, dtype=dtype), torch.empty(200, 128, dtype=dtype).T
    bias = torch.empty(200, dtype=dtype)
    (kernel,) = emit(lowered(program("aten.addmm()", [bias, left, right], (256, 200)), f"{TILES} {options}"))
    return compile_kernel(kernel, target).asm["ptx" if target.startswith("cuda") else "amdgcn"]


@pytest.mark.parametrize(
    ("dtype", "target", "instruction"),
    [
        (torch.bfloat16, "cuda:90", "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"),
        (torch.float16, "cuda:80", "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
        (torch.bfloat16, "hip:gfx942", "v_mfma_f32"),
    ],
)
def test_matrix_units(dtype: torch.dtype, target: str, instruction: str) -> None:
    assembly = _assembly(dtype, target)
    assert instruction in assembly
    if target.startswith("cuda"):  # steps are on their way while others are multiplied
        assert "cp.async.cg.shared.global" in assembly


def test_float32_is_exact_unless_it_says_otherwise() -> None:
    assert "mma" not in _assembly(torch.float32, "cuda:80")
    assert "f32.tf32.tf32.f32" in _assembly(torch.float32, "cuda:80", "allow-tf32=true")
