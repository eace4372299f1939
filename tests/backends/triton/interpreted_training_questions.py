"""Questions about attention that is trained: what is measured computes the gradients, whichever way it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from xdsl.dialects.builtin import ModuleOp

from inductile.backends import partition, pre_grad, targets
from inductile.backends.choice.asked import Asked
from inductile.backends.choice.timer import MeasuringTimer, _with_gradients
from inductile.backends.config import Config
from inductile.backends.host import build
from inductile.backends.reference import run_module
from inductile.backends.triton.offline import OfflineBackend
from inductile.dialects.machine import set_targets
from inductile.lowering import fx_attention, fx_attention_masks, fx_attention_written
from inductile.lowering.pipeline import pipeline_string
from inductile.machines import GpuTarget, Library, target_named
from inductile.passes.common.choices import Question
from inductile.passes.common.moving import devices_in, move_tensors
from inductile.passes.graph import choose_scores, reassociate_row_sums, split_softmax
from inductile.passes.graph import partition as graph_partition
from inductile.passes.remarks import collecting

from ...scripts import load_benchmark
from .products import Tensor, for_cpu

VARIANTS: Any = load_benchmark("attention_variants")
SHAPE = (1, 4, 40, 16)
#: small tiles leave something over
OPTIONS = {
    "max_autotune": True,
    "pipeline": pipeline_string()
    .replace("kernel-map-chained-products", "kernel-map-chained-products{chain-rows=16 chain-step=16}")
    .replace("kernel-map-softmax-sums", "kernel-map-softmax-sums{softmax-rows=16 softmax-step=16}"),
}


class _Saying:
    """A timer that keeps the questions, and finds the second candidate the fastest."""

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def times(self, questions: Sequence[Question]) -> Sequence[Mapping[str, float]]:
        self.questions += questions
        return [{str(each): 9.0 - (k == 1) for k, each in enumerate(q.candidates)} for q in questions]


class _OneTarget:
    """Whatever device a tensor is on, it is an H100 about which nothing was recorded."""

    def target(self, device: str) -> Any:
        found = target_named("cuda:90")
        assert isinstance(found, GpuTarget)
        return replace(found, nests=())


def _on_h100(module: ModuleOp) -> None:
    move_tensors(module, dict.fromkeys(devices_in(module), "cuda:0"))
    set_targets(module, ["cuda:90"])


@pytest.fixture
def saying(monkeypatch: pytest.MonkeyPatch) -> _Saying:
    """Graphs are compiled as for an H100 on which somebody measures."""
    timer = _Saying()
    for module in (partition, pre_grad):
        monkeypatch.setattr(module, "timer_of", lambda config: timer)
    for module in (choose_scores, graph_partition, reassociate_row_sums, split_softmax):
        monkeypatch.setattr(module, "targets_of", lambda _: _OneTarget())
    library = Library(reads_mask_rows=True, keeps_nan=True, groups_heads=True)
    for module in (fx_attention, fx_attention_masks, fx_attention_written):
        monkeypatch.setattr(module, "library_of", lambda device: library)
    monkeypatch.setattr(targets, "attach_devices", _on_h100)
    return timer


def _called(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    places = torch.arange(q.shape[-2])
    seen = (places <= places[:, None]) & (places[:, None] - places < 9)
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)


def _program(module: ModuleOp, compiled: bool) -> Any:
    """A module as a program: in Triton's interpreter, or in ours."""
    return build(module) if compiled else partial(run_module, module)


@pytest.mark.parametrize("name", ["called", "softcap", "differential"])
def test_every_way_computes_the_gradients(name: str, saying: _Saying) -> None:
    function = _called if name == "called" else VARIANTS.VARIANTS[name]
    shape = (*SHAPE[:3], 32) if name == "differential" else SHAPE
    generator = torch.Generator().manual_seed(0)
    inputs = [torch.randn(shape, generator=generator).bfloat16().requires_grad_() for _ in range(3)]
    torch._dynamo.reset()
    backend = OfflineBackend(["cuda:90"], "cuda:0", OPTIONS)
    with collecting() as remarks:
        result = torch.compile(function, backend=backend, dynamic=False)(*inputs)
    assert any("nest 0x0x0x0, as measured for attention" in str(each) for each in remarks)
    torch.autograd.grad(result, inputs, torch.randn(shape).bfloat16())
    text = "".join(str(module) for *_, module in backend.modules)
    assert "softmax_sum" in text and "inductile::" not in text

    (question,) = saying.questions
    asked = Asked.of(question)
    timer = MeasuringTimer(Config.resolve(None, OPTIONS))
    given = [each.to("cpu") for each in asked.inputs()]
    found: list[list[Tensor]] = []
    for candidate in question.candidates[:2]:
        lowered = timer._lowered(asked, candidate)
        assert lowered.halves is not None
        is_nest = candidate.implementation == "nest"
        forward, backward = (_program(for_cpu(module), is_nest) for module in lowered.modules)
        found.append(_with_gradients(forward, backward, lowered.halves)(list(given)))
        assert ("softmax_sum" in str(lowered.modules[0])) == is_nest
    library, nest = found
    assert len(library) == len(nest) >= 4
    for one, other in zip(library, nest, strict=True):
        assert (one.float() - other.float()).norm() <= 0.02 * one.float().norm()
