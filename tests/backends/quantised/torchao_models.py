"""torchao's configurations and PT2E on small models, against the quantised model in eager."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torchao.quantization import (
    Float8WeightOnlyConfig,
    Int8DynamicActivationInt8WeightConfig,
    Int8DynamicActivationIntxWeightConfig,
    Int8WeightOnlyConfig,
    IntxWeightOnlyConfig,
    quantize_,
)
from torchao.quantization.granularity import PerGroup
from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e, prepare_qat_pt2e
from torchao.quantization.pt2e.quantizer import x86_inductor_quantizer as x86

from inductile.backends.compiled import REPORTS

INT4: Any = torch.int4  # pyright: ignore[reportAttributeAccessIssue] - torch's stubs do not have it


class _Attention(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (torch.nn.Linear(64, 64) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (layer(x).view(2, -1, 4, 16).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v)
        return self.o(y.transpose(1, 2).reshape(2, -1, 64))


class _Images(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.n = torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.BatchNorm2d(16)
        self.b, self.c = torch.nn.Conv2d(16, 16, 3, groups=16), torch.nn.Conv2d(16, 16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.n(self.a(x)))
        return torch.nn.functional.adaptive_avg_pool2d(self.b(y + self.c(y)), 1)


class _Squeezed(torch.nn.Module):
    """What is squeezed reads the floats that are excited; a residual, a transposed convolution, and a `cat`."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.less, self.more = (
            torch.nn.Conv2d(3, 16, 3, 2),
            torch.nn.Conv2d(16, 4, 1),
            torch.nn.Conv2d(4, 16, 1),
        )
        self.b, self.up = torch.nn.Conv2d(16, 16, 1), torch.nn.ConvTranspose2d(16, 8, 3, 2, 1, 1, groups=2)
        self.c = torch.nn.Conv2d(11, 5, (1, 3), padding=(0, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.nn.functional.hardswish(self.a(x))
        gate = torch.nn.functional.hardsigmoid(self.more(torch.relu(self.less(y.mean((2, 3), keepdim=True)))))
        z = torch.relu(self.b(y * gate) + y)
        return self.c(torch.cat([self.up(z), x[:, :, :14, :14]], 1))


class _Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cells, self.last = torch.nn.LSTM(64, 24, batch_first=True), torch.nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.cells(x)[0])


def _layers() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 64))


#: model, the shape of its input
MODELS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "layers": (_layers, (5, 64)), "attention": (_Attention, (2, 8, 64)), "images": (_Images, (2, 3, 16, 16)),
    "squeezed": (_Squeezed, (2, 3, 16, 16)), "recurrent": (_Recurrent, (2, 5, 64)),
}  # fmt: skip
CONFIGS: dict[str, Any] = {
    "int8": Int8WeightOnlyConfig(),
    "int8-dynamic": Int8DynamicActivationInt8WeightConfig(),
    "int4": IntxWeightOnlyConfig(weight_dtype=INT4, granularity=PerGroup(32)),
    "int4-dynamic": Int8DynamicActivationIntxWeightConfig(weight_dtype=INT4),
    "float8": Float8WeightOnlyConfig(),
}


def _check(quantised: Any, model: torch.nn.Module, x: torch.Tensor, steps: float) -> dict[str, int]:
    """Compare with eager; says what accuracy is lost against the float model, and which ATen calls there are."""
    torch._dynamo.reset()
    REPORTS.clear()
    with torch.no_grad():
        expected, exact = quantised(x), model(x)
        got = torch.compile(quantised, backend="inductile")(x)
    lost, of_eager = ((each - exact).norm() / exact.norm() for each in (got, expected))
    print(f"from the float model {lost:.4f}, eager's {of_eager:.4f}")
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=steps * float(exact.abs().max()))
    return {name: count for report in REPORTS for name, count in report.aten_calls.items()}


@pytest.mark.rotates(3)
@pytest.mark.parametrize("model", ["layers", "attention"])
@pytest.mark.parametrize("config", CONFIGS)
def test_configurations_of_weights(config: str, model: str) -> None:
    torch.manual_seed(0)
    make, shape = MODELS[model]
    network, x = make().eval(), torch.randn(shape)
    quantised = copy.deepcopy(network)
    quantize_(quantised, CONFIGS[config])
    # what is quantised in each call may take the step beside, where sums in another order meet a tie
    _check(quantised, network, x, 1 / 127 if "dynamic" in config else 1e-5)


@pytest.mark.rotates(3)
@pytest.mark.parametrize("kind", ["static", "dynamic", "qat"])
@pytest.mark.parametrize("model", MODELS)
def test_pt2e(model: str, kind: str) -> None:
    torch.manual_seed(0)
    make, shape = MODELS[model]
    network, x = make().eval(), torch.randn(shape)
    config = x86.get_default_x86_inductor_quantization_config(kind == "qat", kind == "dynamic", reduce_range=True)
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(config)
    exported = torch.export.export(network, (x,), strict=True).module()
    prepared = (prepare_qat_pt2e if kind == "qat" else prepare_pt2e)(exported, quantizer)
    prepared(x)
    calls = _check(convert_pt2e(prepared), network, x, 1 / 127)
    has_images = model in ("images", "squeezed")
    name = "quantised_convolution" if has_images else "quantised_linear"
    if not has_images or kind != "dynamic":  # whose quantizer leaves convolutions alone
        assert any(name in call for call in calls), calls
