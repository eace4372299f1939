"""Graphs that hold tensors themselves, and inputs of classes that wrap tensors: which of them the cache takes."""

from __future__ import annotations

import copy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._dynamo.utils import counters
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from inductile.backends.graph_cache import front, subclasses
from inductile.backends.graph_cache.store import Store

from .harness import outcomes, run

X = torch.arange(12.0).reshape(3, 4) / 7 - 0.5


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDUCTILE_GRAPH_CACHE", "1")
    monkeypatch.setattr(front, "own_store", lambda: Store(tmp_path))


def _compiled(function: Any) -> Any:
    torch.compiler.reset()
    counters.clear()
    return torch.compile(function, backend="inductile", options={"cache_graphs": True})


def _step(rate: float) -> list[str]:
    """What became of the graphs of a step of an optimizer, whose parameters and state a graph holds."""
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 2))
    other = copy.deepcopy(module)
    optimizers = [torch.optim.AdamW(each.parameters(), rate) for each in (module, other)]
    steps = [_compiled(optimizers[0].step), optimizers[1].step]
    for _ in range(3):
        for each, step in zip((module, other), steps, strict=True):
            each.zero_grad()
            each(X).square().sum().backward()
            step()
    torch.testing.assert_close(list(module.parameters()), list(other.parameters()))
    return outcomes()


def test_steps_of_optimizers_are_found() -> None:
    assert set(_step(1e-2)) == {"miss"}
    assert set(_step(1e-2)) == {"hit"}
    assert set(_step(1e-1)) == {"miss"}


def double(x: Any) -> Any:
    return torch.relu(x) * 2 + 1


def _wrapped(requires_grad: bool) -> list[str]:
    both: list[Any] = [TwoTensor(X.clone(), X * 3).requires_grad_(requires_grad) for _ in range(2)]
    one, other = both
    result, expected = _compiled(double)(one), double(other)
    torch.testing.assert_close([result.a, result.b], [expected.a, expected.b])
    if requires_grad:
        result.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close([one.grad.a, one.grad.b], [other.grad.a, other.grad.b])
    return outcomes()


def test_tensors_that_wrap_others() -> None:
    for requires_grad in (False, True):
        assert _wrapped(requires_grad) == ["miss"]
        assert _wrapped(requires_grad) == ["hit"]
    torch.testing.assert_close(_compiled(double)(X), double(X))
    assert outcomes() == ["miss"]


class Mine(TwoTensor):
    """A class whose code nobody knows."""

    @staticmethod
    def __tensor_unflatten__(inner: Any, meta: Any, size: Any, stride: Any) -> Mine:
        return Mine(inner["a"], inner["b"])


def test_classes_of_users_are_not_cached() -> None:
    result = _compiled(double)(Mine(X.clone(), X * 3))
    torch.testing.assert_close(result.b, double(X * 3))
    assert outcomes() == ["bypass"]
    assert any(name.startswith("not cached: an input is a Mine") for name in counters["inductile"])


def _quantised(config: Any) -> list[str]:
    torchao = pytest.importorskip("torchao.quantization")
    torch.manual_seed(0)
    module = torch.nn.Linear(32, 16).eval()
    torchao.quantize_(module, getattr(torchao, config)(set_inductor_config=False))
    with torch.no_grad():
        x = torch.randn(3, 32)
        torch.testing.assert_close(_compiled(module)(x), module(x))
    return outcomes()


def test_quantised_weights_are_found() -> None:
    first, second = "Int8WeightOnlyConfig", "Int8DynamicActivationInt8WeightConfig"
    assert _quantised(first) == ["miss"]
    assert _quantised(first) == ["hit"]
    assert _quantised(second) == ["miss"]  # another number of the class's own, and the same tensors


def test_a_function_that_a_user_registers_for_such_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    tensors = pytest.importorskip("torchao.quantization")
    kind: Any = tensors.Int8Tensor
    table = {**kind._ATEN_OP_TABLE[kind], torch.ops.aten.relu.default: lambda *_: pytest.fail("called")}
    monkeypatch.setattr(kind, "_ATEN_OP_TABLE", {**kind._ATEN_OP_TABLE, kind: table})
    with pytest.raises(subclasses.UnknownCodeError, match="a function of"):
        subclasses._code_of(kind)


def test_rules_of_selective_checkpoints() -> None:
    """Lists of operators are part of the key; a function is taken where somebody says what it is."""

    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        return CheckpointPolicy.MUST_SAVE if op == torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE

    def outcome(saved: Any, cache_hash: object = None) -> str:
        rule = partial(create_selective_checkpoint_contexts, saved)
        if cache_hash is not None:
            vars(rule)["cache_hash"] = cache_hash

        def function(x: Any) -> Any:
            return checkpoint(lambda a: (a @ a).sin().tanh(), x, use_reentrant=False, context_fn=rule)

        return run(function, torch.ones(3, 3).requires_grad_())

    products, sines = [torch.ops.aten.mm.default], [torch.ops.aten.sin.default]
    assert [outcome(each) for each in (products, products, sines)] == ["miss", "hit", "miss"]
    assert [outcome(policy), outcome(policy, object())] == ["bypass", "bypass"]
    assert [outcome(policy, name) for name in ("mine 1", "mine 1", "mine 2")] == ["miss", "hit", "miss"]
