"""Whole graphs, forward and backward, become kernels for every GPU on a machine without one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch._subclasses import FakeTensorMode

from inductile.backends.triton.compile_only import compile_kernel
from inductile.backends.triton.offline import OfflineBackend, fake_like, on_fake_gpu
from inductile.passes.analysis.memory_profile import memory_profiles

TARGETS = ("cuda:90", "hip:gfx942")


def _compile(backend: OfflineBackend) -> None:
    assert {target for target, _ in backend.kernels} == set(backend.targets)
    for target, kernel in backend.kernels:
        compile_kernel(kernel, target)


def test_inference_on_fake_tensors() -> None:
    """Parameters that are shared stay shared; the program knows its device and its stream."""
    model = torch.nn.Sequential(torch.nn.Embedding(50, 32), torch.nn.LayerNorm(32), torch.nn.Linear(32, 50)).eval()
    model[2].weight = model[0].weight
    mode, backend = FakeTensorMode(allow_non_fake_inputs=True), OfflineBackend(TARGETS)
    on_fake_gpu(model, mode)
    assert model[2].weight is model[0].weight and model[0].weight.device.type == "cuda"
    torch._dynamo.reset()
    with mode, torch.no_grad():
        result = torch.compile(model, backend=backend)(fake_like(torch.zeros(4, 7, dtype=torch.int64)))
    assert result.device.type == "cuda" and result.shape == (4, 7, 50)
    assert [kind for kind, _, _ in backend.programs] == ["inference"] * 2
    assert all("@on_device" in text and "stream = current_stream(index0)" in text for *_, text in backend.programs)
    _compile(backend)


def _loss(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(F.gelu(F.layer_norm(x, (64,), w, b)), t)


def _normed(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.dropout(F.silu(F.group_norm(x, 4, w, b)), 0.3) * torch.cumsum(x, -1)


def _convolved(x: torch.Tensor, w: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Weights are rearranged forward and backward."""
    return F.conv2d(F.relu(F.conv2d(x, w, padding=1)), v, padding=1).exp()


CASES: dict[str, tuple[Any, tuple[torch.Tensor, ...]]] = {
    "loss": (_loss, (torch.randn(33, 64), torch.randn(64), torch.randn(64), torch.randint(0, 64, (33,)))),
    "normed": (_normed, (torch.randn(2, 8, 5, 7), torch.randn(8), torch.randn(8))),
    "convolved": (_convolved, (torch.randn(2, 8, 9, 9), torch.randn(32, 8, 3, 3), torch.randn(8, 32, 3, 3))),
    "gather": (lambda w, i: w[i].tanh().sum(0), (torch.randn(20, 16), torch.randint(0, 20, (11,)))),
}


@pytest.mark.rotates(2)
@pytest.mark.parametrize("name", CASES)
def test_training_moved_to_a_gpu(name: str) -> None:
    function, inputs = CASES[name]
    backend = OfflineBackend(TARGETS, move_to="cuda:0")
    torch._dynamo.reset()
    leaves = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    torch.compile(function, backend=backend)(*leaves).sum().backward()
    assert {kind for kind, _, _ in backend.programs} == {"forward", "backward"}
    assert all("launch0(stream, " in text for *_, text in backend.programs)
    _compile(backend)


@pytest.mark.parametrize("deterministic", [False, True])
def test_sums_at_equal_indices_keep_their_order_when_asked(deterministic: bool) -> None:
    mode, backend = FakeTensorMode(), OfflineBackend(["cuda:90"])
    with mode, torch.no_grad():
        x, v = torch.empty(8, 4, device="cuda:0"), torch.empty(50, 4, device="cuda:0")
        i = torch.empty(50, dtype=torch.int64, device="cuda:0")
        torch.use_deterministic_algorithms(deterministic)
        try:
            torch._dynamo.reset()
            torch.compile(lambda x, i, v: x.exp().index_add(0, i, v), backend=backend)(x, i, v)
        finally:
            torch.use_deterministic_algorithms(False)
    ((_, _, text),) = backend.programs
    assert ("call0(" in text) is deterministic
    assert any("tl.atomic_add" in kernel.source for _, kernel in backend.kernels) is not deterministic


def test_step_of_an_optimizer_is_few_launches() -> None:
    """Sixteen parameters of many sizes: a counter, and one launch of nests with programs of their own."""
    torch.manual_seed(0)
    shapes = [(8 + k, 9 + k) if k % 2 else (300 * k + 7,) for k in range(16)]
    parameters, gradients, averages = ([torch.randn(shape) for shape in shapes] for _ in range(3))
    counter, aten = torch.tensor(1.0), torch.ops.aten

    def step(parameters: Any, gradients: Any, averages: Any, counter: torch.Tensor) -> None:
        counter.add_(1)
        aten._foreach_lerp_(averages, gradients, 0.1)
        scaled = aten._foreach_mul(averages, 1 / (1 - 0.9**counter))
        aten._foreach_add_(parameters, scaled, alpha=-0.01)

    backend = OfflineBackend(TARGETS, move_to="cuda:0")
    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(step, backend=backend)(parameters, gradients, averages, counter)
    for *_, text in backend.programs:
        assert sum(line.lstrip().startswith("launch") for line in text.splitlines()) == 2
    _compile(backend)


class Tied(torch.nn.Module):
    """A table whose rows go through layers and are compared with all rows again."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(4000, 64)
        self.layers = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.LayerNorm(64), Block()) for _ in range(3)))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.layers(self.table(tokens)) @ self.table.weight.t()


class Block(torch.nn.Module):
    """A perceptron beside its input."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = torch.nn.Linear(64, 256), torch.nn.Linear(256, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(F.gelu(self.up(x)))


def test_backward_needs_little_more_than_its_results() -> None:
    """A few activations beside the gradients; that of the table is the sum of two that are there at once."""
    backend = OfflineBackend(["cuda:90"], move_to="cuda:0")
    module = Tied()
    torch._dynamo.reset()
    torch.compile(module, backend=backend)(torch.randint(4000, (2, 4))).square().mean().backward()
    (backward,) = [module for kind, _, module in backend.modules if kind == "backward"]
    (profile,) = memory_profiles(backward, is_held=lambda name: name.startswith("primals"))
    (by_marks,) = memory_profiles(backward)
    tangent = 8 * 4000 * 4
    assert by_marks.given == profile.given - tangent and by_marks.peak <= profile.peak
    results = sum(p.nbytes for p in module.parameters())
    assert profile.peak <= results + module.table.weight.nbytes + 8 * 8 * 64 * 4
    assert profile.peak_blocks <= profile.peak + 2 * 512 * len(list(module.parameters())) + (1 << 20)
