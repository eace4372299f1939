"""`inductile.explain` as a table."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from xdsl.dialects.builtin import NameLoc, NoneAttr, StringAttr
from xdsl.parser import Parser

import inductile
from inductile.backends.explain import together
from inductile.backends.printing.locations import source_lines
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import pipeline_string
from inductile.lowering.registry import parse_passes
from inductile.machines import target_named
from inductile.passes.analysis.library_calls import library_calls
from inductile.passes.manager import PassManager


def model(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = torch.relu(x) * 2
    z = torch.softmax(y @ w, -1)
    return (z @ w).exp() + z


def test_table() -> None:
    x, w = torch.randn(4, 8), torch.randn(8, 8)
    explanation = inductile.explain(model)(x, w)
    torch.testing.assert_close(explanation.result, model(x, w))
    text = str(explanation)
    assert "inference: " in text
    (call,) = [line.split() for line in text.splitlines() if line.startswith("  aten.mm ")]
    first = model.__code__.co_firstlineno
    assert call == ["aten.mm", "ATen", "call", "2", f"{Path(__file__).name}:{first + 2},", str(first + 3)]
    (kernel,) = [line.split() for line in text.splitlines() if line.startswith("  softmax_")]
    assert kernel[-1] == f"{Path(__file__).name}:{first + 2}"
    assert "loop.generate %_softmax: " in text, "what an op computes tells it from others of its line"
    assert sum(line.split()[:5] == ["mm", "4x8x8", "float32", "-", "1"] for line in text.splitlines()) == 2
    rows = [line for line in text.splitlines() if line.startswith(f"  {Path(__file__).name}:")]
    assert any("lower-aten-to-loop" in r and "missed" in r and "aten.mm is a library's" in r for r in rows)
    assert any("loop-inline" in r and "passed" in r for r in rows)
    assert any("loop-fuse" in r for r in rows)
    lines = [int(row.split(":")[1].split()[0]) for row in rows]
    assert lines == sorted(lines)
    kinds = {(r.pass_name, r.kind) for r in explanation.remarks}
    assert ("host-reuse", "passed") in kinds


def test_a_module_stands_where_there_is_no_line() -> None:
    """All frames are torch's own; IR files and code have the name of the module too."""
    module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Sequential(torch.nn.GELU(), torch.nn.LayerNorm(8)))
    with torch.no_grad():
        explanation = inductile.explain(module)(torch.randn(4, 8))
    text = str(explanation)
    assert any(row.split()[-4:] == ["1.0", "(GELU);", "1.1", "(LayerNorm)"] for row in text.splitlines()), text
    assert any(row.split()[-2:] == ["0", "(Linear)"] and "aten.addmm" in row for row in text.splitlines()), text
    assert "// 1.0 (GELU)" in explanation.reports[0].sources["kernels.cpp"]
    known = NameLoc(StringAttr("1.0 (GELU)"), NoneAttr())
    ir = f"builtin.module {{ func.func private @f() -> () {known} }}"
    (function,) = Parser(new_context(), ir).parse_module().ops
    assert function.location == known or source_lines(function.location) == ["1.0 (GELU)"]


def test_lines_of_many_files() -> None:
    assert together([]) == ""
    assert together(["b.py:3", "a.py:20", "b.py:3", "a.py:7"]) == "a.py:7, 20; b.py:3"
    assert together([f"a.py:{n}" for n in range(9)]) == "a.py:0, 1, 2, 3, 4, 5, ..."


def test_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert str(inductile.explain(lambda x: x)(torch.ones(2))) == "nothing was compiled"


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


def test_who_computes_attention() -> None:
    given = [torch.randn(2, 3, 8, 16) for _ in range(3)]
    (call,) = inductile.explain(attention)(*given).reports[0].products
    assert call.call == "attention 6 of 8x8x16 float32"
    assert call.kernel == "flash attention, causal"
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        calls = [each.kernel for each in inductile.explain(attention)(*given).reports[0].products]
    assert any(each.startswith("none: scores are computed op by op") for each in calls)


GPU = """func.func @f(%b: !aten.tensor<30522xbf16, device = "cuda:0">,
  %x: !aten.tensor<(s0)x768xbf16, device = "cuda:0">,
  %w: !aten.tensor<768x30522xbf16, strides = [1, 768], device = "cuda:0">
) -> !aten.tensor<(s0)x30522xbf16, device = "cuda:0">
  attributes {symbols = [#sym.symbol<s0, arg = 1, dim = 0, min = 2, hint = 8192>]} {
  %0 = aten.addmm(%b, %x, %w) : !aten.tensor<(s0)x30522xbf16, device = "cuda:0">
  func.return %0 : !aten.tensor<(s0)x30522xbf16, device = "cuda:0">
}"""


@pytest.mark.parametrize(
    ("pads", "start", "microseconds"),
    [("true", "the BLAS in 4 turns", (400, 900)), ("false", "the BLAS, but", (1500, 1700))],
)
def test_products_of_a_gpu_say_how_long_they_take(pads: str, start: str, microseconds: tuple[int, int]) -> None:
    module = Parser(new_context(), GPU).parse_module()
    text = pipeline_string().replace("graph-pad-products", f"graph-pad-products{{pad-products={pads}}}")
    PassManager(parse_passes(text)).run(new_context(), module)
    (call,) = library_calls(module, target_named("cuda:90"))
    assert call.kernel.startswith(start)
    assert call.microseconds is not None and microseconds[0] < call.microseconds < microseconds[1]
