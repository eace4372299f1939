"""Patterns on real graphs: what they replace, what they leave alone, and that the values stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from inductile.errors import UserError
from inductile.passes.graph._pattern import Pattern, either
from inductile.passes.graph.patterns import PATTERNS, chosen_patterns
from inductile.passes.remarks import Remark, collecting


def _run(
    function: Callable[..., Any], *inputs: Any, patterns: str, atol: float | None = None
) -> tuple[Any, list[Remark]]:
    """The compiled function's result, compared with eager, and the remarks of the pass."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="inductile", options={"patterns": patterns})
    with torch.no_grad(), collecting() as remarks:
        result = compiled(*inputs)
        torch.testing.assert_close(result, function(*inputs), atol=atol, rtol=atol and 0.05)
    return result, [remark for remark in remarks if remark.pass_name == "graph-match-patterns"]


def _applied(remarks: list[Remark]) -> list[str]:
    return [remark.reason.split("'")[1] for remark in remarks if remark.kind == "passed"]


def _heads(x: torch.Tensor, heads: int = 2) -> torch.Tensor:
    batch, length, _ = x.shape
    return x.view(batch, length, heads, -1).transpose(1, 2)


def _divided(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = _heads(q) @ _heads(k).transpose(-2, -1) / 8**0.5
    return (scores.softmax(-1) @ _heads(v)).transpose(1, 2).reshape(q.shape)


def _multiplied(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.bmm((torch.bmm(q, k.mT) * 0.25).softmax(-1), v)


def _scaled_before(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.matmul(torch.matmul(_heads(q) * 0.3, _heads(k).mT).softmax(-1), _heads(v))


def _added_mask(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    mask = torch.linspace(-2, 2, 36).view(6, 6)
    return ((_heads(q) @ _heads(k).mT) * 0.25 + mask).softmax(-1) @ _heads(v)


def _filled(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    hidden = torch.ones(6, 6, dtype=torch.bool).triu(1)
    return ((_heads(q) @ _heads(k).mT) / 4).masked_fill(hidden, float("-inf")).softmax(-1) @ _heads(v)


def _chosen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    seen = torch.ones(6, 6, dtype=torch.bool).tril()
    scores = torch.where(seen, _heads(q) @ _heads(k).mT, torch.finfo(q.dtype).min)
    return scores.softmax(-1) @ _heads(v)


def _softmax_in_float(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = _heads(q) @ _heads(k).mT
    return scores.softmax(-1, dtype=torch.float32).to(q.dtype) @ _heads(v)


def _shared_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Two heads of queries for one of keys and values."""
    return (_heads(q) @ _heads(k[..., :8], 1).expand(-1, 2, -1, -1).mT).softmax(-1) @ _heads(v)


ATTENTIONS = [_divided, _multiplied, _scaled_before, _added_mask, _filled, _chosen, _softmax_in_float, _shared_heads]


@pytest.mark.parametrize("function", ATTENTIONS)
def test_attention(function: Callable[..., torch.Tensor]) -> None:
    torch.manual_seed(0)
    _, remarks = _run(function, *(torch.randn(3, 6, 16) for _ in range(3)), patterns="attention")
    assert _applied(remarks) == ["attention"]


@pytest.mark.parametrize("function", ATTENTIONS)
def test_attention_is_left_alone_by_default(function: Callable[..., torch.Tensor]) -> None:
    torch.manual_seed(0)
    _, remarks = _run(function, *(torch.randn(3, 6, 16) for _ in range(3)), patterns="exact")
    assert "attention" not in _applied(remarks)


def test_attention_in_low_precision() -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(3, 6, 16, dtype=torch.bfloat16) for _ in range(3)]
    # eager rounds the scores
    _, remarks = _run(_softmax_in_float, *inputs, patterns="attention", atol=0.05)
    assert _applied(remarks) == ["attention"]


def test_attention_whose_weights_are_returned_stays() -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        weights = (q @ k.mT).softmax(-1)
        return weights @ v, weights

    _, remarks = _run(function, *(torch.randn(3, 6, 16) for _ in range(3)), patterns="attention")
    assert [r.kind for r in remarks] == ["missed"]
    assert "func.return reads a value inside it" in remarks[0].reason


def test_near_miss_is_remarked() -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT).sigmoid().softmax(-1) @ v

    _, remarks = _run(function, *(torch.randn(3, 6, 16) for _ in range(3)), patterns="attention")
    assert [r.kind for r in remarks] == ["missed"]
    assert "nearly matches 'attention': aten.sigmoid" in remarks[0].reason
    assert remarks[0].location.partition(":")[0].endswith("test_patterns.py")


def test_softmax_over_queries_is_no_attention() -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return (q @ k.mT).softmax(1) @ v

    _, remarks = _run(function, *(torch.randn(3, 6, 16) for _ in range(3)), patterns="attention")
    assert _applied(remarks) == []
    assert any("the softmax is not over keys" in remark.reason for remark in remarks)


def _repeated(x: torch.Tensor, times: int) -> torch.Tensor:
    batch, heads, length, width = x.shape
    return x[:, :, None].expand(batch, heads, times, length, width).reshape(batch, heads * times, length, width)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("dynamic", [True, False])
def test_attention_reads_heads_that_are_repeated(dtype: torch.dtype, causal: bool, dynamic: bool) -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        k, v = _repeated(k, 2), v.transpose(1, 2).repeat_interleave(2, 1)
        seen = None if causal else mask
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, seen, is_causal=causal, scale=0.3)

    torch.manual_seed(0)
    torch._dynamo.reset()
    shapes = [(2, 8, 5, 16), (2, 4, 9, 16), (2, 9, 4, 16), (2, 1, 5, 9)]
    inputs = [torch.randn(shape, dtype=dtype) for shape in shapes]
    inputs[1][0, 1, 2, 3] = torch.nan
    with torch.no_grad(), collecting() as remarks:
        result = torch.compile(function, backend="inductile", dynamic=dynamic)(*inputs)
        torch.testing.assert_close(result, function(*inputs), rtol=0, atol=0, equal_nan=True)
    assert _applied([r for r in remarks if r.pass_name == "graph-match-patterns"]) == ["grouped_heads"]


def test_repeated_heads_that_something_else_reads_stay() -> None:
    def function(q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        keys = _repeated(k, 2)
        return torch.nn.functional.scaled_dot_product_attention(q, keys, _repeated(k, 2)), keys

    _, remarks = _run(function, torch.randn(2, 8, 5, 16), torch.randn(2, 4, 9, 16), patterns="exact")
    assert _applied(remarks) == []
    # of another shape: the heads in turn, not each several times
    _, remarks = _run(
        lambda q, k: torch.nn.functional.scaled_dot_product_attention(q, k.repeat(1, 2, 1, 1), _repeated(k, 2)),
        torch.randn(2, 8, 5, 16), torch.randn(2, 4, 9, 16), patterns="exact",
    )  # fmt: skip
    assert _applied(remarks) == []


def test_keys_and_values_of_different_numbers_of_heads_are_repeated() -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, _repeated(k, 2), _repeated(v, 4))

    _, remarks = _run(function, *(torch.randn(2, heads, 5, 16) for heads in (8, 4, 2)), patterns="exact")
    assert _applied(remarks) == []
    assert any("different numbers of heads" in remark.reason for remark in remarks)


def test_gradient_of_repeated_heads() -> None:
    def function(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.scaled_dot_product_attention(q, _repeated(k, 2), _repeated(k, 2))

    torch.manual_seed(0)
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="inductile")
    inputs = [torch.randn(2, 8, 5, 16, requires_grad=True), torch.randn(2, 4, 9, 16, requires_grad=True)]
    expected, got = (torch.autograd.grad(f(*inputs).square().sum(), inputs) for f in (function, compiled))
    torch.testing.assert_close(got, expected)


def test_addmm() -> None:
    torch.manual_seed(0)
    x, w, b = torch.randn(4, 8), torch.randn(8, 3), torch.randn(3)
    assert _applied(_run(lambda x, w, b: x @ w + b, x, w, b, patterns="addmm")[1]) == ["addmm"]
    assert _applied(_run(lambda x, w, b: b + x @ w, x, w, b, patterns="all")[1]) == ["addmm"]
    assert _applied(_run(lambda x, w, b: x @ w + b, x, w, b, patterns="exact")[1]) == []
    assert _applied(_run(lambda x, w, b: x @ w + 1, x, w, b, patterns="addmm")[1]) == []
    assert _applied(_run(lambda x, w, b: x @ w + b[:, None][:, :1].sum(), x, w, b, patterns="addmm")[1]) == []


def test_sum_of_products() -> None:
    torch.manual_seed(0)
    inputs = (torch.randn(4, 8), torch.randn(8, 3), torch.randn(4, 5), torch.randn(5, 3))
    assert _applied(_run(lambda a, b, c, d: a @ b + c @ d, *inputs, patterns="all")[1]) == ["sum_of_products"]


def test_slice_of_cat_takes_the_part() -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        both = torch.cat([a.sin(), b], 1)
        return both[:, 3:].exp() + both.sum()

    _, remarks = _run(function, torch.randn(2, 3), torch.randn(2, 4), patterns="exact")
    assert _applied(remarks) == ["slice_of_cat"]


def test_slice_of_cat_that_is_returned_stays_a_view() -> None:
    def function(a: torch.Tensor, b: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        both = torch.cat([a, b], 1)
        return both, both[:, 3:]

    (both, part), _ = _run(function, torch.randn(2, 3), torch.randn(2, 4), patterns="exact")
    assert part.untyped_storage().data_ptr() == both.untyped_storage().data_ptr()


def test_cat_of_parts_is_a_copy() -> None:
    x = torch.randn(4, 6)
    result, remarks = _run(lambda x: torch.cat(x.split([1, 2, 3], 1), 1), x, patterns="exact")
    assert _applied(remarks) == ["cat_of_parts"]
    assert result.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()
    _, remarks = _run(lambda x: torch.cat(x.split([1, 2, 3], 1)[::-1], 1), x, patterns="exact")
    assert _applied(remarks) == []
    _, remarks = _run(lambda x: torch.cat([x[:, :2], x[:, 3:]], 1), x, patterns="exact")
    assert _applied(remarks) == []


def test_embedding_of_a_range_is_a_slice() -> None:
    def function(w: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.embedding(torch.arange(2, 5).unsqueeze(0), w) * 2

    _, remarks = _run(function, torch.randn(8, 4), patterns="exact")
    assert _applied(remarks) == ["embedding_of_range"]
    _, remarks = _run(function, torch.randn(5, 4), patterns="exact")
    assert _applied(remarks) == ["embedding_of_range"]


def test_patterns_are_counted() -> None:
    torch._dynamo.reset()
    options: dict[str, Any] = {"patterns": "addmm", "debug_counter": "pattern-addmm-count=0"}
    compiled = torch.compile(lambda x: x @ x + x[0], backend="inductile", options=options)
    with torch.no_grad(), collecting() as remarks:
        compiled(torch.randn(3, 3))
    assert _applied([r for r in remarks if r.pass_name == "graph-match-patterns"]) == []


def test_choice_of_patterns() -> None:
    assert [p.name for p in chosen_patterns("none")] == []
    assert {p.name for p in chosen_patterns("all")} == {p.name for p in PATTERNS}
    assert all(p.is_exact for p in chosen_patterns("exact"))
    assert "addmm" in {p.name for p in chosen_patterns("exact,addmm")}
    with pytest.raises(UserError, match="did you mean 'addmm'"):
        chosen_patterns("admm")


def test_a_pattern_says_in_what_it_differs() -> None:
    with pytest.raises(ValueError, match="must be exact or say"):
        Pattern("x", lambda aten, a: aten.exp(aten.log(a)), lambda aten, a, root: a)
    with pytest.raises(TypeError, match="must return a call"):
        Pattern("x", lambda aten, a: either(a, a), lambda aten, a, root: a, is_exact=True)  # pyright: ignore
