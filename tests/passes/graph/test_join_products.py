"""Products of one matrix as one: `graph-join-products` keeps values, and what reads them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import inductile
from inductile.lowering.fx_packed_weights import packed_elements
from inductile.lowering.pipeline import pipeline_string

ALWAYS: dict[str, Any] = {
    "freezing": True,
    "pipeline": pipeline_string().replace("graph-join-products", "graph-join-products{always=true}"),
}


class Layer(nn.Module):
    """Attention whose heads read views of products, and gates; `turned` products have weights as `x @ w` has."""

    def __init__(self, bias: bool, turned: bool) -> None:
        super().__init__()
        self.turned = turned
        self.heads = nn.ModuleList(nn.Linear(32, n, bias=bias) for n in (32, 16, 16))
        self.gates = nn.ModuleList(nn.Linear(32, 64, bias=bias) for _ in range(2))
        self.down = nn.Linear(64, 32, bias=bias)

    def _product(self, layer: nn.Module, x: torch.Tensor) -> torch.Tensor:
        assert isinstance(layer, nn.Linear)
        if not self.turned:
            return layer(x)
        y = x @ layer.weight.reshape(layer.in_features, layer.out_features)
        return y if layer.bias is None else y + layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, _ = x.shape
        q, k, v = (self._product(each, x).view(rows, length, -1, 8).transpose(1, 2) for each in self.heads)
        k, v = (each.repeat_interleave(2, dim=1) for each in (k, v))
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + y.transpose(1, 2).reshape(rows, length, -1)
        gate, up = (self._product(each, x) for each in self.gates)
        return x + self._product(self.down, nn.functional.silu(gate) * up)


@pytest.mark.parametrize(
    ("bias", "turned", "dtype", "dynamic"),
    [(True, False, torch.float32, True), (False, True, torch.bfloat16, False)],
)
def test_queries_keys_values_and_gates(bias: bool, turned: bool, dtype: torch.dtype, dynamic: bool) -> None:
    torch.manual_seed(0)
    model, x = Layer(bias, turned).eval().to(dtype), torch.randn(2, 12, 32, dtype=dtype)
    with torch.no_grad():
        exact = Layer(bias, turned).double()
        exact.load_state_dict(model.double().state_dict())
        model.to(dtype)
        wanted = exact(x.double())
        explained = inductile.explain(model, options=ALWAYS, dynamic=dynamic)(x)
        (report,) = explained.reports
        joined = [r for r in explained.remarks if r.pass_name == "graph-join-products" and r.kind == "passed"]
        assert len(joined) == 2
        assert sum(n for name, n in report.aten_calls.items() if "mm" in name) == 3
        found, eager = ((y.double() - wanted).norm() for y in (explained.result, model(x)))
        assert found <= 2 * eager
        assert (explained.result.stride(), explained.result.dtype) == (x.stride(), dtype)


def test_small_products_are_not_joined() -> None:
    model, x = Layer(True, False).eval(), torch.randn(2, 12, 32)
    with torch.no_grad():
        explained = inductile.explain(model, options={"freezing": True})(x)
    told = [r for r in explained.remarks if r.pass_name == "graph-join-products"]
    assert told and {r.kind for r in told} == {"missed"}
    assert any("no rates" in r.reason or "small" in r.reason for r in told)


class Gates(nn.Module):
    """Gates of a width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gates = nn.ModuleList(nn.Linear(width, 2 * width, bias=False) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = (each(x) for each in self.gates)
        return nn.functional.silu(gate) * up


@pytest.mark.skipif("bf16" not in packed_elements(), reason="needs a processor with instructions for bfloat16")
@pytest.mark.parametrize(("rows", "calls"), [(1, 0), (2, 1), (8, 1), (200, 2)])
def test_products_of_few_rows_are_joined_on_a_cpu(rows: int, calls: int) -> None:
    torch.manual_seed(0)
    model = Gates(256).eval()
    x = torch.randn(rows, 256).bfloat16()
    with torch.no_grad():
        wanted = model.bfloat16().float()(x.float())
        model.bfloat16()
        explained = inductile.explain(model, options={"freezing": True})(x)
        (report,) = explained.reports
        assert report.aten_calls.get("inductile::packed_product", 0) == calls
        found, eager = ((y.float() - wanted).norm() for y in (explained.result, model(x)))
        assert found <= 2 * eager
        never = inductile.explain(model, options={"freezing": True, "packed_weights": "never"})(x)
        assert not any(r.pass_name == "graph-join-products" and r.kind == "passed" for r in never.remarks)
