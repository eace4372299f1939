"""Attention of one query whose heads share keys, as rows of tiles for matrix units, in both interpreters."""

from __future__ import annotations

import pytest
import torch

from inductile.backends.host import build
from inductile.backends.reference import run_module
from inductile.backends.triton import emit
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import named_passes
from inductile.passes.manager import PassManager

from .products import for_cpu, parse, type_of


@pytest.mark.parametrize(("keys", "kernels"), [(40, 1), (256, 1), (300, 3), (512, 3)])
def test_one_query(keys: int, kernels: int) -> None:
    """One kernel where the keys are one part; else one for the parts, and what puts them together."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, heads, n, 16).bfloat16() for heads, n in ((4, 1), (2, keys), (2, keys)))
    bias = torch.where(torch.arange(keys) < keys - 5, 0.0, -torch.inf).bfloat16()[None, None, None]
    given = [query, key, value, bias]
    head = ", ".join(f"%a{k}: {type_of(each)}" for k, each in enumerate(given))
    result = type_of(query)
    text = f"""func.func @f({head}) -> {result} {{
  %y, %l, %s, %o = aten._scaled_dot_product_efficient_attention(%a0, %a1, %a2, %a3, compute_log_sumexp = false) :
    {result}, !aten.tensor<2x4x0xf32, device = "cuda:0">, !aten.tensor<i64>, !aten.tensor<i64>
  func.return %y : {result}
}}"""
    module = parse(text)
    PassManager(named_passes("default", "cuda:90")).run(new_context(), module)
    sources = [each.source for each in emit(module)]
    assert len(sources) <= kernels and sum("tl.dot(" in each for each in sources) == 1
    module = for_cpu(module)
    wide = [
        each.double().repeat_interleave(2 // each.shape[1] * 2 if each is not query else 1, 1) for each in given[:3]
    ]
    exact = torch.nn.functional.scaled_dot_product_attention(wide[0], wide[1], wide[2], bias.double())
    for run in (build(module), lambda given: run_module(module, given)):
        (got,) = run(list(given))
        assert got.shape == query.shape and (got.double() - exact).norm() <= 4e-3 * exact.norm()
