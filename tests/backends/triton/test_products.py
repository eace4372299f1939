"""Products on matrix units compile, without a GPU, to the instructions that these have."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.triton import emit
from inductile.backends.triton.compile_only import compile_kernel
from inductile.backends.triton.targets import triton_target
from inductile.backends.triton.variants import Variant, request_of
from inductile.dialects.kernel import DESCRIPTOR

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


def test_a_copy_engine_brings_boxes() -> None:
    """Tiles come as a whole, and not element by element; where an address is not aligned they come as before."""
    left, right = torch.empty(256, 128, dtype=torch.bfloat16), torch.empty(200, 128, dtype=torch.bfloat16).T
    (kernel,) = emit(lowered(program("aten.mm()", [left, right], (256, 200)), f"{TILES} boxes=true"))
    compiled = compile_kernel(kernel, "cuda:90")
    assert "cp.async.bulk.tensor" in compiled.asm["ptx"] and "cp.async.cg" not in compiled.asm["ptx"]
    assert compiled.metadata.global_scratch_size == kernel.descriptor_bytes == 2 * DESCRIPTOR
    request = request_of(kernel, triton_target("cuda:90"), Variant(unaligned=frozenset((0,))))
    assert request.constants["BOXES"] is False


def test_float32_is_exact_unless_it_says_otherwise() -> None:
    assert "mma" not in _assembly(torch.float32, "cuda:80")
    assert "f32.tf32.tf32.f32" in _assembly(torch.float32, "cuda:80", "allow-tf32=true")


def test_both_products_of_attention() -> None:
    """They are asynchronous, keys and values are on their way meanwhile, and each weight takes one instruction."""
    kind, scores = '!aten.tensor<2x256x64xbf16, device = "cuda:0">', '!aten.tensor<2x256x256xbf16, device = "cuda:0">'
    text = f"""func.func @f(%q: {kind}, %k: {kind}, %v: {kind}) -> {kind} {{
      %t = aten.permute(%k, dims = [0, 2, 1]) : {kind.replace("256x64xbf16", "64x256xbf16, strides = [16384, 1, 64]")}
      %s = aten.bmm(%q, %t) : {scores}
      %p = aten._softmax(%s, dim = -1, half_to_float = false) : {scores}
      %o = aten.bmm(%p, %v) : {kind}
      func.return %o : {kind}
    }}"""
    (kernel,) = emit(lowered(text, ""))
    assembly = compile_kernel(kernel, "cuda:90").asm["ptx"]
    assert assembly.count("wgmma.mma_async") > 4 and "cp.async.cg.shared.global" in assembly
    assert assembly.count("ex2.approx") < 64 + 16  # a thread has 64 of 128 x 64 weights
