"""Attention whose keys and values have fewer heads or batches than its queries: read where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import inductile.lowering.fx_attention as fx_attention
import inductile.lowering.fx_attention_heads as fx_attention_heads
from inductile.lowering.fx_attention import recognise_attention
from inductile.lowering.fx_attention_heads import group_attention_heads
from inductile.lowering.fx_attention_masks import prove_attention_masks
from inductile.machines import Library

Attention = Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]
Shape = tuple[int, int]


@pytest.fixture(autouse=True)
def _on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    library = Library(keeps_nan=True, groups_heads=True)
    for module in (fx_attention, fx_attention_heads):
        monkeypatch.setattr(module, "library_of", lambda device: library)
    torch._dynamo.reset()
    yield


def plain(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v)


def causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
    return F.scaled_dot_product_attention(q, k, v, mask)


def biased(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, k, v, k[..., 0][:, :, None] / 4, scale=0.2)


def written_out(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT / 4).softmax(-1) @ v


def tensors(shapes: list[Shape], dtype: torch.dtype = torch.bfloat16) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(*shape, 12, 16, dtype=dtype) for shape in shapes]


def compiled(function: Attention, given: list[torch.Tensor], dynamic: bool = False) -> tuple[Any, Any]:
    """The result, and the arguments of the attention."""
    calls: list[Any] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Any]) -> Any:
        for each in (recognise_attention, prove_attention_masks, group_attention_heads):
            each(graph, inputs)
        graph.graph.lint()
        graph.recompile()
        calls.extend(n for n in graph.graph.nodes if n.target is F.scaled_dot_product_attention)
        return graph

    for x in given if dynamic else ():
        torch._dynamo.mark_dynamic(x, 2)
        if x.shape[0] > 1:
            torch._dynamo.mark_dynamic(x, 0)
    result = torch.compile(function, backend=backend)(*given)
    return result, calls[0] if calls else None


def shapes_of(call: Any) -> list[Shape]:
    return [tuple(call.kwargs[name].meta["example_value"].shape[:2]) for name in ("query", "key", "value")]


def close(got: torch.Tensor, function: Attention, given: list[torch.Tensor]) -> None:
    exact = function(*(x.double() for x in given))
    assert (got.double() - exact).norm() <= 2 * (function(*given).double() - exact).norm() + 1e-6


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("function", [plain, causal, biased, written_out])
def test_one_head_of_keys_is_a_group(function: Attention, dynamic: bool) -> None:
    given = tensors([(3, 4), (3, 1), (3, 1)])
    got, call = compiled(function, given, dynamic)
    assert call.kwargs["enable_gqa"] and not any("expand" in str(n.target) for n in call.graph.nodes)
    close(got, function, given)


@pytest.mark.parametrize("function", [plain, causal])
@pytest.mark.parametrize(
    ("shapes", "dtype"),
    [
        ([(3, 4), (3, 1), (3, 1)], torch.float32),  # no kernel groups heads of these
        ([(3, 4), (1, 4), (1, 4)], torch.bfloat16),
        ([(3, 4), (3, 4), (3, 1)], torch.bfloat16),
        ([(3, 1), (3, 4), (3, 4)], torch.bfloat16),
        ([(1, 4), (3, 1), (1, 1)], torch.float32),
    ],
)
def test_what_else_broadcasts_is_read_by_strides(function: Attention, shapes: list[Shape], dtype: torch.dtype) -> None:
    given = tensors(shapes, dtype)
    got, call = compiled(function, given)
    assert "enable_gqa" not in call.kwargs
    assert shapes_of(call) == [(3, 4)] * 3
    close(got, function, given)
    torch._dynamo.reset()
    got, call = compiled(function, given, dynamic=True)
    assert len({*map(str, shapes_of(call))}) == 1
    close(got, function, given)


def test_a_mask_of_another_type_stays() -> None:
    """Kernels that fuse attention would take it for one of the queries' type."""
    given = tensors([(3, 4), (3, 1), (3, 1)])
    wide = torch.randn(12, 12)
    got, call = compiled(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, wide), given)
    assert "enable_gqa" not in call.kwargs
    q, k, v = given
    torch.testing.assert_close(got, F.scaled_dot_product_attention(q, k, v, wide))


@pytest.mark.parametrize("shapes", [[(3, 4)] * 3, [(1, 1)] * 3])
def test_what_does_not_broadcast_stays(shapes: list[Shape]) -> None:
    _, call = compiled(plain, tensors(shapes))
    assert len(call.args) == 3 and not call.kwargs


def test_gradients() -> None:
    given = [x.requires_grad_() for x in tensors([(3, 4), (1, 1), (3, 1)], torch.float32)]
    got, call = compiled(causal, given)
    assert shapes_of(call) == [(3, 4)] * 3
    of_got = torch.autograd.grad(got.sum(), given)
    torch.testing.assert_close(of_got, torch.autograd.grad(causal(*given).sum(), given))
