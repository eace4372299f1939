"""Matrix products with sizes that no row is aligned by, on a GPU: as exact as eager's, and by the fast kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from inductile.backends.compiled import REPORTS

pytestmark = pytest.mark.gpu

ROWS, DEPTH = 2048, 768


def _relative(got: torch.Tensor, exact: torch.Tensor) -> float:
    return float((got.double() - exact).norm() / exact.norm())


def _check(got: Any, eager: Any, exact: Any) -> None:
    for g, e, x in zip(got, eager, exact, strict=True):
        assert (g.dtype, g.shape, g.stride()) == (e.dtype, e.shape, e.stride())
        assert _relative(g, x) <= 1.5 * _relative(e, x) + 1e-4


@pytest.mark.parametrize("columns", [30522, 50257, 30524])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("dynamic", [False, True])
def test_logits(columns: int, bias: bool, dynamic: bool) -> None:
    head = torch.nn.Linear(DEPTH, columns, bias=bias, device="cuda", dtype=torch.bfloat16)
    run = torch.compile(lambda x: head(F.gelu(x)), backend="inductile", dynamic=dynamic)
    for rows in (ROWS, ROWS - 37):
        x = torch.randn(rows, DEPTH, device="cuda", dtype=torch.bfloat16)
        with torch.no_grad():
            exact = F.linear(F.gelu(x.double()), head.weight.double(), head.bias.double() if bias else None)
            _check([run(x)], [head(F.gelu(x))], [exact])
    assert any("turns" in call for call in REPORTS[-1].aten_calls), REPORTS[-1].aten_calls


def test_no_second_copy_of_logits() -> None:
    head = torch.nn.Linear(DEPTH, 50257, bias=False, device="cuda", dtype=torch.bfloat16)
    run = torch.compile(head, backend="inductile")
    x = torch.randn(4096, DEPTH, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        run(x)
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        y = run(x)
        peak = torch.cuda.max_memory_allocated() - before
    assert peak <= y.numel() * y.element_size() + (64 << 20)


def _gradients(call: Callable[..., Any], *inputs: torch.Tensor) -> list[torch.Tensor]:
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    loss = call(*leaves)
    return [loss, *torch.autograd.grad(loss, leaves)]


def test_gradients_of_a_vocabulary() -> None:
    """Both products with the gradient of the logits read padded rows."""
    labels = torch.randint(0, 50257, (ROWS,), device="cuda")

    def loss(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy((x @ w.t()).float(), labels)

    x = torch.randn(ROWS, DEPTH, device="cuda", dtype=torch.bfloat16) / 8
    w = torch.randn(50257, DEPTH, device="cuda", dtype=torch.bfloat16) / 8
    got = _gradients(torch.compile(loss, backend="inductile"), x, w)
    exact = _gradients(lambda x, w: F.cross_entropy(x @ w.t(), labels), x.double(), w.double())
    _check(got, _gradients(loss, x, w), exact)


def test_off_by_option() -> None:
    head = torch.nn.Linear(DEPTH, 30522, device="cuda", dtype=torch.bfloat16)
    run = torch.compile(head, backend="inductile", options={"pad_products": False})
    with torch.no_grad():
        run(torch.randn(ROWS, DEPTH, device="cuda", dtype=torch.bfloat16))
    assert not any("turns" in call for call in REPORTS[-1].aten_calls)


@pytest.mark.parametrize("offset", [0, 1])
def test_a_copy_engine_brings_tiles_in_turns(offset: int) -> None:
    """Where an address is no multiple of 16 bytes they are loaded; a recorded graph makes descriptors, too."""
    rows, columns, depth = 4096, 2048, 512
    stored = torch.randn(rows * depth + 1, device="cuda", dtype=torch.bfloat16) / 8
    x = stored[offset : offset + rows * depth].view(rows, depth)
    w = torch.randn(columns, depth, device="cuda", dtype=torch.bfloat16) / 8

    def function(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ w.t())

    exact, eager = function(x.double(), w.double()), function(x, w)
    for mode in (None, "reduce-overhead"):
        torch._dynamo.reset()
        run = torch.compile(function, backend="inductile", mode=mode, dynamic=False, options=None)
        with torch.no_grad():
            got = [run(x, w).clone() for _ in range(3)]
        _check(got[-1:], [eager], [exact])


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("rows", [256, 250])
def test_floats_of_8_bits(rows: int, fast: bool) -> None:
    """With a scale of each row, whether records or the option make a nest of it."""
    x = torch.randn(rows, 1024, device="cuda").to(torch.float8_e4m3fn)
    w = torch.randn(512, 1024, device="cuda").to(torch.float8_e4m3fn).t()
    a, b = torch.rand(rows, 1, device="cuda") + 0.5, torch.rand(1, 512, device="cuda") + 0.5

    def product() -> torch.Tensor:
        return torch.ops.aten._scaled_mm(x, w, a, b, out_dtype=torch.bfloat16, use_fast_accum=fast).relu()

    exact = ((x.double() @ w.double()) * a * b).relu()
    choices: list[dict[str, Any]] = [{}, {"loop_products": True}]
    for options in choices:
        torch._dynamo.reset()
        run = torch.compile(product, backend="inductile", options=options)
        _check([run()], [product()], [exact])
    assert not any("_scaled_mm" in call for call in REPORTS[-1].aten_calls), REPORTS[-1].aten_calls


@pytest.mark.parametrize("rows", [3136, 3100])
def test_smaller_tiles_behind_whole_waves(rows: int) -> None:
    """Of 150 tiles for the 132 processors of an H100 or H200 the last 18 are smaller ones."""
    x = torch.randn(rows, 3072, device="cuda", dtype=torch.bfloat16)
    head = torch.nn.Linear(3072, 768, device="cuda", dtype=torch.bfloat16)
    run = torch.compile(lambda x: head(x).relu(), backend="inductile", options={"loop_products": True})
    with torch.no_grad():
        exact = F.linear(x.double(), head.weight.double(), head.bias.double()).relu()
        _check([run(x)], [head(x).relu()], [exact])
