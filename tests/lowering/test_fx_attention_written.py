"""`scaled_dot_product_attention` written out beside the call: the same values, strides and hidden rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.fx import GraphModule

import inductile.lowering.fx_attention_written as fx_attention_written
from inductile.lowering.fx_attention_masks import prove_attention_masks
from inductile.lowering.fx_attention_written import written_out
from inductile.lowering.fx_either import EITHER
from inductile.machines import Library
from inductile.passes.common.choices import Question, timed_by


class _Timer:
    """Somebody who would measure."""

    def times(self, questions: Sequence[Question]) -> Sequence[Mapping[str, float]]:
        raise NotImplementedError


def _given(heads: int = 4, lies_as_images: bool = False) -> list[torch.Tensor]:
    torch.manual_seed(0)
    given = [torch.randn(2, count, 12, 16).bfloat16() for count in (4, heads, heads)]
    return [x.transpose(1, 2).contiguous().transpose(1, 2) for x in given] if lies_as_images else given


def _window() -> torch.Tensor:
    place = torch.arange(12)
    return (place <= place[:, None]) & (place[:, None] - place < 4)


@pytest.mark.parametrize("lies_as_images", [False, True])
@pytest.mark.parametrize("heads", [4, 2, 1])
@pytest.mark.parametrize("added", [False, True])
def test_values_and_strides(heads: int, lies_as_images: bool, added: bool) -> None:
    q, k, v = _given(heads, lies_as_images)
    seen = _window()
    seen[5] = False  # a row that sees nothing is 0
    mask = torch.randn(12, 12).bfloat16() if added else seen
    found = written_out(q, k, v, mask, 0.3)
    wide = mask.double() if added else mask
    exact = F.scaled_dot_product_attention(*(x.double() for x in (q, k, v)), attn_mask=wide, scale=0.3, enable_gqa=True)
    assert found.stride() == torch.empty_like(q).stride()
    assert float((found.double() - exact).norm()) <= 0.01 * float(exact.norm())
    assert added or not found[:, :, 5].any()


def _called(function: Any, given: list[torch.Tensor], monkeypatch: pytest.MonkeyPatch) -> int:
    """How many choices the pass leaves open."""
    monkeypatch.setattr(fx_attention_written, "library_of", lambda device: Library(reads_mask_rows=True))
    found: list[int] = []

    def backend(graph: GraphModule, inputs: list[Any]) -> Any:
        prove_attention_masks(graph, inputs)
        graph.graph.lint()
        graph.recompile()
        found.append(len(graph.graph.find_nodes(op="call_function", target=EITHER)))
        return graph

    torch._dynamo.reset()
    with timed_by(_Timer()):
        got = torch.compile(function, backend=backend)(*given)
    torch.testing.assert_close(got, function(*given), rtol=0.02, atol=0.02)
    return found[0]


def test_where_it_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    def windowed(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=_window())

    def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v)

    assert _called(windowed, _given(), monkeypatch) == 1
    assert _called(plain, _given(), monkeypatch) == 0
    assert _called(windowed, [x.requires_grad_() for x in _given()], monkeypatch) == 0
    assert _called(windowed, [x.float() for x in _given()], monkeypatch) == 0
