"""Fused attention that is marked to be nests gives what eager's attention gives, in float64."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser

from inductile.backends.reference import run_module
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import pipeline_string
from inductile.lowering.registry import parse_passes
from inductile.passes.manager import PassManager

DTYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
MARK = "graph-expand-products{vectors=3}"


def _type(element: str, *sizes: int) -> str:
    return f"!aten.tensor<{'x'.join(map(str, sizes))}x{element}>"


def _program(
    sizes: tuple[int, int, int, int, int], bias: tuple[int, ...] | None, element: str, options: str = ""
) -> str:
    heads, of_keys, queries, keys, width = sizes
    query, key, result = ((2, n, m, width) for n, m in ((heads, queries), (of_keys, keys), (heads, queries)))
    types = [_type(element, *each) for each in (query, key, key, result)]
    mask = "" if bias is None else f", %m: {_type(element, *bias)}"
    return f"""func.func @f(%q: {types[0]}, %k: {types[1]}, %v: {types[2]}{mask}) -> {types[3]} {{
  %y, %l, %s, %o = aten._scaled_dot_product_efficient_attention(%q, %k, %v, {"%m" if mask else "none"},
    compute_log_sumexp = false{options}) : {types[3]}, {_type("f32", 2, heads, 0)}, !aten.tensor<i64>, !aten.tensor<i64>
  func.return %y : {types[3]}
}}"""


def _lowered(text: str, passes: str) -> ModuleOp:
    module = Parser(new_context(), text).parse_module()
    PassManager(parse_passes(passes), verify_each=True).run(new_context(), module)
    return module


#: heads, heads of keys, queries, keys, width; and the sizes of what is added
CASES = [
    ((4, 4, 1, 64, 16), None),
    ((4, 2, 1, 100, 8), (2, 4, 1, 100)),
    ((4, 1, 3, 7, 8), (1, 1, 3, 7)),
    ((2, 2, 2, 130, 4), (1, 1, 1, 130)),
]


def _inputs(
    sizes: tuple[int, int, int, int, int], bias: tuple[int, ...] | None, dtype: torch.dtype
) -> list[torch.Tensor]:
    heads, of_keys, queries, keys, width = sizes
    shapes = [(2, heads, queries, width), *[(2, of_keys, keys, width)] * 2, *([] if bias is None else [bias])]
    torch.manual_seed(0)
    return [torch.randn(shape).to(dtype) for shape in shapes]


def _check(module: ModuleOp, inputs: list[torch.Tensor], scale: float | None = None) -> None:
    query, key, value, *bias = (each.double() for each in inputs)
    groups = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(groups, 1) for each in (key, value))
    exact = F.scaled_dot_product_attention(query, key, value, bias[0] if bias else None, scale=scale)
    (got,) = run_module(module, inputs)
    assert got.dtype == inputs[0].dtype
    torch.testing.assert_close(got.double(), exact, rtol=torch.finfo(got.dtype).eps, atol=1e-6)


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize(("sizes", "bias"), CASES)
def test_values(sizes: tuple[int, int, int, int, int], bias: tuple[int, ...] | None, element: str) -> None:
    module = _lowered(_program(sizes, bias, element), f"{MARK},lower-aten-to-loop")
    assert "aten._scaled" not in str(module)
    _check(module, _inputs(sizes, bias, DTYPES[element]))


#: heads of which several share keys: one part, parts that do not divide the keys, and parts that do
SHARED = [
    ((4, 2, 1, 100, 8), (2, 4, 1, 100)),
    ((8, 2, 2, 300, 8), None),
    ((4, 1, 2, 300, 4), (1, 1, 2, 300)),
    ((4, 2, 1, 512, 8), (1, 1, 1, 512)),
]
TILED = ') {implementation = "nest", tile = array<i64: 16, 64, 4, 3>} :'


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize(("sizes", "bias"), SHARED)
def test_rows_of_heads(sizes: tuple[int, int, int, int, int], bias: tuple[int, ...] | None, element: str) -> None:
    """With a tile the queries of heads that share keys are rows of one sum over a softmax, or one for each part."""
    text = _program(sizes, bias, element).replace(") :", TILED, 1)
    module = _lowered(text, "lower-aten-to-loop")
    assert "softmax_sum" in str(module) and "aten._scaled" not in str(module)
    _check(module, _inputs(sizes, bias, DTYPES[element]))
    _check(_lowered(text, pipeline_string()), _inputs(sizes, bias, DTYPES[element]))


def test_rows_that_see_no_keys() -> None:
    """A part of which no key is seen weighs nothing; queries that see none at all have zeros."""
    sizes, bias = SHARED[3]
    inputs = _inputs(sizes, bias, torch.float32)
    inputs[3].fill_(-torch.inf)[..., 70:90] = -4.0
    module = _lowered(_program(sizes, bias, "f32").replace(") :", TILED, 1), "lower-aten-to-loop")
    _check(module, inputs)
    inputs[3].fill_(-torch.inf)
    assert not run_module(module, inputs)[0].any()


def test_kernels() -> None:
    sizes, bias = CASES[1]
    text = _program(sizes, bias, "bf16", ", scale = 0.3")
    passes = pipeline_string().replace("graph-expand-products", MARK)
    _check(_lowered(text, passes), _inputs(sizes, bias, torch.bfloat16), 0.3)


def test_keys_that_are_not_seen() -> None:
    """Parts of which no key is seen, by the side of one with a very low score; and queries that see none at all."""
    sizes, bias = CASES[3]
    inputs = _inputs(sizes, bias, torch.float32)
    inputs[3].fill_(-torch.inf)[..., 70] = -1000.0
    module = _lowered(_program(sizes, bias, "f32"), f"{MARK},lower-aten-to-loop")
    _check(module, inputs)
    inputs[3].fill_(-torch.inf)
    assert not run_module(module, inputs)[0].any()


@pytest.mark.parametrize(
    ("options", "sizes"),
    [(", is_causal = true", (4, 4, 1, 64, 16)), (", dropout_p = 0.5", (4, 4, 1, 64, 16)), ("", (4, 4, 9, 64, 16))],
)
def test_left_to_the_library(options: str, sizes: tuple[int, int, int, int, int]) -> None:
    module = _lowered(_program(sizes, None, "f32", options), f"{MARK},lower-aten-to-loop")
    assert "aten._scaled" in str(module) and "implementation" not in str(module)


def test_results_that_are_read() -> None:
    """Nobody marks it, and a mark by hand is not followed."""
    text = _program((4, 4, 1, 64, 16), None, "f32").replace("compute_log_sumexp = false", "compute_log_sumexp = true")
    text = text.replace("x4x0x", "x4x32x").replace("func.return %y :", "func.return %y, %l :")
    kept = _type("f32", 2, 4, 32)
    text = text.replace("-> !aten.tensor<2x4x1x16xf32> {", f"-> (!aten.tensor<2x4x1x16xf32>, {kept}) {{")
    text = text.replace("xf32>\n}", f"xf32>, {kept}\n}}")
    for each in (text, text.replace(") :", ') {implementation = "nest"} :')):
        module = _lowered(each, f"{MARK},lower-aten-to-loop")
        assert "aten._scaled" in str(module) and "implementation" not in str(module)
