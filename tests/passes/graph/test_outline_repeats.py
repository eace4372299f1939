"""Programs with equal layers compiled once are those with each compiled for itself, and compute the same bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from inductile.backends.reference import run_module
from inductile.backends.targets import run_compiled
from inductile.dialects.context import new_context
from inductile.lowering.pipeline import named_passes
from inductile.passes.manager import PassManager

from ..kernel.stages import parse
from .outlining import ComparingBackend

T = "!aten.tensor<4x4xf32>"

LAYERS = 6


class Layer(nn.Module):
    """A transformer's layer, by options like that of GPT-2, BERT or Llama."""

    def __init__(self, first: bool, rms: bool, dropout: float, activation: Callable[..., torch.Tensor]) -> None:
        super().__init__()
        norm = nn.RMSNorm if rms else nn.LayerNorm
        self.norm1, self.norm2 = norm(16), norm(16)
        self.qkv, self.out = nn.Linear(16, 48, bias=not rms), nn.Linear(16, 16, bias=not rms)
        self.up, self.down = nn.Linear(16, 32, bias=not rms), nn.Linear(32, 16, bias=not rms)
        self.first, self.dropout, self.activation = first, dropout, activation

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, 2, -1).transpose(1, 2) for part in self.qkv(x).split(width, dim=-1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.dropout(self.out(mixed.transpose(1, 2).reshape(batch, length, width)), self.dropout, self.training)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.first:
            x = self.norm1(x + self.attend(x))
            return self.norm2(x + self.down(self.activation(self.up(x))))
        x = x + self.attend(self.norm1(x))
        return x + self.down(self.activation(self.up(self.norm2(x))))


def _gelu(x: torch.Tensor) -> torch.Tensor:
    return F.gelu(x, approximate="tanh")


KINDS: dict[str, tuple[bool, bool, Callable[..., torch.Tensor]]] = {
    "gpt2": (True, False, _gelu),
    "bert": (False, False, F.gelu),
    "llama": (True, True, F.silu),
}

#: any two of a kind, a target and a dtype meet
PAIRS = [
    ("gpt2", "cpp", torch.float32), ("gpt2", "cuda:90", torch.bfloat16),
    ("bert", "cpp", torch.bfloat16), ("bert", "cuda:90", torch.float32),
    ("llama", "cpp", torch.bfloat16), ("llama", "cuda:90", torch.float32),
]  # fmt: skip


def _model(kind: str, dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(0)
    first, rms, activation = KINDS[kind]
    layers = [Layer(first, rms, dropout, activation) for _ in range(LAYERS)]
    return nn.Sequential(nn.Embedding(20, 16), *layers, nn.Linear(16, 20))


def _compare(
    module: nn.Module, inputs: tuple[Any, ...], target: str = "cpp", train: bool = False, dynamic: bool = False
) -> ComparingBackend:
    backend = ComparingBackend(target)
    torch._dynamo.reset()
    if dynamic:
        torch._dynamo.mark_dynamic(inputs[0], 1)
    compiled = torch.compile(module.train(train), backend=backend)
    with torch.set_grad_enabled(train):
        result = compiled(*inputs)
        if train:
            result.square().sum().backward()
    assert not backend.differences
    return backend


def _tokens() -> torch.Tensor:
    return torch.randint(0, 20, (2, 6), generator=torch.Generator().manual_seed(0))


@pytest.mark.rotates(4)
@pytest.mark.parametrize(("kind", "target", "dtype"), PAIRS)
def test_inference(kind: str, target: str, dtype: torch.dtype) -> None:
    backend = _compare(_model(kind).to(dtype), (_tokens(),), target)
    assert backend.made("inference") == 1


@pytest.mark.rotates(3)
@pytest.mark.parametrize("kind", KINDS)
def test_dynamic_sizes(kind: str) -> None:
    assert _compare(_model(kind), (_tokens(),), dynamic=True).made("inference") == 1


@pytest.mark.rotates(4)
@pytest.mark.parametrize(("kind", "target", "dtype"), PAIRS)
def test_training(kind: str, target: str, dtype: torch.dtype) -> None:
    _compare(_model(kind).to(dtype), (_tokens(),), target, train=True)


@pytest.mark.rotates(4)
@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_dropout(kind: str) -> None:
    _compare(_model(kind, dropout=0.3), (_tokens(),), train=True)


class Cached(nn.Module):
    """Layers that write what they compute into caches and read these."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(8))
        for k in range(8):
            self.register_buffer(f"cache{k}", torch.zeros(2, 10, 16))

    def forward(self, x: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        for k, layer in enumerate(self.layers):
            cache = self.get_buffer(f"cache{k}")
            cache.index_copy_(1, position, layer(x))
            x = x + torch.bmm(torch.softmax(torch.bmm(x, cache.transpose(1, 2)), -1), cache)
        return x


def test_caches_are_written_in_place() -> None:
    backend = _compare(Cached(), (torch.randn(2, 1, 16), torch.tensor([3])))
    assert backend.made("inference") == 0


@pytest.mark.parametrize("last", ["graph-outline-repeats", "loop-fuse", "lower-loop-to-kernel"])
def test_a_file_with_calls_runs(last: str) -> None:
    """The reference runs what is called, and a program is compiled with what it calls."""
    layers = "".join(
        f"""
  %m{k} = aten.mm(%e{k - 1}, %w) : {T}
  %e{k} = aten.exp(%m{k}) : {T}"""
        for k in range(4)
    ).replace("%e-1", "%x")
    module = parse(f"func.func @f(%x: {T}, %w: {T}) -> {T} {{{layers}\n  func.return %e3 : {T}\n}}")
    x, w = torch.randn(4, 4) / 9, torch.randn(4, 4) / 9
    (expected,) = run_module(module, [x, w])
    passes = named_passes("default{least=3 saved=4}", start_at="graph-outline-repeats", stop_after=last)
    PassManager(passes).run(new_context(), module)
    assert len([op for op in module.ops if op.name.endswith("func") and op.name != "kernel.func"]) == 2
    (found,) = run_module(module, [x, w])
    torch.testing.assert_close(found, expected)
    (found,) = run_compiled(module, [x, w])
    torch.testing.assert_close(found, expected)
