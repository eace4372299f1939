"""Training on a GPU: random masks, running statistics, recomputation under a budget, optimizers in few launches."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from inductile.backends.compiled import REPORTS

pytestmark = pytest.mark.gpu


def test_forward_and_backward_draw_one_mask() -> None:
    x = torch.randn(64, 333, device="cuda", requires_grad=True)
    y = torch.compile(lambda x: F.dropout(x.exp(), 0.5) * 3, backend="inductile")(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, y.detach())  # d exp(x) = exp(x), under the same mask
    assert 0.45 < float((y == 0).float().mean()) < 0.55


def test_random_numbers_obey_the_seed() -> None:
    def draw() -> tuple[torch.Tensor, ...]:
        first, second = torch.rand(1000, device="cuda"), torch.randn(1000, device="cuda")
        return first, second, torch.rand(999, device="cuda", dtype=torch.float64)

    run = torch.compile(draw, backend="inductile")
    torch.manual_seed(1)
    first, second = run(), run()
    torch.manual_seed(1)
    again = run()
    assert all(torch.equal(a, b) for a, b in zip(first, again, strict=True))
    assert not torch.equal(first[0], second[0])
    assert 0.45 < float(first[0].mean()) < 0.55


class Block(nn.Module):
    """A transformer block."""

    def __init__(self, width: int = 64, heads: int = 4) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        parts = self.qkv(self.first(x)).split(width, -1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in parts)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(mixed)
        return x + self.down(F.gelu(self.up(self.second(x))))


@pytest.mark.parametrize(("dtype", "budget"), [(torch.float32, 1.0), (torch.float32, 0.3), (torch.bfloat16, 1.0)])
def test_a_block(dtype: torch.dtype, budget: float) -> None:
    ours = Block().to("cuda")
    eager, x = copy.deepcopy(ours), torch.randn(2, 16, 64, device="cuda")
    options: dict[str, Any] = {"activation_memory_budget": budget}
    run = torch.compile(ours, backend="inductile", options=options)
    with torch.autocast("cuda", dtype=torch.bfloat16, enabled=dtype is torch.bfloat16):
        want, got = eager(x), run(x)
    for y in (want, got):
        y.float().square().mean().backward()
    rtol, atol = (5e-2, 2e-2) if dtype is torch.bfloat16 else (1e-3, 1e-5)
    torch.testing.assert_close(got, want, rtol=rtol, atol=atol)
    for p, q in zip(ours.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=rtol, atol=atol)


def test_running_statistics() -> None:
    ours = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8)
    ).to("cuda")  # fmt: skip
    eager, x = copy.deepcopy(ours), torch.randn(4, 3, 16, 16, device="cuda")
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        want, got = eager(x), torch.compile(ours, backend="inductile")(x)
        want.square().mean().backward()
        got.square().mean().backward()
    torch.testing.assert_close(got, want, rtol=1e-3, atol=1e-4)
    for p, q in zip(ours.buffers(), eager.buffers(), strict=True):
        torch.testing.assert_close(p, q)
    for p, q in zip(ours.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(p.grad, q.grad, rtol=1e-2, atol=1e-4)


def test_steps_of_a_compiled_optimizer() -> None:
    ours = nn.Linear(8, 8, device="cuda")
    eager = copy.deepcopy(ours)
    optimizers = [torch.optim.Adam(m.parameters(), lr=0.01) for m in (eager, ours)]
    steps = (optimizers[0].step, torch.compile(optimizers[1].step, backend="inductile"))
    for seed in range(3):
        for module, step in zip((eager, ours), steps, strict=True):
            torch.manual_seed(seed)
            module.zero_grad()
            module(torch.randn(4, 8, device="cuda")).square().sum().backward()
            step()
    for p, q in zip(ours.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("name", "launches"), [("SGD", 2), ("AdamW", 8)])
def test_foreach_steps_are_few_launches(name: str, launches: int) -> None:
    """Forty parameters from 7 to 21,000 elements: their nests stand side by side in few kernels."""
    torch.manual_seed(0)
    eager = [nn.Parameter(torch.randn(10 * k * k + 1, 7 - k % 7, device="cuda")) for k in range(40)]
    ours = copy.deepcopy(eager)
    for p, q in zip(eager, ours, strict=True):
        p.grad = torch.randn_like(p)
        q.grad = p.grad.clone()
    make = getattr(torch.optim, name)
    options = {"momentum": 0.9} if name == "SGD" else {}
    first, second = (make(parameters, lr=0.01, foreach=True, **options) for parameters in (eager, ours))
    step = torch.compile(second.step, backend="inductile")
    REPORTS.clear()
    for _ in range(3):
        first.step()
        step()
    for p, q in zip(ours, eager, strict=True):
        torch.testing.assert_close(p, q, rtol=1e-4, atol=1e-5)
    assert REPORTS
    assert sum(REPORTS[-1].kernels.values()) <= launches
    assert not any(r.aten_calls for r in REPORTS)


@pytest.mark.parametrize("counts", [False, True])
def test_gradient_of_a_padded_pool_with_channels_last(counts: bool) -> None:
    """It is that of the CPU: eager's own was wrong on CUDA (pytorch/pytorch#188344)."""

    def gradient(device: str, run: Any) -> torch.Tensor:
        x = torch.randn(2, 64, 5, 5, generator=torch.Generator().manual_seed(0)).to(
            device, memory_format=torch.channels_last
        )
        x.requires_grad_()
        y = run(x)
        y.backward(torch.arange(y.numel(), device=device, dtype=x.dtype).view_as(y).sin())
        assert x.grad is not None
        return x.grad.cpu()

    def pool(x: torch.Tensor) -> torch.Tensor:
        return F.avg_pool2d(x, 3, 1, 1, count_include_pad=counts)

    torch.testing.assert_close(gradient("cuda", torch.compile(pool, backend="inductile")), gradient("cpu", pool))


def test_small_temporaries_share_one_allocation() -> None:
    """The gradients are the same, torch's allocator is asked less often, and no more memory is live."""
    model: Any = nn.Sequential(
        *(layer for _ in range(4) for layer in (nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()))
    ).cuda()
    x = torch.randn(8, 16, 32, 32, device="cuda")
    counts: dict[bool, tuple[int, int]] = {}
    gradients: dict[bool, Any] = {}
    for pooled in (False, True):
        torch.compiler.reset()
        run = torch.compile(model, backend="inductile", options={"memory_pool": pooled})
        for _ in range(2):
            gradients[pooled] = torch.autograd.grad(run(x).square().sum(), tuple(model.parameters()))
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_stats()
        torch.autograd.grad(run(x).square().sum(), tuple(model.parameters()))
        after = torch.cuda.memory_stats()
        asked = after["allocation.all.allocated"] - before["allocation.all.allocated"]
        counts[pooled] = (asked, after["allocated_bytes.all.peak"] - before["allocated_bytes.all.current"])
    torch.testing.assert_close(gradients[True], gradients[False], rtol=1e-3, atol=1e-3)
    assert counts[True][0] < counts[False][0], counts
    assert counts[True][1] <= counts[False][1] + 2**20, counts
