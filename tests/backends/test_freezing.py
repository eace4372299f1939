"""The option `freezing`: weights are prepared once, and again when they have changed."""

from __future__ import annotations

import copy
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import inductile
from inductile.backends.compiled import REPORTS
from inductile.backends.config import Config
from inductile.backends.host.kept import KeptResults
from inductile.backends.torch_settings import torch_settings

OPTIONS: dict[str, Any] = {"freezing": True}


class Scaled(nn.Module):
    """A layer with a weight that is normalised in each call, a buffer, and a result for each row."""

    scale: torch.Tensor

    def __init__(self, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.left = nn.Parameter(torch.randn(64, 32, dtype=dtype) / 8)
        self.right = nn.Parameter(torch.randn(32, 48, dtype=dtype) / 8)
        self.register_buffer("scale", torch.rand(64, dtype=dtype) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.left @ self.right
        return torch.tanh(nn.functional.linear(x, weight * self.scale[:, None]))


def compiled(model: nn.Module, **options: Any) -> Callable[..., Any]:
    torch.compiler.reset()
    return torch.compile(model, backend="inductile", options=OPTIONS, **options)


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected)


def test_what_weights_decide_runs_once() -> None:
    model, x = Scaled().eval(), torch.randn(8, 48)
    with torch.no_grad():
        plain = inductile.explain(model)(x)
        frozen = inductile.explain(model, options=OPTIONS)(x)
        close(frozen.result, model(x))
    (before,), (report,) = plain.reports, frozen.reports
    assert before.aten_calls["aten.mm"] == 2 and not before.once and not before.kept_bytes
    assert report.aten_calls["aten.mm"] == 1 and report.once["aten.mm"] == 1
    assert report.kept_bytes == 64 * 48 * 4
    assert sum(report.kernels.values()) < sum(before.kernels.values())
    assert "run once, 12288 bytes kept" in str(frozen)
    assert any(r.pass_name == "graph-hoist-weights" and r.kind == "passed" for r in frozen.remarks)


def _optimizer_step(model: Scaled, fused: bool = False) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, fused=fused)
    for each in model.parameters():
        each.grad = torch.ones_like(each)
    optimizer.step()


def _new_storage(model: Scaled) -> None:
    model.left.data = model.left.data * 2
    model.left.data = model.left.data + 1  # which may lie where the first one lay


CHANGES: dict[str, Callable[[Scaled], Any]] = {
    "in place": lambda model: model.left.mul_(2),
    "copy": lambda model: model.right.copy_(torch.randn(32, 48)),
    "buffer": lambda model: model.scale.add_(1),
    "new storage": _new_storage,
    "optimizer": _optimizer_step,
    "fused optimizer": lambda model: _optimizer_step(model, fused=True),
    "state": lambda model: model.load_state_dict(Scaled().state_dict()),
    "assigned state": lambda model: model.load_state_dict(Scaled().state_dict(), assign=True),
    "new parameter": lambda model: setattr(model, "left", nn.Parameter(torch.randn(64, 32))),
    "set": lambda model: model.left.set_(torch.randn(64, 32)),  # pyright: ignore[reportArgumentType]
    "cast there and back": lambda model: model.to(torch.float64).to(torch.float32),
}


def test_results_are_new_when_weights_are() -> None:
    model, x = Scaled().eval(), torch.randn(8, 48)
    run = compiled(model)
    with torch.no_grad():
        for change in CHANGES.values():
            close(run(x), model(x))
            close(run(x + 1), model(x + 1))
            change(model)
            close(run(x), model(x))


def test_equal_modules_have_results_of_their_own() -> None:
    model, x = Scaled().eval(), torch.randn(8, 48)
    other = copy.deepcopy(model)
    with torch.no_grad():
        other.scale.mul_(3)
        layers = [compiled(model), torch.compile(other, backend="inductile", options=OPTIONS)]
        for _ in range(3):
            for run, each in zip(layers, (model, other), strict=True):
                close(run(x), each(x))


def test_parameters_are_shared_across_a_break_and_sizes_are_dynamic() -> None:
    class Broken(Scaled):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            y = super().forward(x)
            torch._dynamo.graph_break()
            return y @ (self.left * self.scale[:, None]).exp() + super().forward(x).sum()

    model = Broken().eval()
    run = compiled(model, dynamic=True)
    with torch.no_grad():
        for rows in (8, 3, 5):
            x = torch.randn(rows, 48)
            close(run(x), model(x))
            model.scale.mul_(1.25)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_low_precision_and_inference_mode(dtype: torch.dtype) -> None:
    model, x = Scaled(dtype).eval(), torch.randn(8, 48, dtype=dtype)
    run = compiled(model)
    with torch.inference_mode():
        close(run(x), model(x))
        model.left.mul_(2)
        close(run(x), model(x))


def test_weights_without_versions_are_read_in_each_call() -> None:
    with torch.inference_mode():
        model, x = Scaled().eval(), torch.randn(8, 48)
        run = compiled(model)
        for _ in range(3):
            close(run(x), model(x))
            model.left.mul_(1.5)


def test_threads_share_results() -> None:
    model, x = Scaled().eval(), torch.randn(8, 48)
    run = compiled(model)
    failures: list[BaseException] = []
    with torch.no_grad():
        expected = model(x)
        run(x)

    def work() -> None:
        try:
            with torch.no_grad():
                for _ in range(20):
                    close(run(x), expected)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not failures


def test_training_says_why_nothing_is_frozen() -> None:
    model, x = Scaled(), torch.randn(8, 48)
    explained = inductile.explain(model, options=OPTIONS)(x)
    assert any("gradients are asked for" in each.reason for each in explained.remarks)
    assert all(not report.once for report in explained.reports)
    explained.result.sum().backward()
    assert model.left.grad is not None


def test_torchs_own_switch_asks_for_it_too() -> None:
    from torch._inductor import config as switches

    with switches.patch(freezing=True):
        assert Config.resolve(None, None, torch_settings()).freezing
        assert not Config.resolve(None, {"freezing": False}, torch_settings()).freezing
    assert not Config.resolve(None, None, torch_settings()).freezing


def test_results_go_with_their_weights() -> None:
    kept = KeptResults("weights", lambda args: [args[0] * 2])
    weight = torch.randn(4)
    first = kept([weight])
    assert kept([weight])[0] is first[0] and kept.runs == 1 and kept.bytes_kept == 16
    other = torch.randn(4)
    kept([other])
    assert kept([weight])[0] is first[0] and kept.runs == 2
    del other
    gc.collect()
    assert kept.bytes_kept == 16
    address = first[0].data_ptr()
    kept.in_place = True
    weight.add_(1)
    assert kept([weight])[0].data_ptr() == address
    close(kept([weight])[0], weight * 2)


def test_reports_of_graphs_without_weights_are_as_before() -> None:
    torch.compiler.reset()
    before = len(REPORTS)
    with torch.no_grad():
        torch.compile(lambda x: x.sin() + 1, backend="inductile", options=OPTIONS)(torch.randn(5))
    assert len(REPORTS) == before + 1 and not REPORTS[-1].once


def _statistics(norm: nn.Module) -> nn.Module:
    """A batch norm as it is behind training."""
    assert isinstance(norm, nn.modules.batchnorm._BatchNorm)
    assert norm.running_mean is not None and norm.running_var is not None
    with torch.no_grad():
        norm.running_mean.normal_(0, 0.5)
        norm.running_var.uniform_(0.5, 2)
        norm.weight.uniform_(-0.5, 1.5)
        norm.bias.normal_()
    return norm


class FixedNorm(nn.Module):
    """A batch norm written out, of buffers."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        for name in ("weight", "bias", "mean", "var"):
            self.register_buffer(name, torch.rand(channels) + 0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight, bias, mean, var = (each.reshape(1, -1, 1, 1) for each in self.buffers())
        scale = weight * (var + 1e-5).rsqrt()
        return x * scale + (bias - mean * scale)


def _images() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(4, 16, 3, bias=False), _statistics(nn.BatchNorm2d(16)), nn.ReLU(),
        nn.Conv2d(16, 16, 3, groups=16), _statistics(nn.BatchNorm2d(16)),
        nn.Conv2d(16, 32, 1), FixedNorm(32),
        nn.ConvTranspose2d(32, 8, 3), _statistics(nn.BatchNorm2d(8)), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(32, 64), _statistics(nn.BatchNorm1d(64)), nn.Linear(64, 64),
    )  # fmt: skip


@pytest.mark.rotates(2)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64])
def test_affine_maps_of_channels_go_into_weights(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    model, x = _images().eval().to(dtype), torch.randn(8, 4, 12, 12, dtype=dtype)
    with torch.no_grad():
        exact = copy.deepcopy(model).double()(x.double())
        explained = inductile.explain(model, options=OPTIONS)(x)
        (report,) = explained.reports
        found, eager = ((y.double() - exact).norm() for y in (explained.result, model(x)))
    folded = [r for r in explained.remarks if r.pass_name == "graph-fold-affine"]
    assert {each.kind for each in folded} == {"missed" if dtype is torch.float16 else "passed"}
    assert len(folded) == 5
    assert sum(report.kernels.values()) <= (7 if dtype is torch.float16 else 3) + 2
    assert found <= 2 * eager + 1e-14 * exact.norm()
