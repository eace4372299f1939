"""Products whose second factor stands first, for matrix units read that one from registers, in both interpreters."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.host import build
from inductile.backends.reference import run_module
from inductile.backends.triton import emit

from .products import NAMES, for_cpu, lowered


def program(rows: int, columns: int, depth: int, name: str) -> str:
    """A linear layer with weights of 8 bits and a scale a column, in a tile of 32 rows and 16 columns, turned."""
    x, y = f"!aten.tensor<{rows}x{depth}x{name}", f"!aten.tensor<{rows}x{columns}x{name}"
    weight = f"!aten.tensor<{columns}x{depth}xi8"
    turned = f"!aten.tensor<{depth}x{columns}xi8, strides = [1, {depth}]"
    place, dtype = ', device = "cuda:0">', "torch.bfloat16" if name == "bf16" else "torch.float16"
    tile = "array<i64: 32, 16, 16, 1, 1, 0, 0, 0, 0, 0, 1>"
    scales = f"!aten.tensor<{columns}x{name}"
    return f"""func.func @f(%x: {x}{place}, %w: {weight}{place}, %s: {scales}{place}) -> {y}{place} {{
  %t = aten.t(%w) : {turned}{place}
  %c = aten._to_copy(%t, dtype = {dtype}) : {turned.replace("i8", name)}{place}
  %p = aten.mm(%x, %c) {{implementation = "nest", precision = "{name}", tile = {tile}}} : {y}{place}
  %y = aten.mul.Tensor(%p, %s) : {y}{place}
  func.return %y : {y}{place}
}}"""


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("sizes", [(32, 64, 32), (50, 37, 70)])
def test_weights_of_bytes(sizes: tuple[int, int, int], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    rows, columns, depth = sizes
    weight = torch.randint(-128, 128, (columns, depth), dtype=torch.int8)
    weight[0, :3] = torch.tensor([-128, 127, -1])
    x, scales = torch.randn(rows, depth).to(dtype), torch.rand(columns).to(dtype)
    module = lowered(program(rows, columns, depth, NAMES[dtype]), "")
    (source,) = [each.source for each in emit(module)]
    first, second = source.index("nvidia.half_of_int8"), source.index("tl.load(x")
    assert "tl.dot(" in source and "nvidia.settled(" in source and first < second
    exact = (x.double() @ weight.double().t()) * scales.double()
    for run in (build(for_cpu(module)), lambda given: run_module(for_cpu(module), given)):
        (got,) = run([x, weight, scales])
        assert (got.double() - exact).norm() <= 4e-3 * exact.norm()


PAIR = """func.func @f(%x: !aten.tensor<48x64xbf16, device = "cuda:0">, %w: !aten.tensor<32x64xi8, device = "cuda:0">, %u: !aten.tensor<32x64xi8, device = "cuda:0">) -> !aten.tensor<48x32xbf16, device = "cuda:0"> {
  %t = aten.t(%w) : !aten.tensor<64x32xi8, strides = [1, 64], device = "cuda:0">
  %c = aten._to_copy(%t, dtype = torch.bfloat16) : !aten.tensor<64x32xbf16, strides = [1, 64], device = "cuda:0">
  %p = aten.mm(%x, %c) {implementation = "nest", precision = "bf16", tile = TILE} : !aten.tensor<48x32xbf16, device = "cuda:0">
  %v = aten.t(%u) : !aten.tensor<64x32xi8, strides = [1, 64], device = "cuda:0">
  %d = aten._to_copy(%v, dtype = torch.bfloat16) : !aten.tensor<64x32xbf16, strides = [1, 64], device = "cuda:0">
  %q = aten.mm(%x, %d) {implementation = "nest", precision = "bf16", tile = TILE} : !aten.tensor<48x32xbf16, device = "cuda:0">
  %g = aten.relu(%p) : !aten.tensor<48x32xbf16, device = "cuda:0">
  %y = aten.mul.Tensor(%g, %q) : !aten.tensor<48x32xbf16, device = "cuda:0">
  func.return %y : !aten.tensor<48x32xbf16, device = "cuda:0">
}"""  # noqa: E501 - a program


@pytest.mark.parametrize("resident", [0, 2])
def test_two_products_that_meet_are_kernels_of_their_own(resident: int) -> None:
    """Registers hold the sums of one, and the other's result waits in memory; a copy engine brings tiles of both."""
    torch.manual_seed(0)
    x, (w, u) = torch.randn(48, 64).bfloat16(), torch.randint(-128, 128, (2, 32, 64), dtype=torch.int8)
    module = lowered(PAIR.replace("TILE", f"array<i64: 32, 16, 16, 1, 1, 0, {resident}, 0, 0, 0, 1>"), "")
    sources = [each.source for each in emit(module)]
    assert [source.count("tl.dot(") for source in sources] == [1, 1]
    assert all(("_boxes.load(" in source) == bool(resident) for source in sources)
    exact = torch.relu(x.double() @ w.double().t()) * (x.double() @ u.double().t())
    for run in (build(for_cpu(module)), lambda given: run_module(for_cpu(module), given)):
        (got,) = run([x, w, u])
        assert (got.double() - exact).norm() <= 8e-3 * exact.norm()


def test_what_computes_its_rows_is_a_kernel_of_its_own() -> None:
    """A copy engine brings the rows as they lie; computed where they are read, they would be so in each column."""
    torch.manual_seed(0)
    x, (w, u) = torch.randn(48, 64).bfloat16(), torch.randint(-128, 128, (2, 32, 64), dtype=torch.int8)
    text = PAIR.replace("TILE", "array<i64: 32, 16, 16, 1, 1, 0, 2, 0, 0, 0, 1>")
    made = '  %r = aten.mul.Tensor(%x, %a) : !aten.tensor<48x64xbf16, device = "cuda:0">\n  %t = '
    text = text.replace("@f(", '@f(%a: !aten.tensor<64xbf16, device = "cuda:0">, ')
    module = lowered(text.replace("aten.mm(%x", "aten.mm(%r").replace("  %t = ", made), "")
    sources = [each.source for each in emit(module)]
    assert [source.count("_boxes.load(") > 0 for source in sources] == [False, True, True]
    scale = torch.rand(64).bfloat16()
    rows = (x * scale).double()
    exact = torch.relu(rows @ w.double().t()) * (rows @ u.double().t())
    for run in (build(for_cpu(module)), lambda given: run_module(for_cpu(module), given)):
        (got,) = run([scale, x, w, u])
        assert (got.double() - exact).norm() <= 8e-3 * exact.norm()
