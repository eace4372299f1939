"""Attention written by hand in a training graph: forward and backward become one op each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from inductile.passes.remarks import Remark, collecting

Attention = Callable[..., Any]


def _heads(x: torch.Tensor, heads: int = 2) -> torch.Tensor:
    batch, length, _ = x.shape
    return x.view(batch, length, heads, -1).transpose(1, 2)


def _joined(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).flatten(2)


def _divided(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return _joined((_heads(q) @ _heads(k).transpose(-2, -1) / 8**0.5).softmax(-1) @ _heads(v))


def _multiplied(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.bmm((torch.bmm(q, k.mT) * 0.25).softmax(-1), v)


def _scaled_before(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return _joined(torch.matmul(torch.matmul(_heads(q) * 0.3, _heads(k).mT).softmax(-1), _heads(v)))


def _added_mask(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    mask = torch.linspace(-2, 2, 36, dtype=q.dtype).view(6, 6)
    return _joined(((_heads(q) @ _heads(k).mT) * 0.25 + mask).softmax(-1) @ _heads(v))


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    hidden = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).triu(1)
    return _joined(((_heads(q) @ _heads(k).mT) / 4).masked_fill(hidden, float("-inf")).softmax(-1) @ _heads(v))


def _chosen(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    seen = torch.ones(6, 6, dtype=torch.bool).tril()
    scores = torch.where(seen, _heads(q) @ _heads(k).mT, torch.finfo(q.dtype).min)
    return _joined(scores.softmax(-1) @ _heads(v))


def _softmax_in_float(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = _heads(q) @ _heads(k).mT / 4
    return _joined(scores.softmax(-1, dtype=torch.float32).to(q.dtype) @ _heads(v))


def _shared_heads(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Two heads of queries for one of keys and values."""
    keys, values = (_heads(x[..., :8], 1).expand(-1, 2, -1, -1) for x in (k, v))
    return _joined((_heads(q) @ keys.mT).softmax(-1) @ values)


ATTENTIONS = [
    _divided, _multiplied, _scaled_before, _added_mask, _causal, _chosen, _softmax_in_float, _shared_heads,
]  # fmt: skip


def _inputs(dtype: torch.dtype = torch.float32, wanted: Sequence[bool] = (True, True, True)) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(3, 6, 16, dtype=dtype).requires_grad_(grad) for grad in wanted]


def _step(function: Attention, inputs: Sequence[torch.Tensor]) -> list[Any]:
    """The result and the gradients, of a loss that weighs each element differently."""
    result = function(*inputs)
    weights = torch.linspace(0.5, 1.5, result.numel()).view(result.shape)
    wanted = [x for x in inputs if x.requires_grad]
    return [result, *torch.autograd.grad((result.float() * weights).sum(), wanted)]


def _trained(function: Attention, inputs: Sequence[torch.Tensor], **tolerance: float) -> list[Remark]:
    """Compare a step of the compiled function with eager; the remarks of the pass on the joint graph."""
    torch._dynamo.reset()
    compiled = torch.compile(function, backend="inductile", options={"patterns": "attention"})
    with collecting() as remarks:
        got = _step(compiled, inputs)
    torch.testing.assert_close(got, _step(function, inputs), **tolerance)  # pyright: ignore
    return [remark for remark in remarks if remark.pass_name == "graph-match-patterns"]


def _applied(remarks: list[Remark]) -> int:
    return sum("'attention' with its gradient replaces" in remark.reason for remark in remarks)


@pytest.mark.rotates(2)
@pytest.mark.parametrize("function", ATTENTIONS)
def test_values_and_gradients(function: Attention) -> None:
    assert _applied(_trained(function, _inputs())) == 1


@pytest.mark.parametrize("function", [_causal, _softmax_in_float])
def test_double_precision(function: Attention) -> None:
    assert _applied(_trained(function, _inputs(torch.float64), atol=1e-6, rtol=1e-6)) == 1


@pytest.mark.rotates(2, each="function")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("function", [_causal, _softmax_in_float])
def test_low_precision(function: Attention, dtype: torch.dtype) -> None:
    # eager rounds the scores
    assert _applied(_trained(function, _inputs(dtype), atol=0.05, rtol=0.05)) == 1


def test_autocast() -> None:
    def cast(*inputs: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return _causal(*inputs)

    assert _applied(_trained(cast, _inputs(), atol=0.05, rtol=0.05)) == 1


@pytest.mark.rotates(2)
@pytest.mark.parametrize("wanted", [(True, False, False), (False, True, False), (False, False, True),
                                    (True, True, False), (False, True, True)])  # fmt: skip
def test_only_some_gradients_are_wanted(wanted: Sequence[bool]) -> None:
    assert _applied(_trained(_causal, _inputs(wanted=wanted))) == 1


def test_mask_that_makes_the_batch_larger() -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        mask = torch.linspace(-1, 1, 3 * 36).view(3, 1, 6, 6)
        return (_heads(q[:1]) @ _heads(k[:1]).mT + mask).softmax(-1) @ _heads(v)

    assert _applied(_trained(function, _inputs())) == 0


def test_two_layers() -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return _causal(_divided(q, k, v).sin(), k, v + q)

    assert _applied(_trained(function, _inputs())) == 2


def test_self_attention_of_one_tensor() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x @ x.mT * 0.2).softmax(-1) @ x

    assert _applied(_trained(function, _inputs()[:1])) == 1


def test_dynamic_sizes() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(_divided, backend="inductile", options={"patterns": "attention"})
    with collecting() as remarks:
        for length in (5, 9):
            inputs = [torch.randn(2, length, 16, requires_grad=True) for _ in range(3)]
            for each in inputs:
                torch._dynamo.mark_dynamic(each, 1)
            torch.testing.assert_close(_step(compiled, inputs), _step(_divided, inputs))
    assert _applied(remarks) == 1


def test_checkpointed() -> None:
    def function(*inputs: torch.Tensor) -> Any:
        return checkpoint(_causal, *inputs, use_reentrant=False)

    assert _applied(_trained(function, _inputs())) == 1


def test_weights_are_not_saved() -> None:
    saved: dict[str, list[int]] = {}
    for patterns in ("exact", "attention"):
        torch._dynamo.reset()
        compiled = torch.compile(_causal, backend="inductile", options={"patterns": patterns})
        sizes = saved.setdefault(patterns, [])
        with torch.autograd.graph.saved_tensors_hooks(lambda t, s=sizes: (s.append(t.numel()), t)[1], lambda t: t):
            compiled(*(torch.randn(3, 64, 16, requires_grad=True) for _ in range(3)))
    assert max(saved["exact"]) >= 3 * 2 * 64 * 64
    # the mask of the keys is kept, if anything of that kind
    assert max(saved["attention"]) <= 64 * 64


def _learned_bias(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return _joined((_heads(q) @ _heads(k).mT + bias).softmax(-1) @ _heads(v))


def test_mask_with_a_gradient_stays() -> None:
    remarks = _trained(_learned_bias, [*_inputs(), torch.randn(2, 6, 6, requires_grad=True)])
    assert _applied(remarks) == 0
    assert any("reads a value inside it" in r.reason and r.kind == "missed" for r in remarks)


def test_dropout_of_the_weights_stays_and_is_remarked() -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.dropout((q @ k.mT).softmax(-1), 1e-9) @ v

    remarks = _trained(function, _inputs())
    assert _applied(remarks) == 0
    assert any("with its gradient, but its weights are dropped at random" in remark.reason for remark in remarks)


def test_dropout_that_drops_nothing() -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.dropout((q @ k.mT).softmax(-1), 0.0, training=True) @ v

    assert _applied(_trained(function, _inputs())) == 1


class _Twice(torch.autograd.Function):
    """Multiplies by 0.5, but says that the gradient is multiplied by 2."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:  # pyright: ignore
        return x * 0.5

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:  # pyright: ignore
        return g * 2.0


class _Unscaled(_Twice):
    @staticmethod
    def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:  # pyright: ignore
        return g.clone()


@pytest.mark.parametrize("scaling", [_Twice, _Unscaled])
def test_gradient_of_the_users_own_stays(scaling: type[torch.autograd.Function]) -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return scaling.apply(q @ k.mT).softmax(-1) @ v  # pyright: ignore

    remarks = _trained(function, _inputs())
    assert _applied(remarks) == 0
    assert any("its gradient does not match" in remark.reason for remark in remarks)


def test_weights_that_are_returned_stay() -> None:
    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        weights = (q @ k.mT).softmax(-1)
        return torch.cat([weights @ v, weights], -1)

    assert _applied(_trained(function, _inputs())) == 0


def test_nothing_changes_by_default() -> None:
    torch._dynamo.reset()
    with collecting() as remarks:
        got = _step(torch.compile(_causal, backend="inductile"), _inputs())
    torch.testing.assert_close(got, _step(_causal, _inputs()))
    assert _applied([r for r in remarks if r.pass_name == "graph-match-patterns"]) == 0


def test_a_row_that_sees_nothing_differs_as_the_pattern_says() -> None:
    """Eager gives NaN; the op gives zeros, and no gradient. By default it stays NaN."""

    def function(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        hidden = torch.zeros(6, 6, dtype=torch.bool)
        hidden[2] = True
        return (q @ k.mT).masked_fill(hidden, float("-inf")).softmax(-1) @ v

    expected = _step(function, _inputs())
    assert bool(expected[0][:, 2].isnan().all())
    results = {}
    for patterns in ("exact", "attention"):
        torch._dynamo.reset()
        compiled = torch.compile(function, backend="inductile", options={"patterns": patterns})
        results[patterns] = _step(compiled, _inputs())
    torch.testing.assert_close(results["exact"], expected, equal_nan=True)
    assert bool((results["attention"][0][:, 2] == 0).all())
    seen = [0, 1, 3, 4, 5]
    torch.testing.assert_close(results["attention"][0][:, seen], expected[0][:, seen])
    assert all(bool(gradient.isfinite().all()) for gradient in results["attention"][1:])
